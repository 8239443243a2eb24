"""The audit log: every change is written down in its own transaction, with who made it and from where."""

import json
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gristmill.db import Tx, queries
from gristmill.scopes import Scope, scope_id

if TYPE_CHECKING:  # it brings FastAPI, and the commands that only search come by this file, too
    from gristmill.serving import Caller

# the write with an Idempotency-Key that is being done
current_write: ContextVar[int | None] = ContextVar("write", default=None)
SQL = queries("gristmill.web.access", "audit.sql")
LONGEST = 500  # characters of a subject, and of a text in the details


async def record(tx: Tx, caller: "Caller", action: str, subject: str, **details: Any) -> None:
    """Write into the log what this caller changes in this transaction; both come to be, or neither."""
    await tx.execute(
        SQL["record"],
        scope=await scope_id(tx, caller.scope),
        caller=caller.name,
        key=caller.key,
        role=caller.role,
        action=action,
        subject=_shorten(subject),
        details=json.dumps({name: _plain(value) for name, value in details.items()}, ensure_ascii=False),
        address=caller.address,
    )
    if (write := current_write.get()) is not None:
        await tx.execute(SQL["note_write"], id=write)


@dataclass(frozen=True)
class Change:
    """A line of the log."""

    id: int
    at: datetime
    caller: str
    key: int | None
    role: str
    client: str
    project: str
    action: str
    subject: str
    details: dict[str, Any]
    address: str

    @property
    def scope(self) -> Scope:
        return Scope(self.client, self.project)


@dataclass(frozen=True)
class ChangeFilter:
    """Which changes are meant; all, if nothing is said."""

    caller: str | None = None
    action: str | None = None
    subject: str | None = None
    since: datetime | None = None


async def list_changes(
    tx: Tx, seen_from: Scope | None, wanted: ChangeFilter, *, before: int | None = None, limit: int = 50
) -> Sequence[Change]:
    """Changes, newest first: of a client those that its own keys made, without a client all of them."""
    return await tx.all(
        SQL["list_audit"],
        Change,
        client=seen_from and seen_from.client,
        project=seen_from.project if seen_from else "",
        before=before,
        limit=limit,
        **vars(wanted),
    )


def _plain(value: Any) -> Any:
    match value:
        case None | bool() | int() | float():
            return value
        case list() | tuple():
            return [_plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        case _:
            return _shorten(str(value))


def _shorten(text: str) -> str:
    text = text.replace("\x00", "").encode(errors="replace").decode()  # neither zero bytes nor halves of characters
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
