"""What a convention says: a condition on an item, and what is to become of the items that fulfil it."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Literal

from gristmill.qualifier.model import TYPES, Urgency

Comparison = Literal["<", "<=", "=", ">=", ">"]
Fate = Literal["ignore", "handled", "later", "now"]

TEXT_FIELDS = ("sender", "recipient", "subject", "text", "attachment")
REFERENCE_FIELDS = ("invoice", "order", "contract", "issue", "iban", "case")
NAMED_FIELDS = ("header", "field")  # each is followed by the name of a header, or of a field of a tracker
CHOICES: dict[str, tuple[str, ...]] = {
    "type": TYPES,
    "language": ("en", "de", "cs", "hr"),
    "noise": (
        "auto_reply",
        "bounce",
        "read_receipt",
        "calendar_reply",
        "newsletter",
        "acknowledgement",
        "noise_sender",
    ),
    "payment": ("due",),
    "request": ("there",),
    "mention": ("there",),
    "deadline": ("there",),
}
DAYS_FIELDS = ("deadline", "age")  # how far away the deadline is; how old the item is
FIELDS = (*TEXT_FIELDS, *REFERENCE_FIELDS, *NAMED_FIELDS, *CHOICES, "amount", "age")
FATES: tuple[Fate, ...] = ("ignore", "handled", "later", "now")


@dataclass(frozen=True, slots=True)
class TextTest:
    """A text is like one of these patterns (`is`), or holds one of these phrases (`has`)."""

    field: str
    how: Literal["is", "has"]
    values: tuple[str, ...]
    name: str = ""  # of a header, or of a field of a tracker


@dataclass(frozen=True, slots=True)
class ChoiceTest:
    """A field has one of the few values that it may have."""

    field: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AmountTest:
    """The amount that is to be paid, or else the largest one in the text."""

    how: Comparison
    value: Decimal
    currency: str = ""  # any


@dataclass(frozen=True, slots=True)
class DaysTest:
    """The deadline is so far away, or the item is so old."""

    field: str
    how: Comparison
    days: timedelta


Test = TextTest | ChoiceTest | AmountTest | DaysTest


@dataclass(frozen=True, slots=True)
class Negation:
    """The other one does not hold."""

    of: "Condition"


@dataclass(frozen=True, slots=True)
class AllOf:
    """All of these hold."""

    of: "tuple[Condition, ...]"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one of these holds."""

    of: "tuple[Condition, ...]"


Condition = Test | Negation | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class Consequence:
    """What becomes of an item; what is not said is left to the other rules."""

    fate: Fate | None = None
    wait: timedelta | None = None  # of the fate “later”: it is worked on after so long
    urgency: Urgency | None = None
    assign: str = ""
    lead: timedelta | None = None  # how long before its deadline the item is worked on


@dataclass(frozen=True, slots=True)
class ConventionRule:
    """A convention as it is understood."""

    condition: Condition
    consequence: Consequence
