"""Keys: made with a role, bound to a client, a project or nothing, and revoked."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from gristmill.db import Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.scopes import GLOBAL, Scope, scope_id
from gristmill.web.access.audit import record
from gristmill.web.access.secrets import KEY_PREFIX, digest, make_secret

if TYPE_CHECKING:  # it loads FastAPI, which the commands that only search do not need
    from gristmill.serving import Caller

SQL = queries("gristmill.web.access", "access.sql")
KeyRole = Literal["viewer", "manager", "admin"]
LONGEST_NAME = 100


@dataclass(frozen=True)
class AccessKey:
    """A key as it is listed; its secret is known to its holder alone."""

    id: int
    name: str
    role: KeyRole
    client: str | None  # None: bound to nothing, the operator's
    project: str | None
    created_at: datetime
    last_used_at: datetime | None
    revoked_at: datetime | None

    @property
    def bound_to(self) -> str:
        return "all clients" if self.client is None else str(Scope(self.client, self.project or ""))


@dataclass(frozen=True)
class NewKey:
    """A key at the only moment at which its secret is shown."""

    key: AccessKey
    secret: str


async def add_key(tx: Tx, caller: "Caller", name: str, role: KeyRole, bound_to: Scope | None = None) -> NewKey:
    """A new key; a name belongs to one key that is not revoked."""
    check_name(name)
    if bound_to == GLOBAL:
        raise Refused("A key is bound to a client, to one of its projects, or to nothing: GLOBAL is no client.")
    secret = make_secret(KEY_PREFIX)
    scope = None if bound_to is None else await scope_id(tx, bound_to)
    id = await tx.value(SQL["add_key"], int, digest=digest(secret), name=name, role=role, bound_to=scope)
    if id is None:
        raise Refused(f"There is a key named “{name}” already: revoke it first, or choose another name.")
    key = await load_key(tx, id)
    await record(tx, caller, "add key", f"key {key.name}", role=role, bound_to=key.bound_to)
    return NewKey(key, secret)


def check_name(name: str) -> None:
    if not 0 < len(name) <= LONGEST_NAME or name != name.strip() or not name.isprintable():
        raise Refused(f"A key needs a name of 1 to {LONGEST_NAME} printable characters, without spaces around it.")


def read_scope(client: str | None, project: str | None) -> Scope | None:
    """What a key is bound to; an empty name most likely comes from a field that nobody filled."""
    scope = Scope(client or "", project or "")
    if scope == GLOBAL and (client is not None or project is not None):
        raise Refused("The name is empty: name the client, or leave it out for a key that sees all clients.")
    return None if scope == GLOBAL else scope


async def list_keys(tx: Tx, *, all: bool = False, after: int = 0, limit: int | None = None) -> Sequence[AccessKey]:
    """The keys in the order in which they were made, those behind `after`; with `all` also the revoked ones."""
    return await tx.all(SQL["list_keys"], AccessKey, all=all, id=None, after=after, limit=limit)


async def load_key(tx: Tx, id: int) -> AccessKey:
    found = await tx.one(SQL["list_keys"], AccessKey, all=True, id=id, after=0, limit=1)
    if found is None:
        raise Unknown(f"There is no key {id}.")
    return found


async def find_key(tx: Tx, name_or_id: str) -> AccessKey:
    """The key that a person names by its name, or by its number."""
    id = await tx.value(SQL["find_key_by_name"], int, name=name_or_id)
    if id is None and name_or_id.isdecimal() and len(name_or_id) < 10:
        id = int(name_or_id)
    if id is None:
        raise Unknown(f"There is no key “{name_or_id}”.", listed_by="gristmill key ls")
    return await load_key(tx, id)


async def revoke_key(tx: Tx, caller: "Caller", id: int) -> AccessKey:
    """From now on nobody signs in with this key, and its sessions end."""
    key = await load_key(tx, id)
    if await tx.value(SQL["revoke_key"], id=id) is None:
        raise Refused(f"The key {key.name} was revoked before.")
    await record(tx, caller, "revoke key", f"key {key.name}")
    return await load_key(tx, id)


async def has_key(tx: Tx) -> bool:
    """Whether there is any key that opens."""
    return bool(await tx.value(SQL["has_key"]))
