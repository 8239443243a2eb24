"""The audit log: every change is written down in its own transaction, with who made it and from where."""

import json
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from gristmill.db import Tx, queries
from gristmill.errors import LeaseLost
from gristmill.scopes import Scope, scope_id

if TYPE_CHECKING:  # it loads FastAPI, which the commands that only search do not need
    from gristmill.serving import Caller

SQL = queries("gristmill.web.access", "audit.sql")
LOOK = 2_000  # lines that one portion of a filtered list looks at
ENDLESS = 2**63 - 1
LONGEST = 500  # characters of a subject, and of a text in the details


@dataclass
class RunningWrite:
    """The write with an Idempotency-Key that is being done; `in_parts`: it makes several changes."""

    id: int
    in_parts: bool = False


current_write: ContextVar[RunningWrite | None] = ContextVar("write", default=None)


def change_in_parts() -> None:
    """Say, before the first of several changes, that each is made once however often it is asked for.

    If the server dies between two of them, a repetition of the request makes those that are missing.
    """
    if (write := current_write.get()) is not None:
        write.in_parts = True


async def record(tx: Tx, caller: "Caller", action: str, subject: str, **details: Any) -> None:
    """Write into the log what this caller changes in this transaction; both come to be, or neither.

    An operator may look as a client: a change that is made so is the operator's, and is not in the client's log.
    """
    line: dict[str, Any] = {
        "caller": caller.name,
        "key": caller.key,
        "role": caller.role,
        "action": action,
        "subject": _shorten(subject),
        "address": caller.address,
    }
    told = {name: _plain(value) for name, value in details.items()}
    if caller.is_narrowed:
        line["details"] = json.dumps({"seen_as": str(caller.bound_to), **told}, ensure_ascii=False)
        await tx.execute(SQL["record_of_operator"], **line)
    else:
        line["details"] = json.dumps(told, ensure_ascii=False)
        await tx.execute(SQL["record"], scope=await scope_id(tx, caller.scope), **line)
    if (write := current_write.get()) is not None:
        await _confirm(tx, write)


async def _confirm(tx: Tx, write: RunningWrite) -> None:
    """Note in the transaction of the change that it takes place, unless a repetition of the request does it now."""
    if not await tx.value(SQL["confirm_write"], id=write.id, whole=not write.in_parts):
        raise LeaseLost("This took so long that a repetition of the request does it now: nothing was changed here.")


@dataclass(frozen=True)
class AuditLine:
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


@dataclass(frozen=True)
class AuditPortion:
    """Some changes; `next` is the line behind which the list goes on, None at its end."""

    changes: Sequence[AuditLine]
    next: int | None


class _Line(NamedTuple):
    id: int
    at: datetime


async def list_changes(
    tx: Tx, seen_from: Scope | None, wanted: ChangeFilter, *, before: int | None = None, limit: int = 50
) -> AuditPortion:
    """Changes, newest first: of a client those that its own keys made, without a client all of them.

    It looks at a fixed number of lines, whatever the filter: a portion may be short and still not be the last.
    """
    look = limit + 1 if wanted == ChangeFilter() else max(LOOK, limit + 1)
    lines = await _find_lines(tx, seen_from, wanted, before=ENDLESS if before is None else before, look=look)
    ids = [line.id for line in lines]
    found = await tx.all(SQL["fitting"], AuditLine, ids=ids, limit=limit + 1, **vars(wanted))
    if len(found) > limit:
        return AuditPortion(found[:limit], found[limit - 1].id)
    has_more = len(lines) == look and (wanted.since is None or lines[-1].at >= wanted.since)
    return AuditPortion(found, ids[-1] if has_more else None)


async def _find_lines(tx: Tx, seen_from: Scope | None, wanted: ChangeFilter, **where: int) -> list[_Line]:
    """By the index that leaves the fewest lines to look at."""
    if seen_from is not None:
        named = {"client": seen_from.client, "project": seen_from.project}
        return await tx.all(SQL["newest_of_client"], _Line, **named, **where)
    if wanted.subject is not None:
        return await tx.all(SQL["newest_of_subject"], _Line, subject=wanted.subject, **where)
    if wanted.caller is not None:
        return await tx.all(SQL["newest_of_caller"], _Line, caller=wanted.caller, **where)
    if wanted.action is not None:
        return await tx.all(SQL["newest_of_action"], _Line, action=wanted.action, **where)
    return await tx.all(SQL["newest"], _Line, **where)


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
