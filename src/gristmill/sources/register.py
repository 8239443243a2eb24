"""The register of sources: adding, finding, pausing, removing them, and their schedules."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import orjson
from pydantic import ValidationError

from gristmill.db import Column, Database, Tx
from gristmill.durations import parse_duration
from gristmill.errors import Refused, Unknown
from gristmill.ids import ItemId, SourceId
from gristmill.queue import Unique, add_schedule, enable_schedule, remove_schedule, send
from gristmill.scopes import GLOBAL, Scope, scope_id
from gristmill.settings import Settings, explain_reason, locate_file
from gristmill.sources.kinds import KINDS
from gristmill.sources.letters import PollSource, SourceDue
from gristmill.sources.model import Kind, Source
from gristmill.sources.poller import list_key, poll_key
from gristmill.sources.removal import Report, drop_document, lock_urn_of
from gristmill.sources.store import SQL, load_source
from gristmill.telemetry import log

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
MINUTES = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)  # what divides an hour …
HOURS = (1, 2, 3, 4, 6, 8, 12)  # … and a day
PORTION = 200  # items removed in one transaction
# options that leave a place what it is: a mailbox is not fetched once more for a new password (a folder of it that was
# not read before has no checkpoint yet)
WAYS_IN = frozenset({"password", "token", "token_command", "ssh_key", "ca", "security", "idle", "folders"})
HOW_OFTEN = "write 1min, 5min, 15min, 30min, 1h, 6h, 12h or 1d"


@dataclass(frozen=True)
class Wanted:
    """A source as a person describes it."""

    name: str
    kind: str
    options: Mapping[str, Any]
    scope: Scope = GLOBAL
    every: timedelta | None = None
    listing_every: timedelta | None = None
    declared: bool = False


def find_kind(name: str) -> Kind:
    if name not in KINDS:
        raise Refused(f"There is no kind of source “{name}”: choose one of {', '.join(sorted(KINDS))}.")
    return KINDS[name]


def check_options(kind: Kind, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as they are kept: only those that were given."""
    try:
        checked = kind.options.model_validate(dict(options))
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])  # none, if several of them do not fit together
        what = f"The option {name}" if name else "Something about the options"
        known = ", ".join(kind.options.model_fields)
        raise Refused(
            f"{what} of a source of the kind {kind.name} is wrong: {explain_reason(first)}. It has {known}."
        ) from error
    return checked.model_dump(mode="json", exclude_unset=True)


