"""The ledger in the database: every move names the state that it comes from and the attempt that makes it."""

from datetime import timedelta
from typing import Any

from gristmill.agents.effects.model import Effect, EffectLine, EffectResult, EffectRow, reaches_same_target
from gristmill.agents.runs import ENDED, QuestionKind, QuestionToAsk, ask, clean_text, lock_run, write_keepable
from gristmill.db import Column, Query, Tx, queries
from gristmill.errors import LeaseLost, Permanent, Unknown
from gristmill.ids import EffectId, RunId

SQL = queries("gristmill.agents.effects", "effects.sql")
LONGEST_ERROR = 2_000  # characters
POLICY = "policy"  # who approved, where no person had to
DONE, NOT_DONE, LEAVE = "done", "not_done", "leave"
APPROVE, REFUSE = "approve", "refuse"
KINDS: dict[str, QuestionKind] = {"git_commit": "commit", "git_push": "push"}  # questions with a name of their own


async def intend(tx: Tx, run: RunId, effect: Effect) -> EffectRow:
    """The row of an effect, written now or before; the caller holds the run. Another call under its key is refused."""
    await tx.execute(
        SQL["add_effect"],
        run=run,
        key=effect.key,
        tool=effect.tool,
        arguments=write_keepable(effect.arguments),
        hash=effect.hash,
        prepared=write_keepable(effect.prepared),
        summary=clean_text(effect.summary),  # whole: it names every target
        changes=effect.changes,
        repeatable=effect.repeatable,
        files=list(effect.files),
        origins=write_keepable(list(effect.origins)),
    )
    row = await tx.one(SQL["lock_effect"], EffectRow, run=run, key=effect.key)
    if row is None:
        raise Unknown(f"There is no run {run}.")
    check_same(row, effect.hash)
    return row


def check_same(row: EffectRow, hash_: bytes) -> None:
    """The same key must be the same call, or a restart would change something else than was written down."""
    if row.hash != hash_:
        raise Permanent(
            f"The call {row.key} of run {row.run} was {row.tool} with other arguments before: it is not made again."
        )


async def find_effect(tx: Tx, run: RunId, key: str) -> EffectRow | None:
    return await tx.one(SQL["find_effect"], EffectRow, run=run, key=key)


async def load_effect(tx: Tx, id_: EffectId) -> EffectRow:
    found = await tx.one(SQL["load_effect"], EffectRow, id=id_)
    if found is None:
        raise Unknown(f"There is no effect {id_}.")
    return found


async def list_effects(tx: Tx, run: RunId, *, after: int = 0, limit: int = 1_000) -> list[EffectRow]:
    """The effects of a run in the order in which they were intended."""
    return await tx.all(SQL["list_effects"], EffectRow, run=run, after=after, limit=limit)


async def list_effect_lines(tx: Tx, run: RunId) -> list[EffectLine]:
    """The effects of a run, without their arguments and results."""
    return await tx.all(SQL["list_effect_lines"], EffectLine, run=run)


async def list_newest_effects(tx: Tx, *, limit: int = 100) -> list[EffectRow]:
    """Of all runs, the newest first."""
    return await tx.all(SQL["list_newest"], EffectRow, limit=limit)


async def list_calls(tx: Tx, run: RunId, place: str) -> list[EffectRow]:
    """The effects at one place of the plan."""
    return await tx.all(SQL["list_calls"], EffectRow, run=run, prefix=f"{place}#")


async def list_delegation_calls(tx: Tx, run: RunId, delegation: str) -> list[EffectRow]:
    """The effects of a delegation, whichever agent tried it, and of all parts below it."""
    return await tx.all(SQL["list_delegation_calls"], EffectRow, run=run, place=f"delegation {delegation}")


async def load_changed_files(tx: Tx, row: EffectRow) -> list[str]:
    """The files that the other effects of its run change."""
    return await tx.values(SQL["changed_files"], str, run=row.run, but=row.id)


async def list_repeated(tx: Tx, row: EffectRow) -> list[EffectRow]:
    """What earlier runs of the same item did, or may have done, to the target of an effect that is not begun yet.

    A push is none: whatever was pushed before, the branch holds the last commit.
    """
    if row.state not in ("intended", "approved") or row.changes != "outside" or row.prepared.get("pushes"):
        return []
    earlier = await tx.all(SQL["list_earlier"], EffectRow, run=row.run, tool=row.tool, leave=LEAVE)
    return [one for one in earlier if reaches_same_target(row, one)]


# --- moves


async def approve(tx: Tx, row: EffectRow, by: str) -> bool:
    return await tx.value(SQL["approve_effect"], id=row.id, by=by) is not None


async def take_back(tx: Tx, row: EffectRow) -> None:
    """The policy had approved it, and does not any more."""
    if row.state == "approved":
        await tx.execute(SQL["take_back_effect"], id=row.id, policy=POLICY)


