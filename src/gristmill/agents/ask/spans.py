"""Finds the span of a passage that says what a claim says: one to three neighbouring sentences."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from gristmill.agents.ask.model import Citation, Passage
from gristmill.agents.ask.sentences import find_spans
from gristmill.agents.ask.values import Value, are_equal, find_values
from gristmill.agents.ask.words import (
    ASKING,
    PRONOUNS,
    Name,
    Term,
    are_alike,
    find_names,
    fold_words,
    read_terms,
    split_words,
)
from gristmill.knowledge import fold

FAMILIAR = 0.35  # how much a word of the question counts: an answer repeats it
VALUE = 1.5  # how much a value counts
WIDEST = 3  # sentences of a span
BREVITY = 0.03  # what one more sentence of a span must bring
MOST_SPANS = 3  # passages that one sentence rests on
QUOTATION = re.compile(r'"([^"]{4,})"|“([^”]{4,})”|„([^“”]{4,})[“”]|«([^»]{4,})»')
# A text that gives orders to whoever reads it is no evidence: somebody wrote it to be repeated.
ORDERS = re.compile(
    r"\b(?:ignore|disregard|forget)\b.{0,40}\b(?:before|above|previous|prior|instructions?|rules?|everything)\b"
    r"|\b(?:system|assistant|user)\s*(?:prompt|message)?\s*:|\b(?:answer|respond|reply|say|output|print)\s+(?:only|exactly|with)\b"
    r"|\byou are (?:now |an? )?(?:ai|assistant|language model|chatbot)\b|\bnew instructions?\b",
    re.IGNORECASE,
)
# Who is meant stands further away in a text that says I, we or she.
TELLERS = PRONOUNS | split_words(
    """i me my mine we us our ours you your yours who whose ich mir mich mein meine wir uns unser unsere du dir dich
    dein deine je me mon ma mes nous notre nos vous votre yo mi nosotros ja mne muj moje my nas nase mi moj nas vas"""
)


@dataclass(frozen=True)
class ComparedClaim:
    """A sentence of the model as it is compared."""

    text: str
    language: str | None
    question: str = ""

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """Its telling words without values: these are compared as values."""
        values = self.values
        return tuple(
            one
            for one in read_terms(self.text, self.language)
            if fold(one.text) not in ASKING
            and all(one.stop <= value.start or value.stop <= one.start for value in values)
        )

    @cached_property
    def values(self) -> tuple[Value, ...]:
        return find_values(self.text)

    @cached_property
    def names(self) -> tuple[Name, ...]:
        return find_names(self.text, self.language)

    @cached_property
    def familiar(self) -> frozenset[str]:
        return frozenset(one.term for one in read_terms(self.question, self.language))

    def weigh(self, term: Term) -> float:
        return FAMILIAR if term.term in self.familiar else 1.0

    @property
    def quotations(self) -> list[str]:
        found = (next(filter(None, match.groups())) for match in QUOTATION.finditer(self.text))
        return [one for one in found if " " in one.strip()]

    @property
    def is_empty(self) -> bool:
        return not (self.terms or self.values)


@dataclass(frozen=True)
class SentenceSpan:
    """Some neighbouring sentences of a passage, and how much of a claim they cover."""

    passage: Passage
    start: int  # in the text of the passage
    stop: int
    score: float
    terms: frozenset[Term]  # of the claim, that stand here …
    values: frozenset[Value]  # … and its values

    @property
    def text(self) -> str:
        return self.passage.text[self.start : self.stop]

    def cite(self) -> Citation:
        one = self.passage
        return Citation(
            number=one.number,
            document=one.document,
            page=one.page,
            start=one.start + self.start,
            stop=one.start + self.stop,
            quote=self.text,
            name=one.name,
            title=one.title,
            record=one.record,
        )


def choose_spans(claim: ComparedClaim, passages: Sequence[Passage]) -> tuple[SentenceSpan, ...]:
    """The best span, then spans of other passages that bring what is missing and speak of the same things."""
    passages = _leave_out_bare_figures(claim, passages)
    chosen: list[SentenceSpan] = []
    left, values = set(claim.terms), set(claim.values)
    for _ in range(MOST_SPANS):
        best = max(
            (span for one in passages if (span := find_span(claim, one, left, values))),
            key=lambda span: span.score,
            default=None,
        )
        if best is None or any(best.passage is span.passage and best.start == span.start for span in chosen):
            break
        new = len(best.terms & left) + 2 * len(best.values & values)
        if chosen and (new < 2 or not _is_connected(best, chosen)):
            break
        chosen.append(best)
        left, values = left - best.terms, values - best.values
        if not left and not values:
            break
    return tuple(chosen)


def _leave_out_bare_figures(claim: ComparedClaim, passages: Sequence[Passage]) -> Sequence[Passage]:
    """The passages that have words of a claim, if there are any: the figures of the others may be those of anything.

    One in another language has other words, whatever it says.
    """
    speaking = [one for one in passages if _has_words(claim, one)]
    foreign = [one for one in passages if one.language and claim.language not in (None, one.language)]
    return [one for one in passages if one in speaking or one in foreign] if speaking else passages


def _has_words(claim: ComparedClaim, passage: Passage) -> bool:
    text = f"{passage.about}\n{passage.text}"
    stems = {one.term for one in read_terms(text, passage.language)}
    plain = fold_words(text)
    return any(has_term(one, stems, plain) for one in claim.terms)


def _is_connected(span: SentenceSpan, chosen: Iterable[SentenceSpan]) -> bool:
    """Whether it speaks of something that the others speak of, or of another thing that the claim names."""
    return any(span.passage.document == one.passage.document or span.terms & one.terms for one in chosen) or any(
        term.text[:1].isupper() for term in span.terms
    )


def find_span(
    claim: ComparedClaim, passage: Passage, terms: Iterable[Term], values: Iterable[Value]
) -> SentenceSpan | None:
    """The neighbouring sentences of a passage that cover most of what is asked for; the shortest of equals."""
    wanted, figures = set(terms), set(values)
    total = measure(claim, wanted, figures)
    if not total:
        return None
    places = find_spans(passage.text)
    covered = [cover(claim, passage, *place) for place in places]
    best: SentenceSpan | None = None
    for first in range(len(places)):
        found_terms, found_values = set[Term](), set[Value]()
        for last in range(first, min(first + WIDEST, len(places))):
            found_terms |= covered[last][0]
            found_values |= covered[last][1]
            share = measure(claim, found_terms & wanted, found_values & figures) / total
            score = share - BREVITY * (last - first)
            if share and (best is None or score > best.score):
                there = frozenset(found_terms), frozenset(found_values)
                best = SentenceSpan(passage, places[first][0], places[last][1], score, *there)
    return best


def measure(claim: ComparedClaim, terms: Iterable[Term], values: Iterable[Value]) -> float:
    return sum(map(claim.weigh, terms)) + VALUE * sum(1 for _ in values)


def cover(claim: ComparedClaim, passage: Passage, start: int, stop: int) -> tuple[set[Term], set[Value]]:
    """The words and values of a claim that this sentence of a passage has."""
    text = passage.text[start:stop]
    if ORDERS.search(text):
        return set(), set()
    stems = {one.term for one in read_terms(text, passage.language)}
    plain = fold_words(text)
    terms = {one for one in claim.terms if has_term(one, stems, plain)}
    there = find_values(text)
    values = {one for one in claim.values if any(_are_equal_here(one, other, passage) for other in there)}
    return terms, values


def _are_equal_here(value: Value, other: Value, passage: Passage) -> bool:
    """Whether two values say the same: a number without a unit only where the unit stands elsewhere, as in a table."""
    if value.unit is None or other.unit is not None or other.kind != "number":
        return are_equal(value, other)
    measured = any(one.unit and one.unit.dimension == value.unit.dimension for one in find_values(passage.text))
    return are_equal(value, other) and (measured or not _read_unit_words(value).isdisjoint(fold_words(passage.text)))


def _read_unit_words(value: Value) -> frozenset[str]:
    return frozenset(one for one in fold_words(value.written) if not one[:1].isdigit())


def has_term(term: Term, stems: set[str], plain: frozenset[str]) -> bool:
    return term.term in stems or fold(term.text) in plain or any(are_alike(term.term, other) for other in stems)


def measure_coverage(claim: ComparedClaim, spans: Sequence[SentenceSpan]) -> float:
    """The share of a claim that its spans cover; titles and headings of their passages count as well."""
    about = " ".join(span.passage.about for span in spans)
    stems = {one.term for one in read_terms(about, claim.language)}
    plain = fold_words(about)
    terms = {one for span in spans for one in span.terms}
    terms |= {one for one in claim.terms if has_term(one, stems, plain)}
    values = {one for span in spans for one in span.values} | {one for one in claim.values if is_value_in(one, about)}
    total = measure(claim, claim.terms, claim.values)
    return measure(claim, terms, values) / total if total else 0.0


def is_value_in(value: Value, text: str) -> bool:
    return any(are_equal(value, other) for other in find_values(text))


def list_sentences(span: SentenceSpan) -> list[tuple[int, int]]:
    """The sentences of a span."""
    return [one for one in find_spans(span.passage.text) if one[0] >= span.start and one[1] <= span.stop]


def find_nearest(claim: ComparedClaim, span: SentenceSpan) -> tuple[int, int]:
    return max(
        list_sentences(span),
        key=lambda one: measure(claim, *cover(claim, span.passage, *one)),
        default=(span.start, span.stop),
    )


def read_around(span: SentenceSpan) -> str:
    """A span with the sentence before it and the one behind it; all of a passage where somebody is only hinted at."""
    if fold_words(span.text) & TELLERS:
        return span.passage.text
    places = find_spans(span.passage.text)
    within = [n for n, (start, stop) in enumerate(places) if start < span.stop and span.start < stop]
    if not within:
        return span.text
    first, last = max(0, within[0] - 1), min(len(places) - 1, within[-1] + 1)
    return span.passage.text[places[first][0] : places[last][1]]
