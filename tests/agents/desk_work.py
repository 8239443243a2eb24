"""Runs for tests: begun, looked at, answered."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from gristmill.agents import RunWish, answer_question, list_effects, list_questions, load_run, start_run
from gristmill.agents.effects import Allow, Ask, Begun, Effect, EffectResult, Ledger, RefuseEffect, Verdict
from gristmill.agents.runs import Question, Run, take_over
from gristmill.db import Database, Tx
from gristmill.ids import RunId
from gristmill.scopes import Scope

PROJECT = Scope("acme", "mill")


async def begin_run(db: Database, request: str = "Do it.", **more: Any) -> tuple[RunId, int]:
    """A run that a worker has taken over, and the fence of this worker."""
    wanted = RunWish(request, **({"asked_by": "anna", "scope": PROJECT} | more))
    async with db.transaction() as tx:
        run = await start_run(tx, wanted)
        fence = await take_over(tx, run)
    assert fence is not None
    return run, fence


async def take_again(db: Database, run: RunId) -> Ledger:
    """The ledger of another worker that takes the run over."""
    async with db.transaction() as tx:
        fence = await take_over(tx, run)
    assert fence is not None
    return Ledger(db, run, fence)


async def travel(tx: Tx, offset: timedelta) -> None:
    """Let this transaction be at another time."""
    await tx.execute("SELECT set_config('gristmill.clock_offset', %(offset)s::text, true)", offset=offset)


async def states(db: Database, run: RunId) -> list[str]:
    async with db.reading() as tx:
        return [one.state for one in await list_effects(tx, run)]


async def questions(db: Database, run: RunId, *, is_open: bool = True) -> list[Question]:
    async with db.reading() as tx:
        return await list_questions(tx, run=run, is_open=is_open)


async def answer(db: Database, run: RunId, choice: str | None, words: str = "", by: str = "anna") -> None:
    """Answer the only open question of a run."""
    (question,) = await questions(db, run)
    async with db.transaction() as tx:
        await answer_question(tx, question.id, choice=choice, answer=words, by=by)


async def state_of(db: Database, run: RunId) -> Run:
    async with db.reading() as tx:
        return await load_run(tx, run)


def make_effect(key: str = "1#0", *, repeatable: bool = False, **arguments: Any) -> Effect:
    return Effect(key, "send", arguments or {"to": "anna@example.org"}, f"Send {key}.", "outside", repeatable)


class Outside:
    """Counts what reached it; `fault` is raised after that, `before` instead of it."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.fault: BaseException | None = None
        self.before: BaseException | None = None

    async def act(self, begun: Begun) -> EffectResult:
        if self.before is not None:
            raise self.before
        self.seen.append(begun.key)
        if self.fault is not None:
            raise self.fault
        return EffectResult(f"sent {len(self.seen)}", {"n": len(self.seen)})


def allow(files: Sequence[str] = ()) -> Verdict:
    return Allow()


def ask_first(files: Sequence[str] = ()) -> Verdict:
    return Ask(("It changes something outside.",))


def refuse(files: Sequence[str] = ()) -> Verdict:
    return RefuseEffect("The policy forbids it.")
