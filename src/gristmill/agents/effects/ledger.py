"""The ledger of one run: an effect is written down before it acts, settled after, and never begun twice by mistake."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import assert_never

from gristmill.agents.effects import store
from gristmill.agents.effects.deciding import Ask, RefuseEffect, Verdict, choose_move, judge_again, judge_error
from gristmill.agents.effects.model import Effect, EffectResult, EffectRow
from gristmill.agents.runs import WaitingForUser, ask, continue_run, hold_run, lock_run, withdraw_questions
from gristmill.db import Database, Tx
from gristmill.errors import LeaseLost, Permanent, Transient, Unreachable
from gristmill.ids import RunId
from gristmill.telemetry import log

GRACE = 15.0  # seconds in which an effect that has begun may end when its run is interrupted
START_WITHIN = 20.0  # seconds from "it is begun" in the database until it is begun; leases last longer
SETTLE_TRIES = 6  # each waits twice as long as the one before
FIRST_WAIT = 0.1

Judge = Callable[[Sequence[str]], Verdict]  # given the files that the run changes elsewhere


class EffectFailed(Permanent):
    """An effect was refused, or failed for good: nothing of it is repeated."""

    def __init__(self, message: str, *, is_refused: bool = False) -> None:
        """`is_refused`: a person said no."""
        super().__init__(message)
        self.is_refused = is_refused


@dataclass(frozen=True)
class Begun:
    """An effect that may act now."""

    row: EffectRow
    attempt: int

    @property
    def key(self) -> str:
        """The idempotency key for the other side."""
        return self.row.idempotency_key

    @property
    def is_repeated(self) -> bool:
        """Whether an attempt before this one may have reached the other side."""
        return self.attempt > 1


Act = Callable[[Begun], Awaitable[EffectResult]]


class Ledger:
    """`await ledger.perform(effect, act, judge)` acts at most once, and gives the result again after a restart.

    `fence` is the number under which this worker took the run over. A worker that lost the run begins nothing more.
    What it had begun before, it may still settle: what is true stays true.
    """

    def __init__(self, db: Database, run: RunId, fence: int, *, grace: float = GRACE) -> None:
        self._db = db
        self._run = run
        self._fence = fence
        self._grace = grace

    async def find(self, key: str) -> EffectRow | None:
        """An effect that this run came to before."""
        async with self._db.reading() as tx:
            return await store.find_effect(tx, self._run, key)

    async def list_calls(self, place: str) -> list[EffectRow]:
        """The effects that this run came to before at a place of its plan: what a model asked for there."""
        async with self._db.reading() as tx:
            return await store.list_calls(tx, self._run, place)

    async def perform(self, effect: Effect, act: Act, judge: Judge) -> EffectResult:
        """The result of an effect, by acting now or from before.

        Raises WaitingForUser if a person must be asked, EffectFailed if it was refused or failed for good, LeaseLost if
        the run is not ours any more, and Transient if it can be tried again.
        """
        found = await self._begin(effect, judge)
        if isinstance(found, EffectResult):
            return found
        return await self._finish_despite_interruption(self._act(found, act))

    # --- before

    async def _begin(self, effect: Effect, judge: Judge) -> Begun | EffectResult:
        """Write the effect down, and that it is begun; both are committed when this returns."""
        since = time.monotonic()
        async with self._db.transaction() as tx:
            await hold_run(tx, self._run, self._fence)
            row = await store.intend(tx, self._run, effect)
            verdict = judge(await store.load_changed_files(tx, row))
            found = await self._move(tx, row, judge_again(verdict, await store.list_repeated(tx, row)))
        if isinstance(found, Exception):
            raise found
        if isinstance(found, Begun) and time.monotonic() - since > START_WITHIN:
            # this process stood still, and another worker may have the run by now: it is truly not begun
            late = Transient(f"Effect {row.id} was not begun in time.")
            await self._write(lambda tx: store.give_back(tx, row.id, found.attempt, str(late)), begun=found)
            raise late
        return found

    async def _move(self, tx: Tx, row: EffectRow, verdict: Verdict) -> Begun | EffectResult | Exception:
        """What is written is kept also where an error is to be raised: the errors are returned."""
        by_policy = row.approved_by == store.POLICY
        move = choose_move(row.state, repeatable=row.repeatable, verdict=verdict, by_policy=by_policy)
        match move:
            case "replay":
                return _replay(row)
            case "approve":
                await store.approve(tx, row, store.POLICY)
                await withdraw_questions(tx, self._run, row.id)
                return Begun(row, await store.start(tx, row))
            case "start":
                return Begun(row, await store.start(tx, row))
            case "ask":
                reasons = list(verdict.reasons) if isinstance(verdict, Ask) else []
                await store.note_reasons(tx, row, reasons)
                await store.take_back(tx, row)
                repeated = verdict.repeated if isinstance(verdict, Ask) else ""
                question = await ask(tx, self._run, store.make_approval_question(row, reasons, repeated))
                return WaitingForUser(f"Question {question.id} waits for a person: {question.sentence}")
            case "refuse":
                reason = verdict.reason if isinstance(verdict, RefuseEffect) else "It is not allowed."
                await store.note_reasons(tx, row, [reason])
                await store.refuse(tx, row, reason)
                await withdraw_questions(tx, self._run, row.id)
                return EffectFailed(reason)
            case "doubt":
                await store.doubt(tx, row, row.attempt, "The worker that had begun it ended before it was settled.")
                return WaitingForUser(f"Nobody knows whether effect {row.id} was done: {row.summary}")
            case "wait":
                return WaitingForUser(f"Nobody knows whether effect {row.id} was done: {row.summary}")
            case _:
                assert_never(move)

    # --- while it acts

    async def _act(self, begun: Begun, act: Act) -> EffectResult:
        try:
            result = await act(begun)
        except LeaseLost:
            raise
        except Exception as error:
            raise await self._settle_error(begun, error) from error
        if not await self._write(lambda tx: store.complete(tx, begun.row.id, begun.attempt, result), begun):
            raise LeaseLost(f"Effect {begun.row.id} was begun by another worker meanwhile.")
        return result

    async def _finish_despite_interruption(self, acting: Awaitable[EffectResult]) -> EffectResult:
        """An interruption waits a little for an effect that has begun: cut off, nobody would know how it ended."""
        task = asyncio.ensure_future(acting)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            try:
                await asyncio.wait((task,), timeout=self._grace)
            finally:
                task.cancel()
                task.add_done_callback(self._note_end)
            raise

    def _note_end(self, task: "asyncio.Future[EffectResult]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("an interrupted effect ended with an error", run=self._run, error=str(error))

    # --- after

    async def _settle_error(self, begun: Begun, error: Exception) -> Exception:
        """Settle an attempt that raised; the error for the caller."""
        row, attempt = begun.row, begun.attempt
        said = str(error) or type(error).__name__
        ending = judge_error(error, repeatable=row.repeatable, attempt=attempt)
        match ending:
            case "failed":
                settled = await self._write(lambda tx: store.fail(tx, row.id, attempt, said), begun)
                outcome: Exception = EffectFailed(said)
            case "again":
                settled = await self._write(lambda tx: store.give_back(tx, row.id, attempt, said), begun)
                outcome = error
            case "repeat":
                settled = await self._write(lambda tx: store.note_error(tx, row.id, attempt, said), begun)
                outcome = error if isinstance(error, Transient) else Transient(said)
            case "doubt":
                settled = await self._write(lambda tx: store.doubt(tx, row, attempt, said), begun, asks=True)
                outcome = WaitingForUser(f"Nobody knows whether effect {row.id} was done: {row.summary}")
            case _:
                assert_never(ending)
        return outcome if settled else LeaseLost(f"Effect {row.id} was begun by another worker meanwhile.")

    async def _write(self, write: Callable[[Tx], Awaitable[bool]], begun: Begun, *, asks: bool = False) -> bool:
        """Settle, patiently: what happened outside must not be forgotten because the database was away for a moment.

        False if another attempt has begun meanwhile: then nothing is written. Unless the write itself asks about the
        effect, nobody needs to answer a question about it any more.
        """
        for n in range(SETTLE_TRIES):
            try:
                async with self._db.transaction() as tx:
                    held = await lock_run(tx, self._run)
                    settled = await write(tx)
                    if settled and not asks:
                        await withdraw_questions(tx, self._run, begun.row.id)
                        if held.state == "waiting_for_user":
                            await continue_run(tx, self._run)
                return settled
            except Unreachable:
                if n == SETTLE_TRIES - 1:
                    raise
                await asyncio.sleep(FIRST_WAIT * 2**n)
        return False


def _replay(row: EffectRow) -> EffectResult | EffectFailed:
    """What was settled before."""
    if row.state == "failed" or row.result is None:
        return EffectFailed(row.error or "It failed.", is_refused=row.refused_by is not None)
    return EffectResult(row.result["text"], row.result["data"])
