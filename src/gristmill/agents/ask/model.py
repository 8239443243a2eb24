"""What a question becomes: passages with numbers, sentences with citations and a verdict, and the answer of both."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from gristmill.ids import ChunkId, DocumentId

# partial: the passage is in another language, and only names and figures were compared
Verdict = Literal["supported", "partial", "unsupported", "contradicted"]
KEPT_VERDICTS: frozenset[Verdict] = frozenset(("supported", "partial"))  # the verdicts of sentences that make an answer
Kind = Literal["answer", "unknown", "passages"]  # sentences; I don't know; no model is configured, or it failed


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of evidence: `text` is exactly what the text of its page has from `start` to `stop`."""

    number: int  # by which the model names it, from 1
    document: DocumentId
    name: str
    title: str | None
    type: str | None
    page: int
    start: int
    stop: int
    heading: str
    language: str | None
    text: str
    score: float
    chunks: tuple[ChunkId, ...]
    record: int | None = None  # the id of the record that this is, if it is one
    via: str | None = None  # the name that led here, for what the second round found

    @property
    def about(self) -> str:
        """What is known of the passage beside its text: a claim may rest on it."""
        return " ".join(part for part in (self.title, self.heading, self.name) if part)


@dataclass(frozen=True, slots=True)
class Citation:
    """The span that supports a sentence, or contradicts it."""

    number: int  # of the passage
    document: DocumentId
    page: int
    start: int
    stop: int
    quote: str
    name: str
    title: str | None
    record: int | None = None


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """A sentence of the model without its marks, and what became of it."""

    text: str
    verdict: Verdict
    citations: tuple[Citation, ...] = ()
    reason: str = ""  # why it is not supported


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """The whole answer: `text` has the sentences that are shown, with the numbers of their citations."""

    kind: Kind
    question: str
    asked: str  # the question as it was searched: a follow-up is completed from the conversation
    language: str
    text: str
    sentences: tuple[CheckedSentence, ...] = ()
    passages: tuple[Passage, ...] = ()
    note: str | None = None
    model: str = ""
    prepared_ms: float = 0.0  # from the question to the moment at which the model was asked

    @property
    def citations(self) -> tuple[Citation, ...]:
        """Of the sentences that are shown, each once."""
        shown = (cited for one in self.sentences if one.verdict in KEPT_VERDICTS for cited in one.citations)
        return tuple(dict.fromkeys(shown))


# --- what is told while an answer is made


@dataclass(frozen=True, slots=True)
class PassagesFound:
    """The passages are known; the model is asked next, or nobody is."""

    passages: Sequence[Passage] = field(default=())
    asked: str = ""


@dataclass(frozen=True, slots=True)
class Waits:
    """The model has said nothing yet: what is waited for, in a sentence."""

    text: str


@dataclass(frozen=True, slots=True)
class Draft:
    """What the model is writing, not checked yet: the sentence at hand, from its beginning."""

    text: str


@dataclass(frozen=True, slots=True)
class SentenceSaid:
    """A sentence that was checked; `shown` is how it stands in the answer, empty if it is left out."""

    sentence: CheckedSentence
    shown: str


@dataclass(frozen=True, slots=True)
class AnswerEnded:
    """The answer is complete."""

    answer: CheckedAnswer


Event = PassagesFound | Waits | Draft | SentenceSaid | AnswerEnded
