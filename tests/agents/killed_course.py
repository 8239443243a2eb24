"""A process that carries runs in copies of itself, and lets a copy be killed at a given await.

It reads a line for each copy: the run, the number of the await at which it is killed (-1: never), and whether it is
killed when it begins to wait there or when it would go on. It answers with the way in which the copy ended. The copies
are real processes that end by SIGKILL. The first run of a course is carried by no copy: what it loads, no copy loads.

A run whose process was killed is carried on by the test's own process, by `carry`: as a worker that lives on does it,
which has its connections and needs no process for each run.
"""

import asyncio
import gc
import itertools
import json
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pydantic import Field

from gristmill.agents.acting import Acted
from gristmill.agents.delegation.graph import make_graph
from gristmill.agents.delegation.model import AgentCapability, AgentOutput
from gristmill.agents.effects import Ledger
from gristmill.agents.letters import RunAgent
from gristmill.agents.orchestrator.execute_step import TOOLS_OF
from gristmill.agents.orchestrator.graph import carry as carry_standard
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.running import RunCarrier
from gristmill.agents.tools import TOOLS, AnyTool, Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.walking import RunSaver, walk
from gristmill.db import Database
from gristmill.errors import Transient, Unsent
from gristmill.ids import RunId, TaskId
from gristmill.models import FakeEmbedder, FakeLlm, ModelPool
from gristmill.queue.context import ChildMember, Running, set_current
from gristmill.queue.outcome import Done
from gristmill.rooms import Tools
from gristmill.settings import Settings


class Post(Arguments):
    """Something for the outside."""

    what: str = Field(description="What is said.")


