"""Decides by rule whether the evidence may answer a question at all, before any model is asked."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gristmill.agents.ask.kinds import asks_for_time, find_missing_kind
from gristmill.agents.ask.model import Passage
from gristmill.agents.ask.places import Place, WantedWord, find_places, list_wanted
from gristmill.agents.ask.question import AskedQuestion
from gristmill.agents.ask.retrieval import PARTS
from gristmill.agents.ask.synonyms import LANGUAGE
from gristmill.agents.ask.values import find_values
from gristmill.agents.ask.words import fold_words, holds_name
from gristmill.knowledge import WordWeight, fold

LOOKED_AT = 8  # passages
CLEAR = 0.8  # a passage with this cosine is about the question, whatever its words are
ENOUGH = 0.56  # the weight of the question's words that one place must have …
UNNAMED = 0.64  # … more if the question names nothing that the place is about …
FOREIGN = 0.4  # … and less in languages of which no synonyms are known
ABBREVIATION = re.compile(r"[A-Z]{2,4}")  # texts have it in full: USA, United States
AS_GOOD = 0.9  # a place with this share of what the best one has may answer as well


@dataclass(frozen=True)
class Grounds:
    """What speaks for asking a model at all."""

    coverage: float  # the weight of the question's telling words that stand at one place of the evidence
    similarity: float  # the best cosine
    strange: tuple[str, ...]  # names, ids and values of the question that the passages do not have
    lacks_kind: str  # the kind of thing that is asked for and stands at no such place: a date, a number, a name
    enough: float  # the coverage that is needed
    lacking: tuple[str, ...] = ()  # telling words of the question that stand at no such place

    @property
    def reason(self) -> str:
        if self.strange:
            return f"No passage names {', '.join(f'“{one}”' for one in self.strange[:3])}."
        if self.lacks_kind:
            return f"No passage about it has {self.lacks_kind}."
        if self.lacking:
            shown = ", ".join(f"“{one}”" for one in self.lacking[:3])
            return f"No passage about it has the {'words' if len(self.lacking) > 1 else 'word'} {shown}."
        return "The words of the question stand in the passages, but too few of them stand at one place."


def weigh_evidence(
    asked: AskedQuestion, weights: Sequence[WordWeight], passages: Sequence[Passage], similarity: float
) -> Grounds:
    """Compare a question with its best passages."""
    near = passages[:LOOKED_AT]
    words = list_wanted(asked, weights, asks_for_time=asks_for_time(asked))
    places = find_places(asked, near, words)
    parts = list(divide_words(asked, words))
    best = choose_best(words, places) if len(parts) == 1 else places
    return Grounds(
        coverage=measure_coverage(parts, places),
        similarity=similarity,
        strange=find_strange(asked, near),
        lacks_kind=find_missing_kind(asked, words, best),
        enough=choose_threshold(asked),
        lacking=find_lacking(words, places, {one.start: one.text for one in weights}),
    )


def find_strange(asked: AskedQuestion, passages: Sequence[Passage]) -> tuple[str, ...]:
    """Names and ids of the question that no passage has; passages are read for values only if it has any."""
    whole = " \n ".join(f"{one.about} \n {one.text}" for one in passages)
    plain = fold_words(whole)
    names = [name.text for name in asked.names if not ABBREVIATION.fullmatch(name.text)]
    strange = [name for name in names if not holds_name(name, plain)]
    ids = [one for one in find_values(asked.complete) if one.kind == "id" and fold(one.written) not in plain]
    there = {one.key for one in find_values(whole)} if ids else set[str]()
    return tuple(dict.fromkeys([*strange, *(one.written for one in ids if one.key not in there)]))


def find_lacking(words: Sequence[WantedWord], places: Sequence[Place], written: Mapping[int, str]) -> tuple[str, ...]:
    """The words of the question that stand at no place, as written; words for a kind only if no other is missing."""
    there = frozenset[int]().union(*(place.found for place in places))
    missing = [one for one in words if one.at not in there]
    telling = [one for one in missing if not one.is_kind] or missing
    return tuple(dict.fromkeys(written[one.at] for one in telling))


def divide_words(asked: AskedQuestion, words: Sequence[WantedWord]) -> Iterator[list[WantedWord]]:
    """The words of each part of a question: who did this, and what did that mean? Each may have a place of its own."""
    ends = [*(match.start() for match in PARTS.finditer(asked.complete)), len(asked.complete)]
    start = 0
    for end in ends:
        if own := [one for one in words if start <= one.at < end]:
            yield own
        start = end


def measure_coverage(parts: Sequence[Sequence[WantedWord]], places: Sequence[Place]) -> float:
    """The share of what is asked that stands at one place; of several parts, of the one that is answered best."""
    telling = [part for part in parts if not all(one.is_kind for one in part)]
    if not telling:
        return 1.0  # which of the two is older: the names are all that is asked about
    found = (weigh_found(part, place) / sum(one.weight for one in part) for part in telling for place in places)
    return max(found, default=0.0)


def weigh_found(words: Sequence[WantedWord], place: Place) -> float:
    return sum(one.weight for one in words if one.at in place.found)


def choose_best(words: Sequence[WantedWord], places: Sequence[Place]) -> list[Place]:
    """The places that have most of what is asked."""
    weights = [weigh_found(words, place) for place in places]
    best = max(weights, default=0.0)
    return [place for place, weight in zip(places, weights, strict=True) if weight >= AS_GOOD * best]


def choose_threshold(asked: AskedQuestion) -> float:
    if asked.language != LANGUAGE:
        return FOREIGN
    return ENOUGH if asked.names else UNNAMED


def may_answer(grounds: Grounds) -> bool:
    """Whether a model is asked: names must be known, and the words or the meaning must be near enough."""
    if grounds.strange or grounds.lacks_kind:
        return False
    return grounds.similarity >= CLEAR or grounds.coverage >= grounds.enough
