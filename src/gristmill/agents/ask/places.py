"""Finds the places of the evidence that may answer a question: sentences about its names, and what these lead to."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain
from math import sqrt

from gristmill.agents.ask.model import Passage
from gristmill.agents.ask.question import AskedQuestion
from gristmill.agents.ask.sentences import find_spans
from gristmill.agents.ask.synonyms import LANGUAGE, find_family
from gristmill.agents.ask.words import (
    ASKING,
    are_alike,
    find_names,
    fold_words,
    holds_name,
    is_plain,
    read_terms,
    split_words,
    stem,
)
from gristmill.knowledge import WordWeight, fold

HOPS = 2  # passages to which a passage with a name of the question may lead, one after the other
KIND = 0.2  # how much a word counts that says what kind of thing is asked for …
TYPED = 0.6  # … and a word behind “which”: a text names the thing, not always its kind
SURE = 2  # telling words of a passage that is about the question although nothing says how the first leads to it
LONGEST_TITLE = 5  # words of a title that is the name of a thing
OPENING = 200  # characters in which a text says what it is about
# Kinds of things, and words that ask to compare or to sort: in English, the language of most such questions.
KINDS = split_words(
    """kind type sort way thing part person people man woman name place time year date day month number amount
    nationality profession occupation job birthplace origin size colour color age height length depth weight species
    genre category animal animals sport instrument city country town state subject topic title role field
    first last same different other one ones two compare compared comparison relation relationship difference
    want wanted use used mean meant happen happened appear appeared come came go went take took get got make made need
    needed see saw lie lies interpret decide decided solve solved recognise recognize argument arguments author writer
    maker founder creator older younger longer shorter deeper taller larger smaller bigger earlier later more less most
    least both either give gave set work works include react reaction respond view views reason
    located situated based famous become became remain feature featured consider considered call called named
    say said ask asked answer answered reply replied remark noticed suggest suggested propose proposed recommend
    recommended conclude concluded express expressed state stated claim claimed talk talked speak spoke believe believed
    feel felt expect expected group team participant participants speaker issue matter point aspect detail details
    responsible pass passed"""
)
# Words that tell nothing by themselves, although texts have them seldom.
LIGHT = split_words(
    """until next under out up over every just away while else during him again new besides like instead although both
    around between through off ever still even yet back down together each since per own without within across along
    after before behind done somebody someone something anybody anyone anything everybody everyone everything nobody
    whoever too very also never always"""
)
LIVING = split_words("die died death dead born birth live lived")
LIFE = re.compile(r"\(\s*(?:c\.\s?)?\d{3,4}\s*[–-]\s*\d{3,4}\s*\)")  # (1919–2006): born, and died
LIFE_DATES = "(life dates)"  # stands for them among the stems of a sentence
HOW = re.compile(r"\bhow (old|high|tall|deep|long|wide|far|fast|heavy|large|big|thick)\b", re.IGNORECASE)
ASKED_FOR = re.compile(
    r"\b(?:what|which|whose|welche[rsn]?|quels?|quelles?|cu[aá]les?|jak[áéý])\s+([^\W\d_]+)", re.IGNORECASE
)


# --- the words of the question


@dataclass(frozen=True, slots=True)
class WantedWord:
    """A telling word of the question, and how much it counts."""

    text: str
    at: int  # its place in the question, by which it is known
    terms: frozenset[str]
    family: frozenset[str]
    weight: float
    is_kind: bool  # it says what kind of thing is asked for …
    is_vague: bool  # … or stands behind “which”

    def stands_in(self, sentence: "ReadSentence") -> bool:
        if self.text in sentence.plain or not self.terms.isdisjoint(sentence.stems):
            return True
        if not (self.family.isdisjoint(sentence.stems) and self.family.isdisjoint(sentence.plain)):
            return True
        return any(are_alike(term, other) for term in self.terms for other in sentence.stems)


def list_wanted(asked: AskedQuestion, weights: Sequence[WordWeight], *, asks_for_time: bool) -> list[WantedWord]:
    """What is asked about the things that the question names; the names are not counted: search has found them."""
    typed = {fold(match[1]) for match in ASKED_FOR.finditer(asked.complete)}
    measured = {match.start(1) for match in HOW.finditer(asked.complete)}
    found = [_weigh_word(one, asked.language, typed, measured) for one in weights if _tells(one, asked)]
    if not asks_for_time:
        return found
    return [replace(one, family=one.family | {LIFE_DATES}) if one.text in LIVING else one for one in found]


def _tells(word: WordWeight, asked: AskedQuestion) -> bool:
    plain = fold(word.text)
    if is_plain(word.text, asked.language) or plain in ASKING or plain in LIGHT:
        return False
    return not any(name.start <= word.start < name.stop for name in asked.names)


def _weigh_word(word: WordWeight, language: str, typed: set[str], measured: set[int]) -> WantedWord:
    plain = fold(word.text)
    is_kind = plain in KINDS or stem(plain, language) in KINDS or word.start in measured
    share = KIND if is_kind else TYPED if plain in typed else 1.0
    family = find_family(word.text) if language == LANGUAGE else frozenset[str]()
    # the root: one rare word that is missing does not outweigh three that are there
    return WantedWord(plain, word.start, word.terms, family, share * sqrt(word.weight), is_kind, share < 1)


# --- the passages


@dataclass(frozen=True, slots=True)
class ReadSentence:
    """A sentence as it is compared."""

    text: str
    stems: frozenset[str]
    plain: frozenset[str]
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Line:
    """A sentence and the words of the question that it has, by their places in the question."""

    sentence: ReadSentence
    found: frozenset[int]


@dataclass(frozen=True, slots=True)
class Place:
    """Sentences that are about one thing, or about things of which one leads to the other."""

    lines: tuple[Line, ...]
    found: frozenset[int]  # the words of the question that stand here

    def join(self, other: "Place") -> "Place":
        return Place((*self.lines, *other.lines), self.found | other.found)


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A passage by its lines."""

    heading: Line  # what is known of it beside its text
    lines: tuple[Line, ...]
    titles: frozenset[str]  # the words of its title and its headings
    is_about_title: bool  # its text speaks of the thing that is its title

    def is_about(self, name: str) -> bool:
        return holds_name(name, self.titles)

    def has_name(self, name: str) -> bool:
        return self.is_about(name) or bool(self.find_naming([name]))

    def find_naming(self, names: Sequence[str]) -> list[int]:
        """The lines that have one of these names."""
        return [at for at, line in enumerate(self.lines) if any(holds_name(one, line.sentence.plain) for one in names)]

    def cut_place(self, chosen: Iterable[int] | None = None) -> Place:
        lines = self.lines if chosen is None else [self.lines[at] for at in sorted(chosen)]
        return Place((self.heading, *lines), self.heading.found.union(*(one.found for one in lines)))

    def cut_naming(self, naming: Sequence[int]) -> Place:
        """These lines and the line after each, which often goes on about the same."""
        beside = {at + 1 for at in naming if at + 1 < len(self.lines)}
        return self.cut_place({*naming, *beside})


