"""Decides whether a parsed sentence states a fact: it may also deny it, doubt it, or report what somebody says."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gristmill.models.language.names import split_words

if TYPE_CHECKING:  # loading spaCy takes a second, and only the child processes that parse need it
    from spacy.tokens import Token

NOT = split_words("not n't n’t never neither nor")
NOTHING = split_words("no neither nothing nobody none")
PERHAPS = split_words(
    """perhaps maybe possibly probably presumably potentially allegedly reportedly supposedly purportedly apparently
    hypothetically almost nearly hardly scarcely"""
)
RULES_OUT = NOT | PERHAPS | split_words("no than")  # rather than
WITHOUT = split_words("without except unlike instead")
UNDER_CONDITION = split_words("if unless whether")
SUBJECTS = frozenset({"nsubj", "nsubjpass"})
COMPLEMENTS = SUBJECTS | {"dobj", "attr"}
SEPARATORS = split_words("; : – —")
JOINED = 12  # verbs of one subject; a sentence with more is most likely no sentence
CONTENT = frozenset({"ccomp", "csubj", "csubjpass"})  # clauses about which another verb speaks: he said that …


def is_stated(verb: "Token") -> bool:
    """Whether the sentence states that this happened. Verbs joined by `and` share the words before the first."""
    return not (_is_denied(verb) or _is_doubted(verb) or _is_reported(verb))


def is_meant(token: "Token") -> bool:
    """Whether no word before this name, role or preposition rules it out: not Acme, nor for Acme."""
    first = token.left_edge
    before = first.nbor(-1) if first.i > first.sent.start else first
    ruled_out = any(one.lower_ in RULES_OUT and not _is_only(one) for one in (before, first))
    return not ruled_out and token.lower_ not in WITHOUT


def find_clause(token: "Token") -> "Token | None":
    """The verb of the clause that holds the token; None in a heading."""
    return next((one for one in token.ancestors if one.tag_.startswith("VB")), None)


def _is_denied(verb: "Token") -> bool:
    for one in _walk_joined_verbs(verb):
        if any(_is_denial(child) for child in one.children) or _get_word_before(one) in NOT:
            return True
        if _is_contrasted(one):
            return False
    return False


def _is_denial(child: "Token") -> bool:
    if child.lower_ in ("longer", "more"):
        return _get_word_before(child) == "no"
    if child.dep_ == "neg" or child.lower_ in NOT:
        return not _is_only(child)
    return child.dep_ in COMPLEMENTS and any(one.lower_ in NOTHING for one in (child, *child.lefts))


def _is_doubted(verb: "Token") -> bool:
    return any(_is_doubt(one) for verb in _walk_joined_verbs(verb) for one in verb.children) or _is_conditional(verb)


def _is_doubt(child: "Token") -> bool:
    return child.tag_ == "MD" or child.lower_ in PERHAPS or (child.dep_ == "advcl" and _is_conditional(child))


def _is_conditional(verb: "Token") -> bool:
    return any(one.dep_ == "mark" and one.lower_ in UNDER_CONDITION for one in verb.children)


def _is_reported(verb: "Token") -> bool:
    """Whether somebody else says it: according to …, he claims that …"""
    if any(one.lower_ == "according" for one in verb.children):
        return True
    return any(_is_content(one) for one in (verb, *verb.ancestors))


def _is_content(token: "Token") -> bool:
    if token.dep_ in CONTENT:
        return not _is_sentence_of_its_own(token)
    if token.dep_ == "acl":  # the claim that
        return any(one.dep_ == "mark" for one in token.children)
    return token.dep_ == "pcomp" and token.head.lower_ in WITHOUT


def _is_sentence_of_its_own(token: "Token") -> bool:
    """Bob paid Acme; Jane left: the parser hangs the first on the second, as it does with reported speech."""
    between = token.doc[token.i : token.head.i]  # empty if the head comes first
    return any(one.text in SEPARATORS for one in between)


def _walk_joined_verbs(verb: "Token") -> Iterator["Token"]:
    """The verb, and the verbs it is joined to while it has no subject and no tense of its own: did not pay and sue."""
    for _ in range(JOINED):
        yield verb
        own = any(one.dep_ in SUBJECTS or one.dep_ == "aux" for one in verb.children)
        if own or verb.dep_ != "conj" or verb.head.tag_ != verb.tag_:
            return
        verb = verb.head


def _is_contrasted(verb: "Token") -> bool:
    """Whether `but` joins it to the verb before."""
    return verb.dep_ == "conj" and any(one.dep_ == "cc" and one.lower_ == "but" for one in verb.head.children)


def _get_word_before(token: "Token") -> str:
    return token.nbor(-1).lower_ if token.i > token.sent.start else ""


def _is_only(denial: "Token") -> bool:
    """Not only, not just: these deny nothing."""
    return denial.i + 1 < denial.sent.end and denial.nbor(1).lower_ in ("only", "just", "merely")
