"""Lists of runs and questions: a client's own, in portions, at a cost that does not grow with those of all others."""

from typing import Any

import pytest

from gristmill.agents.runs import LOOK, STATES, RunState, WantedRuns, list_questions, list_runs
from gristmill.agents.runs.listing import NEWEST, SQL
from gristmill.db import Database
from gristmill.scopes import Scope, scope_id
from plans import count_rows

ACME, MILL, GLOBEX = Scope("acme"), Scope("acme", "mill"), Scope("globex")
MANY_RUNS = """
INSERT INTO agent_run (scope, request, asked_by, state, fence, report, created_at, finished_at)
SELECT %(scope)s, 'Answer mail ' || n, 'anna', 'completed', 1, 'Done.', clock(), clock()
  FROM generate_series(1, %(n)s) n
"""
FEW_RUNS = """
INSERT INTO agent_run (scope, request, asked_by, state, fence, error, created_at, finished_at)
SELECT %(scope)s, 'Mend the mill ' || n, 'anna', 'failed', 1, 'It broke.', clock(), clock()
  FROM generate_series(1, %(n)s) n
"""
QUESTIONS = """
INSERT INTO agent_question (run, scope, key, kind, sentence, asked_at, answered_at, answered_by)
SELECT id, scope, '1', 'clarify', 'Which mill?', clock(), CASE WHEN id %% 2 = 0 THEN clock() END,
       CASE WHEN id %% 2 = 0 THEN 'anna' END FROM agent_run
"""


async def put_runs(db: Database, many: int) -> dict[Scope, int]:
    """A few runs of acme and of its project mill, then many of globex; a question each, every other is open."""
    async with db.transaction() as tx:
        scopes = {scope: int(await scope_id(tx, scope)) for scope in (ACME, MILL, GLOBEX)}
        await tx.execute(FEW_RUNS, scope=scopes[ACME], n=4)
        await tx.execute(FEW_RUNS, scope=scopes[MILL], n=2)
        await tx.execute(MANY_RUNS, scope=scopes[GLOBEX], n=many)
        await tx.execute(QUESTIONS)
        await tx.execute("ANALYZE agent_run, agent_question, scope")
    return scopes


@pytest.mark.parametrize(
    ("seen_from", "wanted", "n"),
    [
        (None, WantedRuns(), 106),
        (None, WantedRuns(client="acme"), 6),
        (None, WantedRuns(client="acme", project="mill"), 2),
        (None, WantedRuns(["failed"]), 6),
        (None, WantedRuns(["failed", "completed"], client="globex"), 100),
        (None, WantedRuns(client="nobody"), 0),
        (ACME, WantedRuns(), 6),
        (ACME, WantedRuns(client="globex"), 0),
        (ACME, WantedRuns(["completed"]), 0),
        (MILL, WantedRuns(["failed"]), 2),  # a run of the client may have read another project
        (GLOBEX, WantedRuns(text="MAIL 1"), 12),
    ],
)
async def test_a_list_has_the_runs_that_fit_the_newest_first(
    db: Database, seen_from: Scope | None, wanted: WantedRuns, n: int
) -> None:
    await put_runs(db, 100)
    async with db.transaction(seen_from=seen_from) as tx:
        found, more = await list_runs(tx, wanted, limit=200)
        ids = [one.id for one in found]
        assert (len(ids), more) == (n, None)
        assert ids == sorted(ids, reverse=True)
        portions: list[int] = []
        before: int | None = NEWEST
        while before is not None:
            runs, before = await list_runs(tx, wanted, before=before, limit=5)
            portions += [one.id for one in runs]
        assert portions == ids


async def test_words_are_looked_for_in_so_many_runs_and_the_next_portion_goes_on(db: Database) -> None:
    await put_runs(db, LOOK + 10)
    async with db.transaction() as tx:
        first, more = await list_runs(tx, WantedRuns(text="mend the mill"))
        assert first == []
        rest, end = await list_runs(tx, WantedRuns(text="mend the mill"), before=more)
        assert (len(rest), end) == (6, None)


async def test_a_client_has_its_own_questions_in_portions(db: Database) -> None:
    await put_runs(db, 100)
    for seen_from, is_open, n in ((None, True, 53), (None, False, 106), (ACME, True, 3), (ACME, False, 6)):
        async with db.transaction(seen_from=seen_from) as tx:
            ids = [one.id for one in await list_questions(tx, is_open=is_open, limit=200)]
            assert (len(ids), ids) == (n, sorted(ids, reverse=True))
            behind = await list_questions(tx, is_open=is_open, before=ids[1], limit=2)
            assert [one.id for one in behind] == ids[2:4]


async def test_no_list_reads_the_runs_and_questions_of_all_others(db: Database) -> None:
    scopes = await put_runs(db, 20_000)
    where: dict[str, Any] = {"before": NEWEST, "look": 51, "limit": 51}
    failed: tuple[RunState, ...] = ("failed", "stopped")
    for seen_from in (None, ACME):
        of = {"scopes": [scopes[ACME], scopes[MILL]]}
        streams: list[tuple[str, dict[str, Any]]] = [
            ("newest_runs_of_scopes", {**of, "states": list(STATES)}),
            ("newest_runs_of_scopes", {**of, "states": list(failed)}),
            ("newest_questions_of_scopes", of),
            ("open_questions_of_scopes", of),
        ]
        if seen_from is None:
            streams += [("newest_runs", {"states": list(states)}) for states in (STATES, failed)]
            streams += [("newest_questions", {}), ("open_questions", {})]
        async with db.transaction(seen_from=seen_from) as tx:
            for stream, given in streams:
                plan = await tx.value("EXPLAIN (ANALYZE, FORMAT JSON) " + SQL[stream], **where, **given)
                assert count_rows(plan[0]["Plan"]) < 600, (seen_from, stream, plan)
            for rows in ("fitting_runs", "these_questions"):
                asked = {"ids": list(range(1, 52)), "text": None, "limit": 51}
                plan = await tx.value("EXPLAIN (ANALYZE, FORMAT JSON) " + SQL[rows], **asked)
                assert count_rows(plan[0]["Plan"]) < 600, (seen_from, rows, plan)