def read_passage(passage: Passage, words: Sequence[WantedWord]) -> ReadPassage:
    title = passage.title or ""
    opening = passage.text.removeprefix("#").strip().removeprefix(title)[:OPENING]
    return ReadPassage(
        heading=_mark_line(_read_sentence(passage.about, passage.language), words),
        lines=tuple(_mark_line(one, words) for one in read_sentences(passage.text, passage.language)),
        titles=fold_words(f"{title} {passage.heading}"),
        is_about_title=0 < len(title.split()) <= LONGEST_TITLE and holds_name(title, fold_words(opening)),
    )


def _mark_line(sentence: ReadSentence, words: Iterable[WantedWord]) -> Line:
    return Line(sentence, frozenset(word.at for word in words if word.stands_in(sentence)))


@lru_cache(maxsize=512)
def read_sentences(text: str, language: str | None) -> tuple[ReadSentence, ...]:
    return tuple(_read_sentence(text[start:stop], language) for start, stop in find_spans(text))


def _read_sentence(text: str, language: str | None) -> ReadSentence:
    stems = {one.term for one in read_terms(text, language)}
    if LIFE.search(text):
        stems.add(LIFE_DATES)
    names = tuple(name.text for name in find_names(text, language))
    return ReadSentence(text, frozenset(stems), fold_words(text), names)


