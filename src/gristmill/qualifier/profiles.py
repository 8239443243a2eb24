"""Profiles: who “we” are in a scope, and how long before a deadline we begin."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from gristmill.db import Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import ScopeId
from gristmill.models import ClientIdentity
from gristmill.scopes import Scope, find_scope, scope_id

SQL = queries("gristmill.qualifier", "profiles.sql")
MOST = 1_000  # profiles that are listed
MOST_NAMES = 200
LONGEST_NAME = 200
LONGEST_LEAD = 365  # days


@dataclass(frozen=True)
class Profile:
    """What is known of one scope itself, without the levels above it."""

    client: str
    project: str
    names: Sequence[str]
    addresses: Sequence[str]
    lead_days: int | None
    changed_at: datetime
    changed_by: str

    @property
    def scope(self) -> Scope:
        return Scope(self.client, self.project)


async def load_profiles(tx: Tx, clients: Iterable[str]) -> list[Profile]:
    """The profiles of these clients and of their projects, and that of everybody."""
    return await tx.all(SQL["load_profiles"], Profile, clients=sorted(set(clients)))


async def list_profiles(tx: Tx) -> list[Profile]:
    return await tx.all(SQL["list_profiles"], Profile, limit=MOST)


async def load_profile(tx: Tx, scope: Scope) -> Profile:
    found = [one for one in await load_profiles(tx, [scope.client]) if one.scope == scope]
    if not found:
        raise Unknown(f"There is no profile of {scope}: gristmill profile set makes one.")
    return found[0]


async def set_profile(
    tx: Tx,
    scope: Scope,
    by: str,
    *,
    names: Sequence[str] = (),
    addresses: Sequence[str] = (),
    lead_days: int | None = None,
) -> Profile:
    """Say who the people of a scope are; what was said before is replaced."""
    if lead_days is not None and not 0 <= lead_days <= LONGEST_LEAD:
        raise Refused(f"The lead is {lead_days} days: it goes from 0 to {LONGEST_LEAD}.")
    await tx.execute(
        SQL["set_profile"],
        scope=await scope_id(tx, scope),
        names=_clean_names(names, "name"),
        addresses=[_check_address(one) for one in _clean_names(addresses, "address")],
        lead_days=lead_days,
        by=by[:200],
    )
    return await load_profile(tx, scope)


async def remove_profile(tx: Tx, scope: Scope) -> None:
    own = await find_scope(tx, scope)
    if own is None or await tx.value(SQL["remove_profile"], scope=own) is None:
        raise Unknown(f"There is no profile of {scope}.")


async def find_own_addresses(tx: Tx, scopes: Sequence[ScopeId]) -> dict[ScopeId, list[str]]:
    """The addresses that are ours in each of these scopes."""
    return await tx.pairs(SQL["addresses_of"], dict[ScopeId, list[str]], scopes=list(scopes))


def _clean_names(names: Sequence[str], what: str) -> list[str]:
    found = list(dict.fromkeys(" ".join(one.split()) for one in names if one.strip()))
    if len(found) > MOST_NAMES:
        raise Refused(f"A profile has at most {MOST_NAMES} {what}s.")
    if too_long := next((one for one in found if len(one) > LONGEST_NAME or not one.isprintable()), None):
        raise Refused(f"“{too_long[:40]}” is no {what}: use at most {LONGEST_NAME} printable characters.")
    return found


def _check_address(address: str) -> str:
    name, at, host = address.rpartition("@")
    if not at or not host or " " in name:
        raise Refused(f"“{address}” is no e-mail address: write for example jana@acme.example, or @acme.example.")
    return address.casefold()


def find_identity(profiles: Sequence[Profile], scope: Scope) -> ClientIdentity:
    """All names and addresses that are ours in a scope: its own, its client's, everybody's."""
    seen = _list_levels(profiles, scope)
    return ClientIdentity(
        tuple(dict.fromkeys(name for one in seen for name in one.names)),
        tuple(dict.fromkeys(address for one in seen for address in one.addresses)),
    )


def find_lead_of(profiles: Sequence[Profile], scope: Scope, otherwise: int) -> timedelta:
    """The lead of the nearest level that says one."""
    said = [one.lead_days for one in _list_levels(profiles, scope) if one.lead_days is not None]
    return timedelta(days=said[0] if said else otherwise)


def _list_levels(profiles: Sequence[Profile], scope: Scope) -> list[Profile]:
    """The profiles that a scope sees, the nearest first."""
    levels = (scope, Scope(scope.client), Scope())
    return [one for level in dict.fromkeys(levels) for one in profiles if one.scope == level]
