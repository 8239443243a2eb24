"""What a text holds, each fact with its place in the text, and the five neutral hints that follow from the facts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Generic, Literal, TypeVar, cast

import msgspec

T = TypeVar("T")
Urgency = Literal["low", "normal", "high", "critical"]
ReferenceKind = Literal["invoice", "order", "contract", "issue", "iban", "case"]
MentionKind = Literal["mention", "address", "greeting", "assignee"]
NoiseKind = Literal[
    "auto_reply", "bounce", "read_receipt", "calendar_reply", "newsletter", "acknowledgement", "noise_sender"
]


@dataclass(frozen=True, slots=True)
class TextEvidence:
    """A place in the text: `text[start:stop] == words`. It is empty for a fact that a field or a header states."""

    start: int
    stop: int
    words: str


NOWHERE = TextEvidence(0, 0, "")


@dataclass(frozen=True, slots=True)
class FoundDate:
    """A day that the text names; a deadline is a day by which something must be done."""

    day: date
    clock: time | None
    evidence: TextEvidence
    is_deadline: bool


@dataclass(frozen=True, slots=True)
class FoundAmount:
    """An amount of money."""

    value: Decimal
    currency: str
    evidence: TextEvidence


@dataclass(frozen=True, slots=True)
class FoundReference:
    """The number of an invoice, order, contract, issue or case, or of a bank account; without blanks, in capitals."""

    kind: ReferenceKind
    value: str
    evidence: TextEvidence


@dataclass(frozen=True, slots=True)
class FoundRequest:
    """A sentence that asks the reader something, or to do something; the score says how surely (0 to 1)."""

    kind: Literal["question", "request"]
    score: float
    evidence: TextEvidence


@dataclass(frozen=True, slots=True)
class FoundMention:
    """A place that names the reader: @anna, an address, `Hi Anna,`, or `Assignee: Anna`."""

    who: str
    kind: MentionKind
    evidence: TextEvidence


@dataclass(frozen=True, slots=True)
class Noise:
    """A reason why nobody waits for an answer; the evidence is None if a header or the sender says it."""

    kind: NoiseKind
    because: str
    evidence: TextEvidence | None


@dataclass(frozen=True, slots=True)
class Payment:
    """Something is to be paid."""

    amount: FoundAmount | None
    due: date | None
    evidence: tuple[TextEvidence, ...]


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """Who “me” is: the names and addresses of a client."""

    names: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True)
class About:
    """What is known of a text beside its words."""

    written_at: datetime  # the item's own date, with its zone: relative dates are counted from here
    type: str = "document"
    subject: str = ""
    sender: str = ""
    recipients: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])  # by names in lower case
    fields: Mapping[str, str] = field(default_factory=dict[str, str])  # of a tracker: assignee, state, due, priority
    me: ClientIdentity = ClientIdentity()


@dataclass(frozen=True)
class TextFacts:
    """Everything that the rules found in a text."""

    language: str = ""  # en, de, cs, hr, or unknown
    dates: tuple[FoundDate, ...] = ()
    amounts: tuple[FoundAmount, ...] = ()
    references: tuple[FoundReference, ...] = ()
    requests: tuple[FoundRequest, ...] = ()
    mentions: tuple[FoundMention, ...] = ()
    noise: tuple[Noise, ...] = ()
    payment: Payment | None = None
    deadline: FoundDate | None = None  # the earliest that is not before the item's own date
    urgent: TextEvidence | None = None
    suspicion: TextEvidence | None = None  # it gives orders to a machine, or lures for passwords or money
    is_contract: bool = False  # or terms of trade: it says how bills are paid, and is none

    def as_json(self) -> dict[str, Any]:
        """The facts as they are stored with a decision."""
        return cast(dict[str, Any], msgspec.to_builtins(self))

    @classmethod
    def from_json(cls, stored: object) -> "TextFacts":
        """The facts of a decision that was stored."""
        return msgspec.convert(stored, cls)


@dataclass(frozen=True, slots=True)
class Hint(Generic[T]):
    """A value, and the places in the text from which it was taken."""

    value: T
    evidence: tuple[TextEvidence, ...] = ()


@dataclass(frozen=True)
class Hints:
    """Five things that a text holds, whatever becomes of it: only the qualifier routes."""

    has_actionable_content: Hint[bool]
    is_assigned_to_me: Hint[bool]
    has_future_deadline: Hint[bool]
    suggested_deadline: Hint[datetime | None]
    urgency: Hint[Urgency]
