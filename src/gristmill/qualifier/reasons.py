"""Why something was decided: the rules that spoke, in order, each with the words that it went by."""

from collections.abc import Iterable
from dataclasses import dataclass

from gristmill.models import TextEvidence


@dataclass(frozen=True, slots=True)
class ReasonWords:
    """Words that a rule went by, and where they stand: at characters of the text, or in a field such as the sender."""

    words: str
    start: int | None = None
    stop: int | None = None
    where: str = "text"


@dataclass(frozen=True, slots=True)
class DecisionStep:
    """One rule that spoke: its name, a sentence for people, and its words."""

    rule: str
    sentence: str
    words: tuple[ReasonWords, ...] = ()


def words_of(evidence: Iterable[TextEvidence | None]) -> tuple[ReasonWords, ...]:
    """Places in the text as words of a rule, each once; what a header or a field says has no place in the text."""
    found = [ReasonWords(one.words, one.start, one.stop) for one in evidence if one is not None and one.words]
    return tuple(dict.fromkeys(found))
