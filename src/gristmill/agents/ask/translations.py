"""Compares a claim with a passage in another language by the meanings of its words."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from gristmill.agents.ask.meanings import APART, DEED, NEGATED, ROLE, find_meanings, read_meanings
from gristmill.agents.ask.polarity import walk_words
from gristmill.agents.ask.spans import ComparedClaim, SentenceSpan, find_nearest, measure
from gristmill.agents.ask.words import Term
from gristmill.knowledge import fold

ENOUGH = 0.5  # the share of a claim that the passage must have, in whatever words


@dataclass(frozen=True, slots=True)
class Comparison:
    """What a passage in another language says of a claim, and why."""

    says: Literal["same", "opposite", "other", "unclear"]
    reason: str = ""


UNCLEAR = Comparison("unclear", "The passage is in another language: only names and figures were compared.")


def is_translated(claim: ComparedClaim, span: SentenceSpan) -> bool:
    """Whether the passage is in another language, and its words are other words, too."""
    spoken = span.passage.language
    if not spoken or claim.language in (None, spoken):
        return False
    plain = [one for one in claim.terms if not _is_in_name(one, claim)]
    # a short text may be taken for another language than its own: there, the words are the same
    return not plain or sum(one in span.terms for one in plain) < len(plain) / 2


def compare_meanings(claim: ComparedClaim, span: SentenceSpan) -> Comparison:
    """What is done must be done in the passage as well: a deed, and who does it."""
    ours = read_meanings(claim.text, claim.language)
    text = span.passage.text[slice(*find_nearest(claim, span))]
    there = read_meanings(text, span.passage.language)
    if reason := _find_flipped(claim.text, claim.language, text, span.passage.language):
        return Comparison("opposite", reason)
    meant = _join(there)
    for known in (DEED, ROLE):
        others = [(word, own) for word, meanings in there if (own := meanings & known)]
        for word, meanings in ours:
            own = meanings & known
            if not own or not others or own & meant:
                continue
            apart = next((other for other, those in others if any((a, b) in APART for a in own for b in those)), None)
            if apart:
                return Comparison("opposite", f"The passage says “{apart}”, not “{word}”.")
            return Comparison("other", f"The passage does not say “{word}”, but “{others[0][0]}”.")
    common = _join(ours) & meant
    is_said = bool(common & DEED) or (bool(common) and not _join(ours) & DEED)
    return Comparison("same") if is_said and _measure_share(claim, span, common) >= ENOUGH else UNCLEAR


def _join(words: Iterable[tuple[str, frozenset[str]]]) -> frozenset[str]:
    return frozenset[str]().union(*(meanings for _, meanings in words))


def _find_flipped(claim: str, language: str | None, text: str, spoken: str | None) -> str:
    """A deed that one of both denies."""
    ours, theirs = _read_polarity(claim, language), _read_polarity(text, spoken)
    flipped = [one for one in ours.keys() & theirs.keys() & DEED if not ours[one] & theirs[one]]
    return "The passage says the opposite." if flipped else ""


def _read_polarity(text: str, language: str | None) -> dict[str, set[bool]]:
    """The meanings of a text, each with True where it is denied."""
    found: dict[str, set[bool]] = {}
    for word, is_denied in walk_words(text, language):
        # Czech denies a verb by how it begins: nepodepsal
        has_prefix = language in NEGATED and fold(word).startswith("ne") and bool(find_meanings(word[2:], language))
        for meaning in find_meanings(word, language):
            found.setdefault(meaning, set()).add(is_denied or has_prefix)
    return found


def _measure_share(claim: ComparedClaim, span: SentenceSpan, common: Iterable[str]) -> float:
    """The share of a claim that the passage has: names, values, the same words, and words that mean the same."""
    meant = frozenset(common)
    terms = {one for one in claim.terms if one in span.terms or find_meanings(one.text, claim.language) & meant}
    total = measure(claim, claim.terms, claim.values)
    return measure(claim, terms, span.values) / total if total else 0.0


def _is_in_name(term: Term, claim: ComparedClaim) -> bool:
    return any(name.start <= term.start < name.stop for name in claim.names)
