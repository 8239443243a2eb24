"""Runs whose process is killed at every await: nothing is done twice, nothing is lost, the end is the same."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest
from desk_work import PROJECT, questions, state_of
from killed_course import Job, carry
from workbench import make_repository, run_git

from gristmill.agents import RunWish, answer_question, list_effects, start_run
from gristmill.agents.policy import set_policy
from gristmill.agents.running import RunCarrier
from gristmill.agents.runs import Question
from gristmill.db import Database
from gristmill.ids import RunId
from gristmill.sources import Wanted, add_source
from smtp_server import MailServer, run_mail_server

EVERYWHERE = (
    "GRISTMILL_KILL_EVERYWHERE"  # runs of all graphs are killed at every await around an effect or a checkpoint
)
SAMPLES = 12  # kill points of the run with real tools
SPREAD = 40  # kill points of the run by delegation
AROUND, ELSEWHERE = 16, 5  # kill points of the run by the standard graph
MOST_ROUNDS = 6


@dataclass
class Provider:
    """Counts what reached it; the same idempotency key is the same request, where a tool is said to know them."""

    port: int = 0
    talking: int = 0
    reached: Counter[str] = field(default_factory=Counter[str])
    known: dict[str, str] = field(default_factory=dict[str, str])
    is_idle: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, key: str, what: str) -> str:
        if not (int(what.rpartition("-")[2]) % 2 and key in self.known):
            self.reached[what] += 1
            self.known[key] = what.rpartition("/")[2]
        return self.known[key]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.is_idle.clear()
        self.talking += 1
        try:
            with suppress(ConnectionError):  # it was killed before it said anything
                if asked := (await reader.readline()).decode().split():
                    writer.write(f"{self.note(*asked)}\n".encode())
        finally:
            writer.close()
            self.talking -= 1
            if not self.talking:
                self.is_idle.set()


@asynccontextmanager
async def run_provider() -> AsyncIterator[Provider]:
    provider = Provider()
    provider.is_idle.set()
    async with await asyncio.start_server(provider.answer, "127.0.0.1", 0) as server:
        provider.port = server.sockets[0].getsockname()[1]
        yield provider


@dataclass
class World:
    """A database, everything outside, a process whose copies carry runs and are killed, and a worker that goes on."""

    db: Database
    provider: Provider
    mail: MailServer
    job: Job
    mother: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    worker: RunCarrier
    repository: Path
    last: RunId = field(default=RunId(0))  # the run that was begun last
    kills: int = 0
    asked: int = 0

    async def begin(self) -> RunId:
        words = " ".join(f"thing-{n}" for n in range(12))
        async with self.db.transaction() as tx:
            self.last = await start_run(tx, RunWish(f"Say {words} to anna@acme.example.", "anna", PROJECT))
        return self.last

    async def carry(self, run: RunId, at: int = -1, when: str = "waiting", *, is_first: bool = False) -> dict[str, Any]:
        """Let a copy carry a run, and be killed at an await; the first run is carried by the mother of all copies."""
        reader, writer = self.mother
        order = {"job": asdict(self.job), "run": run, "at": at, "when": when, "is_first": is_first}
        writer.write(json.dumps(order).encode() + b"\n")
        await writer.drain()
        return json.loads(await reader.readline())

    async def carry_to_its_end(self, run: RunId) -> None:
        """Another worker goes on, until the run is over; a person answers what nobody else can know."""
        for _ in range(MOST_ROUNDS):
            await carry(self.worker, run)
            state = (await state_of(self.db, run)).state
            if state == "completed":
                return
            assert state == "waiting_for_user"
            for question in await questions(self.db, run):
                await self._answer(question)
        raise AssertionError("it never came to its end")

    async def _answer(self, question: Question) -> None:
        """A person looks there, and says what is so."""
        assert question.kind == "unknown_effect", question
        self.asked += 1
        arguments = question.details["arguments"]
        if question.details["tool"] == "send_mail":
            was_done = any(arguments["subject"].encode() in mail for mail in self.mail.mails)
        else:
            was_done = self.provider.reached[f"{question.run}/{arguments['what']}"] > 0
        async with self.db.transaction() as tx:
            await answer_question(tx, question.id, choice="done" if was_done else "not_done", by="anna")

    async def look(self, run: RunId) -> dict[str, Any]:
        """Everything that is to be the same with kills and without."""
        async with self.db.reading() as tx:
            effects = await list_effects(tx, run)
        prefix = f"{run}/"
        return {
            "state": (await state_of(self.db, run)).state,
            "effects": sorted((one.key, one.tool, one.state) for one in effects),
            "reached": {
                what.removeprefix(prefix): n for what, n in self.provider.reached.items() if what.startswith(prefix)
            },
            "mails": sum(f"Subject: Run {run}\r\n".encode() in mail for mail in self.mail.mails),
        }

    def look_at_branch(self, run: RunId) -> list[str]:
        """The commits that reached the repository, and what is in them."""
        branch = f"agent/{run}"
        return run_git(self.repository, "log", "-p", "--format=%s", branch).splitlines()


@pytest.fixture(scope="session")
def mother() -> Iterator[socket.socket]:
    """The process whose copies are killed, for all tests of this process: it takes seconds to load."""
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, Path(__file__).with_name("killed_course.py")],
        env=os.environ | {"GRISTMILL_LOG_LEVEL": "error"},
        stdin=theirs,
        stdout=theirs,
    )
    theirs.close()
    yield ours
    ours.close()
    process.kill()
    process.wait()


@pytest.fixture
async def world(
    db: Database, url: str, tmp_path: Path, mother: socket.socket, request: pytest.FixtureRequest
) -> AsyncIterator[World]:
    """Everything that the course which a test is marked with needs."""
    repository = make_repository(tmp_path)
    async with db.transaction() as tx:
        await add_source(tx, Wanted("code", "git", {"url": str(repository)}, PROJECT))
        policy: dict[str, Any] = {"auto_push": True, "recipients": ("anna@acme.example",)}
        await set_policy(tx, PROJECT, "anna", tools=("post_known", "post_blind"), **policy)
    async with run_provider() as provider, run_mail_server() as mail:
        smtp = {"host": "127.0.0.1", "port": mail.port, "security": "none", "sender": "agent@acme.example"}
        agents = {"smtp": smtp, "use_dag_execution": True}
        job = Job(url, str(tmp_path / "data"), request.param, provider.port, agents)
        line = await asyncio.open_unix_connection(sock=mother.dup(), limit=2**22)  # bytes: an answer names every await
        try:
            yield World(db, provider, mail, job, line, job.make_carrier(db), repository)
        finally:
            line[1].close()
            await line[1].wait_closed()


def follow(course: str) -> pytest.MarkDecorator:
    """Let the runs of a test follow this course."""
    return pytest.mark.parametrize("world", [course], indirect=True)


async def kill_and_compare(world: World, at: int, when: str, calm: dict[str, Any]) -> None:
    """One run that is killed there, and carried to its end by others."""
    run = await world.begin()
    ended = await world.carry(run, at, when)
    assert "error" not in ended, ended
    world.kills += ended["killed"]
    await world.provider.is_idle.wait()
    if ended["killed"]:
        await world.carry_to_its_end(run)
    assert await world.look(run) == calm, f"killed at await {at}, {when}"


async def carry_calmly(world: World) -> tuple[dict[str, Any], int, list[str]]:
    await world.carry(await world.begin(), is_first=True)
    run = await world.begin()
    ended = await world.carry(run)
    assert "error" not in ended, ended
    calm = await world.look(run)
    assert calm["state"] == "completed"
    assert [state for _, _, state in calm["effects"]] == ["done"] * 12
    return calm, ended["awaits"], ended["around"]


@pytest.mark.slow
@follow("say")
@pytest.mark.parametrize(("when", "every"), [("waiting", 1), ("going on", 3)])
async def test_a_run_with_twelve_effects_survives_a_kill_at_every_await(world: World, when: str, every: int) -> None:
    """Where it begins to wait, its request is sent and not answered; where it goes on, it is answered."""
    calm, awaits, _ = await carry_calmly(world)
    assert calm["reached"] == {f"thing-{n}": 1 for n in range(12)}
    every = 1 if os.environ.get(EVERYWHERE) else every
    for at in range(0, awaits, every):  # an await that never goes on kills nobody
        await kill_and_compare(world, at, when, calm)
    assert world.kills >= 0.9 * awaits / every
    assert world.asked > 0


@pytest.mark.slow
@follow("delegate")
@pytest.mark.parametrize("when", ["waiting", "going on"])
async def test_a_run_by_delegation_survives_kills(world: World, when: str) -> None:
    """Two agents side by side, a part that is given away, a group after them: spread over the whole run."""
    calm, awaits, around = await carry_calmly(world)
    assert calm["reached"] == {f"thing-{n}": 1 for n in range(12)}
    points = choose_points(around, spread_evenly(awaits, SPREAD))
    for at in points:
        await kill_and_compare(world, at, when, calm)
    assert world.kills > len(points) // 2


def choose_points(around: Sequence[str], sampled: Sequence[int]) -> list[int]:
    """Where a run is killed: at some sampled awaits; everywhere, where that is asked for.

    Everywhere is at every await around an effect or a checkpoint, and at every third one elsewhere.
    """
    marked, others = sort_awaits(around)
    return sorted({*marked, *others[::3]}) if os.environ.get(EVERYWHERE) else sorted(set(sampled))


def spread_evenly(awaits: int, points: int) -> list[int]:
    return [(awaits * n + n) // points for n in range(points)]


def spread_around(around: Sequence[str]) -> list[int]:
    """Most of them around effects and checkpoints, and a few elsewhere."""
    marked, others = sort_awaits(around)
    return [*marked[:: len(marked) // AROUND], *others[:: len(others) // ELSEWHERE]]


def sort_awaits(around: Sequence[str]) -> tuple[list[int], list[int]]:
    """The awaits around effects and checkpoints, and the others."""
    return [n for n, name in enumerate(around) if name], [n for n, name in enumerate(around) if not name]


def test_everywhere_means_every_await_around_an_effect_or_a_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    around = ["", "", "effect 1", "effect 1", "", "", "checkpoint 1", ""]
    monkeypatch.delenv(EVERYWHERE, raising=False)
    assert choose_points(around, [5, 1]) == [1, 5]
    monkeypatch.setenv(EVERYWHERE, "1")
    assert choose_points(around, [5, 1]) == [0, 2, 3, 5, 6]


@pytest.mark.slow
@follow("standard")
@pytest.mark.parametrize("when", ["waiting", "going on"])
async def test_a_run_by_the_standard_graph_survives_kills_around_effects_and_checkpoints(
    world: World, when: str
) -> None:
    """Two goals, four steps, twelve effects, and a checkpoint after each node."""
    calm, _, around = await carry_calmly(world)
    assert calm["reached"] == {f"thing-{n}": 1 for n in range(12)}
    assert len({name for name in around if name.startswith("effect")}) == 12
    assert len({name for name in around if name.startswith("checkpoint")}) > 12
    points = choose_points(around, spread_around(around))
    for at in points:
        await kill_and_compare(world, at, when, calm)
    assert world.kills >= 0.9 * len(points)


@pytest.mark.slow
@follow("change")
@pytest.mark.parametrize("when", ["waiting", "going on"])
async def test_a_run_with_real_tools_survives_kills(world: World, when: str) -> None:
    """Files, commits, a push, a mail: spread over the whole run."""
    calm, awaits, around = await carry_calmly(world)
    first = world.last
    assert calm["mails"] == 1
    points = choose_points(around, spread_evenly(awaits, SAMPLES))
    for at in points:
        await kill_and_compare(world, at, when, calm)
        branch = [line.replace(f"agent/{world.last}", "") for line in world.look_at_branch(world.last)]
        assert _leave_out_times(branch) == _leave_out_times(world.look_at_branch(first))
    assert world.kills > len(points) // 2


def _leave_out_times(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("index ")]