# --- the places


def find_places(asked: AskedQuestion, passages: Sequence[Passage], words: Sequence[WantedWord]) -> list[Place]:
    """The places about the names of the question, alone and with what they lead to; without a name, all passages."""
    read = [read_passage(one, words) for one in passages]
    names = [name.text for name in asked.names if any(one.has_name(name.text) for one in read)]
    if not names:
        return [one.cut_place() for one in read]
    telling = frozenset(one.at for one in words if not one.is_vague)
    ways = _Ways(read, fold_words(asked.complete), telling)
    return [place for at in range(len(read)) for place in ways.start_at(at, names)]


class _Ways:
    """The ways from a passage with a name of the question to passages about what it names."""

    def __init__(self, read: Sequence[ReadPassage], known: frozenset[str], telling: frozenset[int]) -> None:
        self._read = read
        self._known = known  # the words of the question
        self._telling = telling  # those that are not vague, by their places
        self._steps: dict[tuple[int, str], Place | None] = {}  # many ways lead through the same name

    def start_at(self, at: int, names: Sequence[str]) -> Iterator[Place]:
        if own := _cut_about(self._read[at], names):
            yield own
            yield from self._go_on((at,), own, own)

    def _go_on(self, path: tuple[int, ...], whole: Place, last: Place) -> Iterator[Place]:
        leads = self._list_leads(last)
        for at in range(len(self._read)):
            if at not in path and (step := self._step_to(at, leads)):
                both = whole.join(step)
                yield both
                if len(path) < HOPS:
                    yield from self._go_on((*path, at), both, step)

    def _list_leads(self, place: Place) -> dict[str, bool]:
        """The names that the question does not have, and whether the question asks for it: by a word beside it."""
        leads: dict[str, bool] = {}
        for line in place.lines:
            for name in chain.from_iterable(re.split(r"\s(?:and|&|und|et|y)\s", one) for one in line.sentence.names):
                leads[name] = leads.get(name, False) or bool(line.found)
        fresh = {name: is_asked for name, is_asked in leads.items() if not holds_name(name, self._known)}
        return dict(sorted(fresh.items(), key=lambda one: not one[1]))

    def _step_to(self, at: int, leads: Mapping[str, bool]) -> Place | None:
        """What a passage says of a thing that the last one names, if the question leads there."""
        for name, is_asked in leads.items():
            step = self._cut_step(at, name)
            if step and (is_asked or len(step.found & self._telling) >= SURE):
                return step
        return None

    def _cut_step(self, at: int, name: str) -> Place | None:
        if (at, name) not in self._steps:
            self._steps[at, name] = _cut_step(self._read[at], name)
        return self._steps[at, name]


def _cut_step(one: ReadPassage, name: str) -> Place | None:
    """All of a passage about a thing; of others, the sentences with its name if that is a full one."""
    words = fold_words(name)
    if words <= one.titles:
        return one.cut_place()
    naming = [at for at, line in enumerate(one.lines) if words <= line.sentence.plain] if " " in name else []
    return one.cut_naming(naming) if naming else None


def _cut_about(one: ReadPassage, names: Sequence[str]) -> Place | None:
    """What a passage says of these names: all of it, or only the sentences that have one of them.

    The latter if it is about another thing, and has no word of the question beside the name.
    """
    naming = one.find_naming(names)
    if any(one.is_about(name) for name in names) or any(one.lines[at].found for at in naming):
        return one.cut_place()
    if naming and not one.is_about_title:  # a story, a meeting, a letter
        return one.cut_place()
    return one.cut_naming(naming) if naming else None
