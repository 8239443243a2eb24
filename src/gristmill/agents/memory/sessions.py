"""What happened lately in a project: a few short entries, which are forgotten after a week."""

from collections.abc import Mapping, Sequence
from typing import Any

from gristmill.agents.memory.model import KEEP_ENTRIES, LONGEST_SUMMARY, MOST_ENTRIES, SessionEntry, SessionSource
from gristmill.agents.runs import Run, clean_text, write_keepable
from gristmill.db import Tx, queries
from gristmill.errors import Refused, Unknown
from gristmill.ids import RunId, ScopeId
from gristmill.scopes import Scope, find_scope, scope_id

SQL = queries("gristmill.agents.memory", "memory.sql")
LONGEST_DETAILS = 8_000  # characters


async def remember(
    tx: Tx, run: Run, source: SessionSource, summary: str, details: Mapping[str, Any] | None = None
) -> None:
    """Remember what a run did or decided; the same entry of the same run is kept once."""
    await _add_entry(tx, run.scope, run.id, None, source, summary, details)


async def remember_in(
    tx: Tx, scope: Scope, owner: str, source: SessionSource, summary: str, details: Mapping[str, Any] | None = None
) -> None:
    """As `remember`, for what was done without a run: a conversation, which nobody but its owner sees."""
    await _add_entry(tx, await scope_id(tx, scope), None, owner, source, summary, details)


async def _add_entry(
    tx: Tx,
    scope: ScopeId,
    run: RunId | None,
    owner: str | None,
    source: SessionSource,
    summary: str,
    details: Mapping[str, Any] | None,
) -> None:
    short = shorten(summary)
    if not short:
        raise Refused("An entry of the session needs a summary.")
    kept = write_keepable(dict(details)) if details is not None else None
    if kept is not None and len(kept) > LONGEST_DETAILS:
        kept = write_keepable({"shortened": kept[:LONGEST_DETAILS]})
    await tx.execute(SQL["add_entry"], scope=scope, run=run, owner=owner, source=source, summary=short, details=kept)
    await tx.execute(SQL["drop_surplus"], scope=scope, most=MOST_ENTRIES)


def shorten(text: str) -> str:
    """One line of at most 200 characters, cut at a word where one ends near."""
    line = " ".join(clean_text(text).split())
    if len(line) <= LONGEST_SUMMARY:
        return line
    cut = line[: LONGEST_SUMMARY - 1]
    blank = cut.rfind(" ")
    return (cut[:blank] if blank > LONGEST_SUMMARY * 3 // 4 else cut).rstrip(" ,;:") + "…"


async def recall(tx: Tx, scope: Scope, asker: str | None = None, limit: int = 20) -> Sequence[SessionEntry]:
    """What happened lately in exactly this client or project, newest first; of conversations only the asker's own."""
    return await tx.all(
        SQL["recall"],
        SessionEntry,
        client=scope.client,
        project=scope.project,
        asker=asker,
        keep=KEEP_ENTRIES,
        limit=min(limit, MOST_ENTRIES),
    )


def write_session(entries: Sequence[SessionEntry]) -> str:
    """Entries as a text for a model: what a run for an item from outside did is told as such."""
    return "\n".join(
        f"- {entry.timestamp:%Y-%m-%d %H:%M} ({entry.source}{', nobody asked for it' if entry.is_unasked else ''}): "
        f"{entry.summary}"
        for entry in entries
    )


async def list_entries(
    tx: Tx, scope: Scope | None = None, *, reader: str | None = None, before: int | None = None, limit: int = 100
) -> list[SessionEntry]:
    """The newest entries that are seen; of one client or project, or of all. Without a reader (the operator), all."""
    client, project = (scope.client, scope.project) if scope is not None else (None, None)
    asked = {"client": client, "project": project, "before": before, "limit": limit, "keep": KEEP_ENTRIES}
    asked["reader"] = reader
    return await tx.all(SQL["list_entries"], SessionEntry, **asked)


async def forget_entry(tx: Tx, id_: int) -> None:
    if await tx.value(SQL["forget_entry"], id=id_) is None:
        raise Unknown(f"There is no entry {id_} of a session.", listed_by="gristmill memory ls")


async def forget_scope(tx: Tx, scope: Scope) -> int:
    """Forget everything of exactly this client or project; how many entries that were."""
    found = await find_scope(tx, scope)
    return len(await tx.values(SQL["forget_scope"], int, scope=found)) if found is not None else 0


async def tidy_sessions(tx: Tx) -> None:
    """Remove what is too old, and what is too much where two wrote at once."""
    await tx.execute(SQL["drop_old_entries"], keep=KEEP_ENTRIES)
    for scope in await tx.values(SQL["list_crowded"], int, most=MOST_ENTRIES):
        await tx.execute(SQL["drop_surplus"], scope=scope, most=MOST_ENTRIES)