def make_cron(every: timedelta, offset: int) -> str:
    """The times at which a source is due; sources with other offsets are due at other minutes."""
    minutes = every.total_seconds() / 60
    if minutes in MINUTES:
        return f"{offset % int(minutes)}-59/{int(minutes)} * * * *" if minutes > 1 else "* * * * *"
    if minutes / 60 in HOURS:
        hours = int(minutes // 60)
        return f"{offset % 60} {offset // 60 % hours}-23/{hours} * * *" if hours > 1 else f"{offset % 60} * * * *"
    if minutes == 24 * 60:
        return f"{offset % 60} {offset // 60 % 24} * * *"
    raise Refused(f"A source cannot be polled every {minutes:g} minutes: {HOW_OFTEN}.")


async def add_source(tx: Tx, wanted: Wanted, *, replace: bool = False) -> Source:
    """Add a source and its schedules; its first poll begins at once."""
    if not NAME.fullmatch(wanted.name):
        raise Refused(f"“{wanted.name}” is no name for a source: use up to 63 of a-z, 0-9, dot, dash, underscore.")
    kind = find_kind(wanted.kind)
    own = await scope_id(tx, wanted.scope)
    row: dict[str, Any] = {
        "kind": kind.name,
        "options": orjson.dumps(check_options(kind, wanted.options), option=orjson.OPT_SORT_KEYS).decode(),
        "every": kind.every if wanted.every is None else wanted.every,
        "listing_every": kind.listing_every if wanted.listing_every is None else wanted.listing_every,
        "declared": wanted.declared,
    }
    for every in ("every", "listing_every"):
        make_cron(row[every], 0)  # refused before anything is written
    added = await tx.value(SQL["add_source"], Column[SourceId], scope=own, name=wanted.name, **row)
    if added is None:
        if not replace:
            raise Refused(f"There is already a source “{wanted.name}” of {wanted.scope}: choose another name.")
        return await _change_source(tx, wanted, row)
    source = await get_source(tx, added)
    await _schedule(tx, source)
    await send(tx, PollSource(added), scope=own, unique=Unique(poll_key(added)))
    return source


async def _change_source(tx: Tx, wanted: Wanted, row: Mapping[str, Any]) -> Source:
    known = await find_source(tx, wanted.name, wanted.scope.client, wanted.scope.project)
    same_place = known.kind == wanted.kind and name_place(known.options) == name_place(orjson.loads(row["options"]))
    if await tx.value(SQL["change_source"], id=known.id, same_place=same_place, **row) is not None:
        await _schedule(tx, await get_source(tx, known.id))
    return await get_source(tx, known.id)


def name_place(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say what is there; the others only say how we get in."""
    return {name: value for name, value in options.items() if name not in WAYS_IN}


async def _schedule(tx: Tx, source: Source) -> None:
    for key, every, listing in (
        (poll_key(source.id), source.every, False),
        (list_key(source.id), source.listing_every, True),
    ):
        cron = make_cron(every, _stagger(source.id, listing))
        await add_schedule(tx, key, SourceDue(source.id, listing), cron=cron, replace=True, scope=source.scope)


def _stagger(source: SourceId, listing: bool) -> int:
    """Minutes by which it is due later than others: neighbours are far apart, and a listing is far from its polls."""
    return source * 37 + (17 if listing else 0)


async def get_source(tx: Tx, id_: SourceId) -> Source:
    found = await load_source(tx, id_)
    if found is None:
        raise Unknown(f"There is no source {id_}.", listed_by="gristmill source ls")
    return found


async def find_source(tx: Tx, name: str, client: str | None = None, project: str | None = None) -> Source:
    """The source of this name; where several clients have one, the client must be named."""
    client = "" if client == str(GLOBAL) else client
    found = await tx.all(SQL["find_by_name"], Source, name=name, client=client, project=project)
    if not found:
        raise Unknown(f"There is no source “{name}”.", listed_by="gristmill source ls")
    if len(found) > 1:
        raise Refused(f"{len(found)} clients have a source “{name}”: say which with --client and --project.")
    return found[0]


async def list_sources(tx: Tx, client: str | None = None, project: str | None = None) -> list[Source]:
    client = "" if client == str(GLOBAL) else client
    return await tx.all(SQL["list_sources"], Source, client=client, project=project)


async def pause_source(tx: Tx, source: Source, paused: bool) -> None:
    """Let it rest, or go on; a poll that runs ends first."""
    await tx.execute(SQL["forget_declarer"], id=source.id)
    if await tx.value(SQL["set_paused"], id=source.id, paused=paused) is None:
        return
    for key in (poll_key(source.id), list_key(source.id)):
        await enable_schedule(tx, key, not paused, scope=source.scope)
    if not paused:
        await send(tx, PollSource(source.id), scope=source.scope, unique=Unique(poll_key(source.id), "replace"))


async def remove_source_row(tx: Tx, source: Source) -> None:
    for key in (poll_key(source.id), list_key(source.id)):
        await remove_schedule(tx, key, scope=source.scope)
    await tx.execute(SQL["drop_source"], id=source.id)
    await tx.flush()  # its items go with it and are counted; the counts go last
    await tx.execute(SQL["drop_tally"], id=source.id)


async def drop_source(
    db: Database, source: Source, *, keep: bool, tell: Callable[[int], None] = lambda _: None
) -> dict[str, int]:
    """Remove a source, and unless they are to be kept the documents that came from it alone; what was removed.

    If it is interrupted, ask for it again: the source goes last.
    """
    async with db.transaction() as tx:
        await pause_source(tx, source, True)
    total: dict[str, int] = {}
    after = ItemId(0)
    while not keep:
        async with db.transaction() as tx:
            last = await tx.only_value(SQL["last_item"], Column[ItemId], source=source.id)
            items = await tx.values(
                SQL["living_items"], Column[ItemId], source=source.id, after=after, last=last, limit=PORTION
            )
            for item in items:
                _add_up(total, await _drop_item(tx, source, item))
        if not items:
            break
        after = items[-1]
        tell(total.get("documents", 0))
    async with db.transaction() as tx:
        await remove_source_row(tx, source)
    return total


async def _drop_item(tx: Tx, source: Source, item: ItemId) -> Report:
    urn = await lock_urn_of(tx, item)
    gone = await drop_document(tx, item, urn, Scope(source.client, source.project)) if urn else {}
    await tx.execute(SQL["finish_removal"], id=item, report=orjson.dumps(gone).decode())
    return gone


def _add_up(total: dict[str, int], gone: Report) -> None:
    for name, n in gone.items():
        if name != "kept":
            total[name] = total.get(name, 0) + n


# --- gristmill.toml


async def apply_declared(tx: Tx, settings: Settings) -> None:
    """Let the sources be as gristmill.toml names them.

    One that it no longer names is paused, and keeps its items; when it is named again, it goes on. A missing
    file, or that of another machine or folder, changes nothing about the sources that this file has named.
    """
    here = locate_file()
    wanted = [read_declared(name, dict(entry)) for name, entry in settings.sources.named.items()]
    known = {(Scope(one.client, one.project), one.name): one for one in await list_sources(tx)}
    for one in wanted:
        source = await add_source(tx, one, replace=True)
        before = known.pop((one.scope, one.name), None)
        await tx.execute(SQL["note_declarer"], id=source.id, by=here)
        if before is not None and not before.declared:
            await pause_source(tx, source, False)
    for source in known.values():
        if source.declared and source.declared_by == here:
            await pause_source(tx, source, True)
            await tx.execute(SQL["undeclare"], id=source.id)
            log.warning("source.paused", source=source.name, reason="it is not named any more", file=here)


def read_declared(name: str, entry: dict[str, Any]) -> Wanted:
    scope = Scope(entry.pop("client", ""), entry.pop("project", ""))
    every, listing = (_read_span(name, entry.pop(key, None)) for key in ("every", "listing_every"))
    kind = str(entry.pop("kind", ""))
    return Wanted(name, kind, entry, scope, every, listing, declared=True)


def _read_span(name: str, text: object) -> timedelta | None:
    try:
        return parse_duration(str(text)) if text is not None else None
    except ValueError as error:
        raise Refused(f"The source {name} in gristmill.toml: {error}.") from error
