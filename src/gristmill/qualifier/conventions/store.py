"""Keeps conventions: stated, changed, listed with how often they held, taken back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from gristmill.db import Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import ScopeId, WorkItemId
from gristmill.qualifier.conventions.contradictions import (
    Contradiction,
    Stated,
    find_contradiction,
    find_contradictions,
)
from gristmill.qualifier.conventions.language import format_convention, parse_convention
from gristmill.qualifier.conventions.model import ConventionRule
from gristmill.scopes import Scope, scope_id

SQL = queries("gristmill.qualifier.conventions", "conventions.sql")
MOST = 1_000  # conventions that are listed, and compared with each other
LONGEST_NOTE = 500
FOLD_AFTER = 2_000  # rows of counts: if there are more, the next fold adds them up
HISTORY = 50  # former versions that are shown


@dataclass(frozen=True)
class Convention:
    """A convention as people see it."""

    id: int
    client: str
    project: str
    text: str
    version: int
    enabled: bool
    note: str
    origin: WorkItemId | None
    created_at: datetime
    created_by: str
    changed_at: datetime
    fired: int
    fired_at: datetime | None

    @property
    def scope(self) -> Scope:
        return Scope(self.client, self.project)


@dataclass(frozen=True)
class ConventionVersion:
    """What a convention said at some time."""

    version: int
    text: str
    enabled: bool
    at: datetime
    by: str


@dataclass(frozen=True)
class InForce:
    """A convention that decisions follow."""

    id: int
    version: int
    text: str
    client: str
    project: str

    @property
    def scope(self) -> Scope:
        return Scope(self.client, self.project)

    @property
    def rule(self) -> ConventionRule:
        return parse_convention(self.text)

    @property
    def nearness(self) -> int:
        """A project's convention stands above its client's, and that above everybody's."""
        return bool(self.client) + bool(self.project)

    def is_seen_from(self, client: str, project: str) -> bool:
        return self.client in ("", client) and self.project in ("", project)


async def add_convention(
    tx: Tx, scope: Scope, text: str, by: str, *, note: str = "", origin: WorkItemId | None = None
) -> Convention:
    """State a convention; it holds for the items that are decided from now on."""
    written = format_convention(parse_convention(text))
    if len(note) > LONGEST_NOTE:
        raise Refused(f"The note of a convention has at most {LONGEST_NOTE} characters.")
    for one in await list_conventions(tx, scopes=[await scope_id(tx, scope)]):
        if one.text == written:
            raise Refused(f"Convention {one.id} says the same already.")
    own = await scope_id(tx, scope)
    id_ = await tx.only_value(
        SQL["add_convention"], int, scope=own, text=written, note=note, origin=origin, by=by[:200]
    )
    return await load_convention(tx, id_)


async def change_convention(
    tx: Tx, id_: int, by: str, *, text: str | None = None, enabled: bool | None = None
) -> Convention:
    """Let it say something else from now on, or switch it on or off; the version before is kept."""
    written = format_convention(parse_convention(text)) if text is not None else None
    if await tx.value(SQL["change_convention"], id=id_, text=written, enabled=enabled, by=by[:200]) is None:
        raise _unknown(id_)
    return await load_convention(tx, id_)


async def remove_convention(tx: Tx, id_: int) -> str:
    """Take it back; what it said."""
    text = await tx.value(SQL["remove_convention"], str, id=id_)
    if text is None:
        raise _unknown(id_)
    return text


async def load_convention(tx: Tx, id_: int) -> Convention:
    found = await tx.one(SQL["list_conventions"], Convention, id=id_, scopes=None, limit=1)
    if found is None:
        raise _unknown(id_)
    return found


def _unknown(id_: int) -> Unknown:
    return Unknown(f"There is no convention {id_}.", listed_by="gristmill convention ls")


async def list_conventions(tx: Tx, *, scopes: Sequence[ScopeId] | None = None, limit: int = MOST) -> list[Convention]:
    """The oldest first, with how often each held."""
    wanted = list(scopes) if scopes is not None else None
    return await tx.all(SQL["list_conventions"], Convention, id=None, scopes=wanted, limit=limit)


async def list_versions(tx: Tx, id_: int) -> list[ConventionVersion]:
    """What it said and says, the newest first."""
    return await tx.all(SQL["list_versions"], ConventionVersion, id=id_, limit=HISTORY)


async def load_in_force(tx: Tx, clients: Iterable[str]) -> list[InForce]:
    """All conventions that items of these clients may have to follow."""
    return await tx.all(SQL["in_force"], InForce, clients=sorted(set(clients)))


async def count_firings(tx: Tx, fired: Iterable[int]) -> None:
    """Count a convention that held, in a row of its own: no decision waits for another."""
    for one in fired:
        await tx.add(SQL["count_firings"], convention=one, n=1)


async def fold_firings(tx: Tx) -> None:
    """Add up the counts of each convention into one row, if there are many rows."""
    await tx.execute(SQL["fold_firings"], most=FOLD_AFTER)


# --- contradictions


def find_all_contradictions(conventions: Sequence[Convention]) -> list[Contradiction]:
    """Between those of these that are switched on."""
    return find_contradictions([_state(one) for one in conventions if one.enabled])


def find_contradictions_of(one: Stated, others: Sequence[Convention]) -> list[Contradiction]:
    """Between a convention and the others that are switched on."""
    pairs = (find_contradiction(_state(other), one) for other in others if other.enabled and other.id != one.id)
    return [found for found in pairs if found is not None]


async def find_contradictions_with(tx: Tx, text: str, scope: Scope) -> list[Contradiction]:
    """The conventions that a text contradicts, whether it is stated or only tried."""
    known = await list_conventions(tx)
    written = format_convention(parse_convention(text))
    same = next((one for one in known if (one.text, one.scope) == (written, scope)), None)
    return find_contradictions_of(Stated(same.id if same else 0, scope, parse_convention(written)), known)


def _state(one: Convention) -> Stated:
    return Stated(one.id, one.scope, parse_convention(one.text))
