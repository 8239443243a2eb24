"""An effect as a run intends it, and as it stands in the ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal, get_args

from gristmill.agents.runs import write_keepable
from gristmill.ids import EffectId, RunId

EffectState = Literal["intended", "approved", "executing", "done", "failed", "unknown"]
EFFECT_STATES: tuple[EffectState, ...] = get_args(EffectState)
Changes = Literal["nothing", "workspace", "outside"]


@dataclass(frozen=True)
class Effect:
    """Something that a run wants to change.

    `key` is the place in the plan and the number of the call there: after a restart the same call has the same key.
    `prepared` is what was found out before, and belongs to what a person approves. A `repeatable` effect may be begun
    again with the same key: the other side does it once.
    """

    key: str
    tool: str
    arguments: Mapping[str, Any]
    summary: str
    changes: Changes
    repeatable: bool
    prepared: Mapping[str, Any] = field(default_factory=dict[str, Any])
    files: Sequence[str] = ()
    origins: Sequence[Mapping[str, Any]] = ()

    @property
    def hash(self) -> bytes:
        return hash_call(self.tool, self.arguments)


def hash_call(tool: str, arguments: Mapping[str, Any]) -> bytes:
    """Of a call: two calls with one hash ask for the same thing."""
    return sha256(write_keepable([tool, arguments]).encode()).digest()


@dataclass(frozen=True)
class EffectResult:
    """What came of an effect, in words for a model and in values for a program."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class EffectRow:
    """A row of `agent_effect`."""

    id: EffectId
    run: RunId
    key: str
    tool: str
    arguments: Mapping[str, Any]
    hash: bytes
    prepared: Mapping[str, Any]
    summary: str
    changes: Changes
    repeatable: bool
    files: Sequence[str]
    origins: Sequence[Mapping[str, Any]]
    reasons: Sequence[str]
    state: EffectState
    attempt: int
    approved_by: str | None
    result: Mapping[str, Any] | None
    error: str | None
    intended_at: datetime
    approved_at: datetime | None
    started_at: datetime | None
    settled_at: datetime | None
    refused_by: str | None = None  # the person who said no

    @property
    def may_have_acted(self) -> bool:
        """Whether it has changed something, or may have."""
        return self.changes != "nothing" and self.state not in ("intended", "failed")

    @property
    def idempotency_key(self) -> str:
        """What the other side is told, the same at every attempt."""
        return f"gristmill-effect-{self.id}-{self.hash.hex()[:16]}"


def reaches_same_target(effect: EffectRow, earlier: EffectRow) -> bool:
    """Whether an effect would reach what another one of the same tool has reached; one address of several is enough."""
    now, before = _list_targets(effect), _list_targets(earlier)
    addresses = {value for _, value in now if "@" in value}
    return bool(addresses & {value for _, value in before}) if addresses else now == before


def _list_targets(row: EffectRow) -> set[tuple[str, str]]:
    return {(one["argument"], str(one["value"]).strip().casefold()) for one in row.origins}


@dataclass(frozen=True)
class EffectLine:
    """An effect without its arguments and its result."""

    id: EffectId
    key: str
    tool: str
    summary: str
    changes: Changes
    state: EffectState
    attempt: int
    approved_by: str | None
    error: str | None
    intended_at: datetime
    settled_at: datetime | None