async def refuse(tx: Tx, row: EffectRow, error: str, by: str | None = None) -> bool:
    """`by` is the person who said no; none: the policy did."""
    said = clean_text(error)[:LONGEST_ERROR]
    return await tx.value(SQL["refuse_effect"], id=row.id, error=said, by=by) is not None


async def note_reasons(tx: Tx, row: EffectRow, reasons: list[str]) -> None:
    await tx.execute(SQL["note_reasons"], id=row.id, reasons=[clean_text(one)[:LONGEST_ERROR] for one in reasons])


async def start(tx: Tx, row: EffectRow) -> int:
    """The number of this attempt: only a worker that has it may settle the effect."""
    attempt = await tx.value(SQL["start_effect"], int, id=row.id)
    if attempt is None:
        raise LeaseLost(f"Effect {row.id} is not ours to begin: it is {row.state}.")
    return int(attempt)


async def complete(tx: Tx, id_: EffectId, attempt: int, result: EffectResult) -> bool:
    kept = write_keepable({"text": result.text, "data": result.data})
    return await tx.value(SQL["complete_effect"], id=id_, attempt=attempt, result=kept) is not None


async def fail(tx: Tx, id_: EffectId, attempt: int, error: str) -> bool:
    return await _end(tx, SQL["fail_effect"], id_, attempt, error)


async def give_back(tx: Tx, id_: EffectId, attempt: int, error: str) -> bool:
    """Nothing was begun outside: it may be begun again."""
    return await _end(tx, SQL["return_effect"], id_, attempt, error)


async def note_error(tx: Tx, id_: EffectId, attempt: int, error: str) -> bool:
    """It stays begun: its next attempt asks the other side again."""
    return await _end(tx, SQL["note_error"], id_, attempt, error)


async def doubt(tx: Tx, row: EffectRow, attempt: int, error: str) -> bool:
    """Nobody knows whether it was done: a person is asked. The caller holds the run."""
    if not await _end(tx, SQL["doubt_effect"], row.id, attempt, error):
        return False
    is_over = (await lock_run(tx, row.run)).state in ENDED
    await ask(tx, row.run, make_doubt_question(row, attempt, error, is_over=is_over))
    return True


async def _end(tx: Tx, query: Query, id_: EffectId, attempt: int, error: str) -> bool:
    text = clean_text(error)[:LONGEST_ERROR]
    return await tx.value(query, id=id_, attempt=attempt, error=text) is not None


async def redo(tx: Tx, row: EffectRow, by: str) -> bool:
    return await tx.value(SQL["redo_effect"], id=row.id, by=by) is not None


# --- questions about effects


def make_approval_question(row: EffectRow, reasons: list[str], repeated: str = "") -> QuestionToAsk:
    """What a person must know to agree: what would happen, why it is asked, and who said the values that it acts on.

    `repeated` says that it was done before.
    """
    return QuestionToAsk(
        f"effect:{row.key}:approve{f':{row.attempt}' if row.attempt else ''}",  # not one that was withdrawn before
        KINDS.get(row.tool, "approve_effect"),
        f"May this be done? {row.summary} {repeated}".rstrip(),
        (APPROVE, REFUSE),
        _describe(row, reasons),
        row.id,
    )


def make_doubt_question(row: EffectRow, attempt: int, error: str, *, is_over: bool) -> QuestionToAsk:
    """`is_over`: its run has ended, and nobody would do it again."""
    begun = f"Was this done? {row.summary} It was begun, and nobody knows its end: look there, then say."
    otherwise = (
        "Its run is over: what was not done stays undone, ask anew for it."
        if is_over
        else "If it was not done, it is done again, unless the run has ended by then."
    )
    return QuestionToAsk(
        f"effect:{row.key}:unknown:{attempt}",
        "unknown_effect",
        f"{begun} {otherwise}",
        (DONE, NOT_DONE, LEAVE),
        _describe(row, [error]),
        row.id,
    )


def _describe(row: EffectRow, reasons: list[str]) -> dict[str, Any]:
    return {
        "tool": row.tool,
        "arguments": row.arguments,
        "prepared": row.prepared,
        "reasons": reasons,
        "origins": list(row.origins),
    }


# --- upkeep


async def withdraw_effects(tx: Tx, run: RunId, error: str) -> None:
    """What was not begun when its run ended is not begun any more."""
    await tx.execute(SQL["withdraw_effects"], run=run, error=error)


async def question_lost_effects(tx: Tx, patience: timedelta) -> int:
    """Ask a person about effects of ended runs that nobody settled; how many there were."""
    for run in await tx.values(SQL["list_left"], Column[RunId]):
        await withdraw_effects(tx, run, "Its run ended before it was begun.")
    lost = 0
    for row in await tx.all(SQL["list_lost"], EffectRow, patience=patience):
        await lock_run(tx, row.run)  # before its effect
        lost += await doubt(tx, row, row.attempt, "Its run ended, and nobody said how it went.")
    return lost
