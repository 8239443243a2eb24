"""Letters: what one room asks of another, and how they travel through the database."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import msgspec

from gristmill.errors import Permanent, Refused
from gristmill.ids import ScopeId, TaskId

FARTHEST = timedelta(days=3653)


@runtime_checkable
class Letter(Protocol):
    """A frozen dataclass with a `kind`; its queue is `queue`, or the part of the kind before the dot."""

    kind: ClassVar[str]


@dataclass(frozen=True)
class Unique:
    """At most one task with this key: while one is active, or within `period` of its being sent."""

    key: str
    conflict: Literal["ignore", "replace", "error"] = "ignore"
    period: timedelta | None = None


@dataclass(frozen=True)
class Envelope:
    """A letter and what is written on the outside of it."""

    letter: Letter
    queue: str | None = None
    foreground: bool = False
    priority: int = 0
    position: int | None = None
    run_at: datetime | None = None
    delay: timedelta | None = None
    parent: TaskId | None = None
    after: TaskId | None = None
    serial_key: str | None = None
    unique: Unique | None = None
    max_attempts: int | None = None
    owner: str | None = None
    scope: ScopeId | None = None  # None: that of the task, or of the client, that sends it

    def __post_init__(self) -> None:
        if not -100 <= self.priority <= 100:
            raise Refused(f"The priority {self.priority} is out of range: it goes from -100 to 100, higher first.")
        if self.run_at is not None and self.run_at.tzinfo is None:
            raise Refused("run_at needs a time zone, or nobody knows when it is.")
        if self.run_at is not None and not 1970 <= self.run_at.year <= 9000:
            raise Refused(f"run_at is in the year {self.run_at.year}: choose one between 1970 and 9000.")
        if self.delay is not None and abs(self.delay) > FARTHEST:
            raise Refused(f"A delay of {self.delay.days:,} days is too long: ten years at most.")
        if self.max_attempts is not None and not 1 <= self.max_attempts <= 1000:
            raise Refused(f"max_attempts is {self.max_attempts}: it goes from 1 to 1000.")

    @property
    def plain(self) -> bool:
        """Whether it can be claimed at once, and be sent in one statement with others like it."""
        return (
            self.position is None
            and self.run_at is None
            and self.delay is None
            and self.after is None
            and self.serial_key is None
            and self.unique is None
        )


def enclose(letter: Letter | Envelope) -> Envelope:
    return letter if isinstance(letter, Envelope) else Envelope(letter)


def queue_of(letter: type[Letter] | Letter) -> str:
    return getattr(letter, "queue", None) or letter.kind.partition(".")[0]


@cache
def has_fixed_queue(letter: type[Letter]) -> bool:
    """Whether all letters of this class go to the same queue; a field or a property `queue` may differ."""
    fixed = "queue" not in {field.name for field in fields(letter)} if is_dataclass(letter) else False
    return fixed and isinstance(getattr(letter, "queue", None), str | None)


POSITIONED = 0


def lane(envelope: Envelope) -> int:
    return lane_of(envelope.position, envelope.priority, envelope.foreground)


def lane_of(position: int | None, priority: int, foreground: bool) -> int:
    """The lane, lower first: explicit positions, then foreground, then priority; a retry that goes first is even."""
    if position is not None:
        return POSITIONED
    return (2 + 2 * (100 - priority) + (0 if foreground else 1000)) | 1


_encoder = msgspec.json.Encoder()
NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # not the escaped backslash before a plain "u0000"


def encode(letter: Letter, limit: int) -> bytes:
    """The letter as JSON, refused when it is larger than one task should carry or PostgreSQL cannot hold it."""
    try:
        body = _encoder.encode(letter)
    except UnicodeEncodeError as error:
        raise Refused(
            f"A {letter.kind} letter holds text that is not Unicode ({error.reason}): clean it first."
        ) from error
    if b"\\u0000" in body and NUL.search(body):
        raise Refused(f"A {letter.kind} letter holds a NUL character, which PostgreSQL cannot store: remove it first.")
    if len(body) > limit:
        raise Refused(
            f"A {letter.kind} letter of {len(body):,} bytes is too large (limit {limit:,}): "
            "store the data and send its id."
        )
    return body


def encode_all(letters: Sequence[Letter], limit: int) -> list[bytes]:
    """As `encode` each, in a third of the time."""
    try:
        bodies = _encoder.encode_lines(letters).split(b"\n")[:-1]  # JSON has no line breaks within
    except UnicodeEncodeError:
        return [encode(letter, limit) for letter in letters]  # which says which letter is wrong
    for letter, body in zip(letters, bodies, strict=True):
        if len(body) > limit or b"\\u0000" in body:
            encode(letter, limit)
    return bodies


@cache
def _decoder(letter: type[Letter]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(letter)


def decode(letter: type[Letter], body: str | bytes) -> Letter:
    """The letter that this JSON is, or one sentence about why it is not."""
    try:
        return _decoder(letter).decode(body)
    except msgspec.MsgspecError as error:
        raise Permanent(f"the payload does not fit {letter.kind}: {error}") from error


def to_plain(value: Any) -> Any:
    """A result as plain JSON values."""
    return msgspec.to_builtins(value)


def to_json(value: Any) -> str:
    return _encoder.encode(value).decode()
