"""What is kept of runs that are over: their texts not at all, the rest for a while, then nothing."""

from datetime import timedelta

import pytest
from desk_work import PROJECT, Outside, ask_first, begin_run, make_effect, questions, state_of
from test_checkpoints import START_STATE, Walker
from workbench import Workbench

from gristmill.agents import upkeep
from gristmill.agents.letters import TidyRuns
from gristmill.agents.memory import remember
from gristmill.agents.running import end_in_failure, end_with_report
from gristmill.agents.runs import QuestionToAsk, ReadText, WaitingForUser, find_run
from gristmill.agents.stopping import end_run
from gristmill.agents.upkeep import tidy_runs
from gristmill.agents.walking import walk
from gristmill.db import Database
from gristmill.ids import RunId
from gristmill.models import FakeEmbedder
from gristmill.settings import Settings

BELOW = (
    "agent_step",
    "agent_context",
    "agent_text",
    "agent_effect",
    "agent_question",
    "agent_delegation",
    "agent_session",
)
THREADS = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
MAIL = ReadText("mail 7", "The code of the safe is 4711.")


async def tidy(bench: Workbench) -> None:
    await tidy_runs(TidyRuns(), db=bench.db, settings=bench.settings, embedders=[FakeEmbedder()])


async def count_rows(db: Database, run: RunId) -> dict[str, int]:
    """Of a run, in every table that has words of it."""
    async with db.reading() as tx:
        rows = {
            name: await tx.only_value(f"SELECT count(*)::int FROM {name} WHERE run = %(run)s", int, run=run)
            for name in BELOW
        }
        threads = {
            name: await tx.only_value(
                f"SELECT count(*)::int FROM langgraph.{name} WHERE thread_id = %(run)s::text",
                int,
                run=run,
            )
            for name in THREADS
        }
    return rows | threads


async def let_pass(db: Database, run: RunId, days: int) -> None:
    """As if a run had ended so many days ago."""
    move = "UPDATE agent_run SET finished_at = finished_at - %(since)s::interval WHERE id = %(run)s"
    async with db.transaction() as tx:
        await tx.execute(move, run=run, since=timedelta(days=days))


async def fill_run(bench: Workbench) -> None:
    """A run with something in every table."""
    await bench.begin("Go.")
    handle = bench.make_handle()
    await walk(Walker().make(), handle, START_STATE)
    await bench.box.read(MAIL)
    async with handle.step("plan", input={"words": MAIL.text}):
        pass
    await handle.keep_context("goal", "1", MAIL.text)
    with pytest.raises(WaitingForUser):
        await bench.ledger.perform(make_effect(), Outside().act, ask_first)
    with pytest.raises(WaitingForUser):
        await handle.ask(QuestionToAsk("which", "clarify", "Which one?"))
    async with bench.db.transaction() as tx:
        await remember(tx, bench.context.run, "background", "It went.")
        await tx.execute(
            """INSERT INTO agent_delegation (run, scope, delegation, depth, agent, task, started_at)
               SELECT id, scope, 'd1', 1, 'general', 'Go.', clock() FROM agent_run WHERE id = %(run)s""",
            run=bench.run,
        )


@pytest.mark.parametrize("end", ["completed", "failed", "stopped"])
async def test_what_a_run_has_read_is_forgotten_when_it_ends(bench: Workbench, end: str) -> None:
    await bench.begin("Go.")
    await bench.box.read(MAIL)
    assert (await count_rows(bench.db, bench.run))["agent_text"] == 1
    async with bench.db.transaction() as tx:
        if end == "completed":
            await end_with_report(tx, bench.run, bench.fence, "Done.")
        elif end == "failed":
            await end_in_failure(tx, bench.run, bench.fence, "It broke.")
        else:
            await end_run(tx, bench.run, "anna")
    assert (await state_of(bench.db, bench.run)).state == end
    if end == "stopped":  # by the key of a client, perhaps, which may remove nothing of a run
        await tidy(bench)
    assert (await count_rows(bench.db, bench.run))["agent_text"] == 0
    await bench.box.read(MAIL)  # by a worker that does not know yet
    assert (await count_rows(bench.db, bench.run))["agent_text"] == 0


async def test_what_older_runs_have_read_is_forgotten_too(bench: Workbench) -> None:
    await bench.begin("Go.")
    await bench.box.read(MAIL)
    async with bench.db.transaction() as tx:
        await tx.execute("UPDATE agent_run SET state = 'completed', report = 'Done.', finished_at = clock()")
    await tidy(bench)
    assert (await count_rows(bench.db, bench.run))["agent_text"] == 0


async def test_a_run_that_was_over_long_ago_is_removed_with_everything_below_it(bench: Workbench) -> None:
    await fill_run(bench)
    there = await count_rows(bench.db, bench.run)
    assert {name for name, rows in there.items() if not rows} <= {"checkpoint_writes"}
    async with bench.db.transaction() as tx:
        await end_with_report(tx, bench.run, bench.fence, "Done.")
    await let_pass(bench.db, bench.run, 89)
    await tidy(bench)
    assert (await count_rows(bench.db, bench.run))["agent_effect"] == 1
    await let_pass(bench.db, bench.run, 2)
    await tidy(bench)
    async with bench.db.reading() as tx:
        assert await find_run(tx, bench.run) is None
    assert set((await count_rows(bench.db, bench.run)).values()) == {0}


async def test_a_run_that_waits_for_a_person_is_kept_however_old_it_is(bench: Workbench) -> None:
    await fill_run(bench)
    async with bench.db.transaction() as tx:
        await tx.execute("UPDATE agent_run SET created_at = clock() - interval '400 days'")
    await tidy(bench)
    assert len(await questions(bench.db, bench.run)) == 2


async def test_old_runs_are_removed_a_portion_at_a_time(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "PORTION", 2)
    monkeypatch.setattr(upkeep, "MOST_PORTIONS", 2)
    runs = [(await begin_run(bench.db, scope=PROJECT))[0] for _ in range(5)]
    async with bench.db.transaction() as tx:
        for run in runs:
            await end_run(tx, run, "anna")
    for run in runs:
        await let_pass(bench.db, run, 100)
    left = []
    for _ in range(2):
        await tidy(bench)
        async with bench.db.reading() as tx:
            left.append([run for run in runs if await find_run(tx, run) is not None])
    assert left == [runs[4:], []]


def test_runs_are_kept_for_ninety_days_and_never_for_none() -> None:
    assert Settings().agents.keep_runs == timedelta(days=90)
    with pytest.raises(ValueError, match="keep_runs"):
        Settings(agents={"keep_runs": "0s"})  # pyright: ignore[reportArgumentType]
