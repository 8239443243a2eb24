"""A scripted model for graphs: it knows by its prompt which node asks, and has replies for each."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from workbench import Workbench

from gristmill.agents.orchestrating import orchestrate
from gristmill.agents.running import end_with_report
from gristmill.agents.runs import AgentStep, WaitingForUser, list_steps, rest_run
from gristmill.agents.thinking import RunLlm
from gristmill.models import FakeLlm

ASKS = {
    "intake": "Say which category the request has",
    "plan": "Plan the task:",
    "plan_epic": "Plan the epic:",
    "design": "Design what is asked for:",
    "plan_steps": "Name the steps that lead to goal",
    "act": "You work in rounds.",
    "evaluate": "Judge whether this step was done",
    "finalize": "Say in two to five sentences",
    "reply": "Draft a reply to it",
    "respond": "You answer questions from numbered evidence",
}
DEFAULTS: dict[str, Any] = {
    "evaluate": {"reason": "It is there.", "is_done": True},
    "finalize": "All of it was done.",
    "reply": "It was done.",
}


def use(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"thought": "next", "move": {"tool": tool, "arguments": arguments}}


def say(text: str) -> dict[str, Any]:
    return use("answer", text=text)


def understood(category: str, goal: str = "Do what was asked for.", question: str = "") -> dict[str, Any]:
    return {"category": category, "goal": goal, "is_clear": not question, "question": question}


def goals(*titles: str) -> list[dict[str, str]]:
    return [{"title": one, "done_when": f"{one} is there"} for one in titles]


def steps(*planned: tuple[str, str]) -> dict[str, Any]:
    return {"steps": [{"kind": kind, "task": task} for kind, task in planned]}


Replies = Sequence[Any] | Callable[[str], Any] | dict[str, Any] | str


class Script(FakeLlm):
    """Replies for each node: a list that is used up, one reply for ever, or a function of the prompt."""

    def __init__(self, **replies: Replies) -> None:
        super().__init__(self._reply)
        self._given = {name: list(one) if isinstance(one, list | tuple) else one for name, one in replies.items()}
        self.asked: dict[str, list[str]] = defaultdict(list)
        self.order: list[str] = []
        self.fault_at: int | None = None  # the number of the call that never comes to its end
        self.hangs = False  # whether that call waits for ever, instead of a fault
        self.reached = asyncio.Event()  # it has been made
        self.was_cancelled = False
        self._go_on = asyncio.Event()

    def let_go(self) -> None:
        """The call that hangs comes to its end after all."""
        self.hangs = False
        self._go_on.set()

    async def ask_text(self, question: Any, **more: Any) -> str:
        if self.hangs and len(self.order) == self.fault_at:
            self.reached.set()
            try:
                await self._go_on.wait()
            except asyncio.CancelledError:
                self.was_cancelled = True
                raise
            self.fault_at = None
        return await super().ask_text(question, **more)

    def _reply(self, words: str) -> Any:
        node = next((name for name, said in ASKS.items() if said in words), "?")
        if not self.hangs and not self.reached.is_set() and len(self.order) == self.fault_at:
            self.order.append(node)
            raise RuntimeError("the worker died")
        self.order.append(node)
        self.asked[node].append(words)
        found = self._given.get(node, DEFAULTS.get(node))
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        assert found is not None, f"nobody expected to be asked by {node}: {words[:300]}"
        return found(words) if callable(found) else found


async def carry(bench: Workbench, script: RunLlm | None) -> str | None:
    """Carry a run as a worker does; its report, or None if it waits for a person."""
    handle = bench.make_handle(script)
    try:
        report = await orchestrate(handle)
    except WaitingForUser:
        async with bench.db.transaction() as tx:
            await rest_run(tx, bench.run, bench.fence)
        return None
    async with bench.db.transaction() as tx:
        await end_with_report(tx, bench.run, bench.fence, report)
    return report


async def load_steps(bench: Workbench) -> list[AgentStep]:
    async with bench.db.reading() as tx:
        return await list_steps(tx, bench.run)


async def nodes(bench: Workbench) -> list[str]:
    return [one.node for one in await load_steps(bench)]
