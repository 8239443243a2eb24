"""Compares a claim with a passage in another language by the meanings of its words."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from gristmill.agents.ask.exchanges import LIGHT, PLACED, read_lead
from gristmill.agents.ask.meanings import APART, DEED, NEGATED, ROLE, find_meanings, read_meanings
from gristmill.agents.ask.polarity import ANY_NEGATION, NEGATIONS, walk_words
from gristmill.agents.ask.spans import ComparedClaim, SentenceSpan, find_nearest, read_around
from gristmill.agents.ask.words import Term, fold_words
from gristmill.knowledge import fold

NAMES_ONLY = "The passage is in another language: only names and figures were compared."
SAID_BESIDE = "The passage is in another language, and says it in the sentence beside this one."
SLIGHT = frozenset(("year", "month", "week", "day", "company", "total", "apply", "happen", "last"))  # they say little
MOST_ALIKE = 2 / 3  # the share of words that two languages may write alike: pumps, Pumpen
WHERE = frozenset(("in", "on", "from", "auf", "aus", "v", "na", "u", "z", "iz"))  # behind these stand no doers
WITHOUT = frozenset(("without", "ohne", "bez", "sans", "sin", "senza", "sem", "zonder"))  # these deny no deed
PASSIVE = re.compile(
    r"\bby\s(?:the\s)?[A-Z]|\b(?:wurden?|wird|werden|ist|sind)\b.*\b(?:von|vom|durch)\s\w|\bod strane\s"
)


@dataclass(frozen=True, slots=True)
class ComparedMeaning:
    """What a passage in another language says of a claim, and why."""

    says: Literal["same", "opposite", "other", "unclear"]
    reason: str = ""


def is_translated(claim: ComparedClaim, span: SentenceSpan) -> bool:
    """Whether the passage is in another language, and its words are other words, too."""
    spoken = span.passage.language
    if not spoken or claim.language in (None, spoken):
        return False
    plain = [one for one in claim.terms if not (_is_in_name(one, claim) or _is_written_alike(one, span))]
    # a short text may be taken for another language than its own: there, the words are the same
    return sum(one in span.terms for one in plain) <= MOST_ALIKE * len(plain)


def compare_meanings(claim: ComparedClaim, span: SentenceSpan) -> ComparedMeaning:
    """What is done must be done in the passage as well, and nothing may be left that could not be compared."""
    spoken = span.passage.language
    text = span.passage.text[slice(*find_nearest(claim, span))]
    if _denies_other(claim.text, claim.language, text, spoken):
        return ComparedMeaning("opposite", "The passage says the opposite.")
    ours, there = read_meanings(claim.text, claim.language), read_meanings(text, spoken)
    for known in (DEED, ROLE):
        if found := _find_other(ours, there, known):
            is_beside = known is DEED and _is_said_beside(ours, there, span)
            return ComparedMeaning("unclear", SAID_BESIDE) if is_beside and found.says == "other" else found
    around = _join([*there, *read_meanings(f"{span.text} \n {span.passage.about}", spoken)])
    if not _join(ours) & around:
        return ComparedMeaning("unclear", NAMES_ONLY)
    if _denies(claim.text, claim.language) != _denies(text, spoken):
        return ComparedMeaning("unclear", "The passage is in another language: one of both denies something.")
    if word := _find_uncompared(claim, span, around):
        return ComparedMeaning("unclear", f"The passage is in another language: “{word}” could not be compared.")
    if _is_turned(claim, text):
        return ComparedMeaning(
            "unclear", "The passage is in another language: it may say who did it the other way round."
        )
    return ComparedMeaning("same")


Meant = Sequence[tuple[str, frozenset[str]]]  # words with their meanings


def _find_other(ours: Meant, there: Meant, known: frozenset[str]) -> ComparedMeaning | None:
    """A deed, or somebody who does it, where the passage has only others."""
    others = [(word, own) for word, meanings in there if (own := meanings & known)]
    meant = _join(there)
    for word, meanings in ours:
        own = meanings & known
        if not own or not others or own & meant:
            continue
        apart = next((other for other, those in others if any((a, b) in APART for a in own for b in those)), None)
        if apart:
            return ComparedMeaning("opposite", f"The passage says “{apart}”, not “{word}”.")
        return ComparedMeaning("other", f"The passage does not say “{word}”, but “{others[0][0]}”.")
    return None


def _is_said_beside(ours: Meant, there: Meant, span: SentenceSpan) -> bool:
    """Whether every deed of a claim stands in this sentence or in those around it."""
    near = _join(there) | _join(read_meanings(read_around(span), span.passage.language))
    return all(meanings & near for _, meanings in ours if meanings & DEED)


def _join(words: Meant) -> frozenset[str]:
    return frozenset[str]().union(*(meanings for _, meanings in words))


def _denies(text: str, language: str | None) -> bool:
    words = fold_words(text) - WITHOUT
    has_word = words & NEGATIONS.get(language or "", ANY_NEGATION) or any(one.endswith(("n't", "n’t")) for one in words)
    return bool(has_word) or any(
        True in denied for one, denied in _read_polarity(text, language).items() if one in DEED
    )


def _denies_other(claim: str, language: str | None, text: str, spoken: str | None) -> bool:
    """Whether one of both denies a deed, and the other does not."""
    ours, theirs = _read_polarity(claim, language), _read_polarity(text, spoken)
    return any(not ours[one] & theirs[one] for one in ours.keys() & theirs.keys() & DEED)


def _read_polarity(text: str, language: str | None) -> dict[str, set[bool]]:
    """The meanings of a text, each with True where it is denied."""
    found: dict[str, set[bool]] = {}
    for word, is_denied in walk_words(text, language):
        # Czech denies a verb by how it begins: nepodepsal
        has_prefix = language in NEGATED and fold(word).startswith("ne") and bool(find_meanings(word[2:], language))
        for meaning in find_meanings(word, language):
            found.setdefault(meaning, set()).add(is_denied or has_prefix)
    return found


def _find_uncompared(claim: ComparedClaim, span: SentenceSpan, meant: frozenset[str]) -> str:
    """A telling word of a claim that the passage has in neither language, as far as is known."""
    for term in claim.terms:
        meanings = find_meanings(term.text, claim.language)
        is_said = term in span.terms or meanings & meant
        is_slight = meanings & SLIGHT or fold(term.text) in LIGHT | PLACED | ANY_NEGATION
        if not (is_said or is_slight or _is_in_name(term, claim)):
            return term.text
    return ""


def _is_turned(claim: ComparedClaim, text: str) -> bool:
    """Whether both name the same in another order, unless one of them is in passive voice."""
    names = [one for one in _list_capitals(claim) if re.search(one, text)]
    places = [match.start() for one in names if (match := re.search(one, text))]
    is_other_voice = _is_passive(claim.text, names) != _is_passive(text, names)
    return len(places) > 1 and (places != sorted(places)) != is_other_voice


def _list_capitals(claim: ComparedClaim) -> list[str]:
    """Patterns of the words with capitals, of several in a row the first: names, and in German all nouns."""
    found: list[Term] = []
    for one, before in zip(claim.terms, (None, *claim.terms), strict=False):
        is_next = before is not None and before.text[:1].isupper() and before.stop + 1 == one.start
        if one.text[:1].isupper() and not is_next and read_lead(claim.text, one.start) not in WHERE:
            found.append(one)
    return [rf"\b{re.escape(one.text)}\b" for one in found]


def _is_passive(text: str, names: Sequence[str]) -> bool:
    """Whether something is done to one of these names by somebody else."""
    match = PASSIVE.search(text)
    return match is not None and any(re.search(one, text[: match.start()]) for one in names)


def _is_written_alike(term: Term, span: SentenceSpan) -> bool:
    """Whether both languages write a word with the same letters and a capital: a name also where all nouns have one."""
    return term.text[:1].isupper() and re.search(rf"\b{re.escape(term.text)}\b", span.text) is not None


def _is_in_name(term: Term, claim: ComparedClaim) -> bool:
    return any(name.start <= term.start < name.stop for name in claim.names)