async def post(arguments: Post, bench: ToolContext, outside: int) -> ToolResult:
    """One line goes out, with its idempotency key, and one comes back."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", outside)
    except OSError as error:
        raise Unsent("not reached") from error
    try:
        writer.write(f"{bench.begun.key} {bench.run.id}/{arguments.what}\n".encode())
        answer = await reader.readline()
    except OSError as error:
        raise Transient("cut off") from error
    finally:
        writer.close()
    if not answer:
        raise Transient("cut off")
    return ToolResult(answer.decode().strip())


def make_tool(name: str, outside: int, *, repeatable: bool) -> Tool[Post]:
    return Tool(
        name,
        "Say something to the outside.",
        Post,
        partial(post, outside=outside),
        changes="outside",
        targets={"what": "name"},
        repeatable=repeatable,
        summarise=lambda arguments: f"Say {arguments.what}.",
    )


def make_kit(outside: int) -> Mapping[str, AnyTool]:
    """All tools, and two that talk to the provider at this port."""
    known = make_tool("post_known", outside, repeatable=True)
    return {**TOOLS, "post_known": known, "post_blind": make_tool("post_blind", outside, repeatable=False)}


async def say_twelve_things(handle: RunHandle) -> str:
    """Six to a provider that knows idempotency keys, six to one that does not."""
    calls = handle.toolbox.at("1")
    said = [await calls.call("post_known" if n % 2 else "post_blind", {"what": f"thing-{n}"}) for n in range(12)]
    return ", ".join(one.text for one in said)


async def change_twelve_things(handle: RunHandle) -> str:
    """With the real tools: files, git, mail, and a provider."""
    calls = handle.toolbox.at("1")
    branch = f"agent/{handle.run.id}"
    said = [
        await calls.call("git_branch", {"branch": branch}),
        await calls.call("write_file", {"path": "notes.md", "text": "one\n"}),
        await calls.call("patch_file", {"path": "main.py", "old": "a - b", "new": "a + b"}),
        await calls.call("git_commit", {"message": "Mend"}),
        await calls.call("patch_file", {"path": "notes.md", "old": "one", "new": "one two"}),
        await calls.call("git_commit", {"message": "Note"}),
        await calls.call("git_push", {"branch": branch}),
        await calls.call("post_known", {"what": "thing-1"}),
        await calls.call("send_mail", {"to": ["anna@acme.example"], "subject": f"Run {handle.run.id}", "text": "done"}),
        await calls.call("post_blind", {"what": "thing-0"}),
        await calls.call("write_file", {"path": "more.md", "text": "more\n"}),
        await calls.call("git_commit", {"message": "More"}),
    ]
    assert not any(one.is_error for one in said), said
    return str(len(said))


# --- by delegation: two agents side by side, one of which gives a part away, and one after them

SAYS = {"alpha": (1, 3), "helper": (0, 2), "beta": (5, 4, 7, 6), "gamma": (9, 8, 11, 10)}
PLAN = {
    "domain": "communication",
    "delegations": [{"id": name[0], "agent": name, "task": f"Be {name}."} for name in ("alpha", "beta", "gamma")],
    "parallel_groups": [["a", "b"], ["g"]],
}
UNDERSTOOD = {"category": "SINGLE_TASK", "goal": "Say twelve things.", "is_clear": True, "question": ""}
DONE = "STATUS: 1\nRESULT: All is said.\nNEEDS_VERIFICATION: false"


@dataclass(frozen=True)
class Speaker:
    """An agent that says its things."""

    capability: AgentCapability
    instructions: str

    @staticmethod
    def check(output: AgentOutput, acted: Acted) -> Sequence[str]:
        return ()


def make_speaker(name: str) -> Speaker:
    tools = ["post_known", "post_blind"]
    can = {"can_sub_delegate": name == "alpha", "max_depth": 2 if name == "helper" else 1}
    return Speaker(AgentCapability(name=name, description=name, tool_names=tools, **can), f"You are {name}.")


def answer_by_script(words: str) -> Any:
    """Every process knows the same script, and goes by what it is told: by what was done before it."""
    if "Say which category" in words:
        return UNDERSTOOD
    if "You plan how a request" in words:
        return PLAN
    name = next((name for name in SAYS if f"You are {name}." in words), None)
    if name is None:
        return "All is said."
    for n in SAYS[name]:
        if f'"what":"thing-{n}"' not in words:
            return _use("post_known" if n % 2 else "post_blind", what=f"thing-{n}")
    if name == "alpha" and "result of delegate" not in words:
        return _use("delegate", agent="helper", task="Say two things.")
    return _use("answer", text=DONE)


def _use(tool: str, **arguments: str) -> dict[str, Any]:
    return {"thought": "next", "move": {"tool": tool, "arguments": arguments}}


async def delegate_twelve_things(handle: RunHandle) -> str:
    graph = make_graph(handle, {name: make_speaker(name) for name in SAYS})
    return str((await walk(graph, handle, {"execution_plan": None}))["report"])


# --- by the standard graph: two goals of two steps, each of which says three things

GOALS = [{"title": f"Half {n} is said", "done_when": "It is said."} for n in (1, 2)]
STEPS = {
    1: [{"kind": "track", "task": "Say the things 0 1 2."}, {"kind": "track", "task": "Say the things 3 4 5."}],
    2: [{"kind": "track", "task": "Say the things 6 7 8."}, {"kind": "track", "task": "Say the things 9 10 11."}],
}
TOLD = re.compile(r"Say the things ([\d ]+)")


def answer_for_standard(words: str) -> Any:
    if "Say which category" in words:
        return UNDERSTOOD
    if "Plan the task:" in words:
        return {"goals": GOALS}
    if goal := re.search(r"Name the steps that lead to goal (\d)", words):
        return {"steps": STEPS[int(goal[1])]}
    if "Judge whether this step was done" in words:
        return {"reason": "It is said.", "is_done": True}
    if "You work in rounds." not in words:
        return "All is said."
    told = TOLD.search(words)
    assert told is not None
    for n in map(int, told[1].split()):
        if f'"what":"thing-{n}"' not in words:
            return _use("post_known" if n % 2 else "post_blind", what=f"thing-{n}")
    return _use("answer", text="They are said.")


async def carry_twelve_things(handle: RunHandle) -> str:
    with patch.dict(TOOLS_OF, track=("post_known", "post_blind")):
        return await carry_standard(handle)


COURSES = {
    "say": say_twelve_things,
    "change": change_twelve_things,
    "delegate": delegate_twelve_things,
    "standard": carry_twelve_things,
}
SCRIPTS = {"standard": answer_for_standard}


# --- what happens around an await

AROUND: ContextVar[str] = ContextVar("around", default="")


def mark(name: str, work: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """The same, with a name for every await of it: the number of its calls is part of the name."""
    numbers = itertools.count()

    async def marked(*given: Any, **more: Any) -> Any:
        token = AROUND.set(f"{name} {next(numbers)}")
        try:
            return await work(*given, **more)
        finally:
            AROUND.reset(token)

    return marked


def mark_awaits() -> None:
    """In the process whose copies are killed, and nowhere else."""
    Ledger.perform = mark("effect", Ledger.perform)
    RunSaver.aput = mark("checkpoint", RunSaver.aput)
    RunSaver.aput_writes = mark("writes", RunSaver.aput_writes)


class Killing:
    """Counts every await of every task of this process, and kills the process at one of them."""

    def __init__(self, at: int, when: str) -> None:
        self.count = 0
        self.around: list[str] = []  # of each await
        self._at = at
        self._when = when

    def make_task(self, loop: asyncio.AbstractEventLoop, coroutine: Any, **more: Any) -> asyncio.Task[Any]:
        return asyncio.Task(self._watch(coroutine), loop=loop, **more)

    async def _watch(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return await _Watched(self, coroutine)

    def reach(self) -> bool:
        """Whether the process ends when this wait is over."""
        self.count += 1
        self.around.append(AROUND.get())
        is_here = self.count - 1 == self._at
        if is_here and self._when == "waiting":
            os.kill(os.getpid(), signal.SIGKILL)
        return is_here


class _Watched:
    def __init__(self, killing: Killing, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._killing = killing
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, Any]:
        step, value = self._coroutine.send, None
        while True:
            try:
                awaited = step(value)
            except StopIteration as done:
                return done.value
            ends = self._killing.reach()
            try:
                value, step = (yield awaited), self._coroutine.send
            except BaseException as error:  # noqa: BLE001 whatever it is, the coroutine must see it
                value, step = error, self._coroutine.throw
            if ends:
                os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class Job:
    """What the runs of a test have in common."""

    url: str  # of the database
    data: str
    course: str
    outside: int  # the port of the provider
    agents: dict[str, Any]  # settings

    def make_carrier(self, db: Database) -> RunCarrier:
        settings = Settings(data=Path(self.data), agents=self.agents, llm={"model": "scripted"})  # pyright: ignore[reportArgumentType]
        models = ModelPool(settings)
        models.embedder = FakeEmbedder()  # a child process that loads a model would outlive this one
        llm = FakeLlm(SCRIPTS.get(self.course, answer_by_script))
        return RunCarrier(Tools(db, settings, models), COURSES[self.course], make_kit(self.outside), llm)


async def carry(carrier: RunCarrier, run: int) -> None:
    """As a worker does it: the handler, then its answer in one transaction."""
    set_current(Running([ChildMember(TaskId(run), 1)], lambda *_: None))
    answer = await carrier.carry(RunAgent(RunId(run)))
    if isinstance(answer, Done) and answer.write is not None:
        async with carrier.tools.db.transaction() as tx:
            await answer.write(tx)


async def carry_alone(job: Job, run: int) -> None:
    db = await Database(job.url).__aenter__()  # nobody closes it: the process ends
    await carry(job.make_carrier(db), run)


async def carry_first(job: Job, run: int) -> None:
    """Leave nothing open behind: copies would have it, too."""
    async with Database(job.url) as db:
        carrier = job.make_carrier(db)
        async with carrier.tools.models:
            await carry(carrier, run)


def live(job: Job, order: dict[str, Any], report: int) -> None:
    """The life of a copy."""
    killing = Killing(order["at"], order["when"])
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    loop.set_task_factory(killing.make_task)
    loop.run_until_complete(carry_alone(job, order["run"]))
    ended = {"awaits": killing.count, "around": killing.around}
    with os.fdopen(report, "w", closefd=False) as told:
        json.dump(ended, told)


def let_copy_live(job: Job, order: dict[str, Any]) -> dict[str, Any]:
    """The way in which a copy of this process ended."""
    reading, writing = os.pipe()
    copy = os.fork()
    if copy == 0:
        os.close(reading)
        try:
            live(job, order, writing)
        except BaseException as error:  # noqa: BLE001 it is told to the test
            os.write(writing, json.dumps({"error": repr(error)}).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as report:
        said = report.read()
    _, status = os.waitpid(copy, 0)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    return {"killed": killed, **json.loads(said or "{}")}


def main() -> None:
    mark_awaits()
    for line in sys.stdin:
        order = json.loads(line)
        job = Job(**order["job"])
        if order["is_first"]:
            asyncio.run(carry_first(job, order["run"]))
            gc.collect()
            gc.freeze()  # it stays: no copy need look through it for garbage
            ended = {}
        else:
            ended = let_copy_live(job, order)
        print(json.dumps(ended), flush=True)  # noqa: T201 the answer


if __name__ == "__main__":
    main()
