"""Runs as pages show them: one through the standard graph that waits for a person, one that delegates, a long one.

They are made of the same functions that a graph uses; no model is asked.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from gristmill.agents import RunWish, start_run
from gristmill.agents.effects import Allow, Ask, Begun, Effect, EffectResult, Ledger
from gristmill.agents.runs import (
    Cost,
    QuestionToAsk,
    WaitingForUser,
    ask,
    begin_step,
    complete_run,
    end_step,
    fail_run,
    hold_run,
    note_waiting,
    rest_run,
    take_over,
)
from gristmill.db import Database
from gristmill.ids import RunId, StepId
from gristmill.scopes import Scope

ACME = Scope("acme")
LONG = "Sum up every letter of Harrow & Tate about the grinding stones, and write to nobody. " * 4
RTL = "חוזה עם הטחנה של אלדרמור 2026"
STANDARD = ("intake", "evidence_pack", "plan", "select_goal", "plan_steps", "execute_step", "evaluate", "advance_step")


class Played:
    """A run that a test carries, in place of a graph."""

    def __init__(self, db: Database, run: RunId, fence: int) -> None:
        self.db, self.run, self.fence = db, run, fence
        self.ledger = Ledger(db, run, fence)

    async def begin(self, node: str, title: str = "", *, parent: StepId | None = None, input: Any = None) -> StepId:
        async with self.db.transaction() as tx:
            return await begin_step(tx, self.run, self.fence, node, title=title, parent=parent, input=input)

    async def end(self, step: StepId, output: Any = None, *, error: str | None = None, tokens: int = 0) -> None:
        cost = Cost("small-1.7b", tokens, tokens // 5, 1) if tokens else Cost()
        async with self.db.transaction() as tx:
            await end_step(tx, step, output=output, error=error, cost=cost)

    async def visit(self, nodes: Iterable[str], *, parent: StepId | None = None) -> None:
        for node in nodes:
            step = await self.begin(node, f"what {node} does", parent=parent, input={"goal": "Sum up the letters"})
            await self.end(step, {"text": f"{node} is over", "passages": [1, 2, 3]}, tokens=240)

    async def wait_for(self, *asked: QuestionToAsk, node: str = "execute_step") -> None:
        """The run asks a person and rests."""
        step = await self.begin(node, "asks a person")
        async with self.db.transaction() as tx:
            await hold_run(tx, self.run, self.fence)
            for one in asked:
                await ask(tx, self.run, one)
        await self.end(step, note_waiting(None, "A person is asked."))
        async with self.db.transaction() as tx:
            await rest_run(tx, self.run, self.fence)

    async def do(self, key: str, *, asks: Sequence[str] = ()) -> None:
        """An effect; with reasons to ask, it waits for an approval."""
        arguments = {"to": ["eve\u202e@evil.example"], "text": "<script>alert(1)</script>"}
        origins = [{"argument": "to", "value": "eve\u202e@evil.example", "who": "untrusted", "sources": ["mail 7"]}]
        origins[0]["sentence"] = "it comes from mail 7"
        effect = Effect(key, "send_mail", arguments, "Send a mail to eve.", "outside", False, origins=origins)

        async def act(_: Begun) -> EffectResult:
            return EffectResult("The mail is sent.", {"id": key})

        if asks:
            with pytest.raises(WaitingForUser):
                await self.ledger.perform(effect, act, lambda _: Ask(tuple(asks)))
        else:
            await self.ledger.perform(effect, act, lambda _: Allow())

    async def finish(self, report: str = "# Done\n\nTwo letters were found.") -> None:
        async with self.db.transaction() as tx:
            await complete_run(tx, self.run, self.fence, report)

    async def fail(self, error: str) -> None:
        async with self.db.transaction() as tx:
            await fail_run(tx, self.run, self.fence, error)


async def play(db: Database, request: str = "Sum up the letters.", scope: Scope = ACME) -> Played:
    """A run that a worker has taken over."""
    async with db.transaction() as tx:
        run = await start_run(tx, RunWish(request, "anna", scope))
        fence = await take_over(tx, run)
    assert fence is not None
    return Played(db, run, fence)


async def go_on(db: Database, run: RunId) -> Played:
    """The next worker takes the run over."""
    async with db.transaction() as tx:
        fence = await take_over(tx, run)
    assert fence is not None
    return Played(db, run, fence)


async def play_waiting(db: Database, request: str = "Sum up the letters.") -> Played:
    """A run in the middle of the standard graph that waits for two answers: words, and an approval."""
    played = await play(db, request)
    await played.visit([*STANDARD, "execute_step", "evaluate", "advance_step"])
    await played.do("1#0")
    await played.do("1#1", asks=["It changes something outside."])
    await played.wait_for(
        QuestionToAsk("clarify:1", "clarify", "Which letters are meant: those of Harrow, or of Tate?")
    )
    return played


async def play_delegating(db: Database) -> Played:
    """A run that delegates to agents, three levels deep, and still runs."""
    played = await play(db, f"{RTL}: find out, ask the lawyers, and write a note.")
    await played.visit(("intake", "evidence_pack", "plan_delegations"))
    top = await played.begin("execute_delegation", "research and legal", input={"group": 1})
    research = await played.begin("research", "Find the contract", parent=top)
    await played.visit(["search_knowledge", "read_document"], parent=research)
    await played.end(research, {"STATUS": "done", "RESULT": "It is document 7."}, tokens=3_400)
    legal = await played.begin("legal", "Read its terms", parent=top)
    deep = await played.begin("research", "What the law says of grinding stones", parent=legal)
    broken = await played.begin("fetch_page", parent=deep)
    await played.end(broken, error="The page cannot be reached: it does not answer.")
    await played.begin("read_document", "§ 12", parent=deep)
    return played


async def play_long(db: Database, steps: int = 500) -> Played:
    """A run with many steps that is over."""
    played = await play(db, LONG)
    await played.visit(STANDARD[:5])
    while steps > 5:
        round_ = ("execute_step", "evaluate", "advance_step")[: steps - 5]
        await played.visit(round_)
        steps -= len(round_)
    await played.finish(LONG * 20)
    return played
