"""Who calls: the holder of a key or of a session, looked up in the database by every request.

Nothing is remembered between requests: a key that is revoked opens nothing a moment later, in any process.
"""

from dataclasses import dataclass

from gristmill.db import Tx, queries
from gristmill.scopes import Scope
from gristmill.web.access.keys import KeyRole
from gristmill.web.access.secrets import digest

SQL = queries("gristmill.web.access", "access.sql")


@dataclass(frozen=True)
class Identity:
    """The holder of a key, or of the one-time link of the operator."""

    key: int | None
    name: str
    role: KeyRole
    client: str | None
    project: str | None
    is_stale: bool  # whether its last use was noted more than a minute ago

    @property
    def bound_to(self) -> Scope | None:
        return None if self.client is None else Scope(self.client, self.project or "")


async def identify_key(tx: Tx, secret: str) -> Identity | None:
    return await _note_use(tx, await tx.one(SQL["find_by_key"], Identity, digest=digest(secret)))


async def identify_session(tx: Tx, secret: str) -> Identity | None:
    return await _note_use(tx, await tx.one(SQL["find_by_session"], Identity, digest=digest(secret)))


async def _note_use(tx: Tx, found: Identity | None) -> Identity | None:
    """The time of the last use is kept to the minute: a request does not cost a write."""
    if found and found.is_stale and found.key is not None:
        await tx.execute(SQL["note_use"], id=found.key)
        await tx.flush()
    return found
