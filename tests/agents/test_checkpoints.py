"""Checkpoints of runs: the next worker goes on there, one that lost the run writes none, the past is not kept."""

from operator import add
from typing import Annotated, Any

import pytest
from desk_work import take_again
from langgraph.checkpoint.postgres.base import MIGRATIONS
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict
from workbench import Workbench

from gristmill.agents.checkpoints import measure_checkpoints, prune_checkpoints, prune_ended_runs
from gristmill.agents.stopping import end_run
from gristmill.agents.walking import AnyGraph, walk
from gristmill.db import Database
from gristmill.errors import LeaseLost, Transient
from gristmill.ids import RunId


class Trail(TypedDict):
    """Where a run has been."""

    seen: Annotated[list[str], add]
    big: str


class Walker:
    """A graph of three nodes that counts its visits; `fault` is raised once by the second."""

    def __init__(self) -> None:
        self.visits: list[str] = []
        self.fault: Exception | None = None

    def make(self) -> AnyGraph:
        graph: Any = StateGraph(Trail)
        for name in ("one", "two", "three"):
            graph.add_node(name, self._make_node(name))
        for pair in ((START, "one"), ("one", "two"), ("two", "three"), ("three", END)):
            graph.add_edge(*pair)
        return graph

    def _make_node(self, name: str) -> Any:
        async def visit(state: Trail) -> dict[str, Any]:
            self.visits.append(name)
            if name == "two" and self.fault is not None:
                fault, self.fault = self.fault, None
                raise fault
            return {"seen": [name], "big": name * 2_000}

        return visit


async def measure(db: Database, run: RunId) -> tuple[int, int]:
    async with db.reading() as tx:
        return await measure_checkpoints(tx, run)


START_STATE = {"seen": [], "big": ""}


async def test_the_next_worker_goes_on_at_the_node_that_failed(bench: Workbench) -> None:
    await bench.begin("Go.")
    walker = Walker()
    walker.fault = Transient("The world is busy.")
    with pytest.raises(Transient, match="busy"):
        await walk(walker.make(), bench.make_handle(), START_STATE)
    await bench.again()
    state = await walk(walker.make(), bench.make_handle(), START_STATE)
    assert walker.visits == ["one", "two", "two", "three"]
    assert state["seen"] == ["one", "two", "three"]


async def test_a_run_whose_worker_died_before_its_report_is_not_walked_again(bench: Workbench) -> None:
    await bench.begin("Go.")
    walker = Walker()
    await walk(walker.make(), bench.make_handle(), START_STATE)
    await bench.again()
    state = await walk(walker.make(), bench.make_handle(), START_STATE)
    assert state["seen"] == ["one", "two", "three"]
    assert len(walker.visits) == 3


async def test_a_worker_that_lost_the_run_writes_no_checkpoint(bench: Workbench) -> None:
    await bench.begin("Go.")
    handle = bench.make_handle()
    await take_again(bench.db, bench.run)
    with pytest.raises(LeaseLost):
        await walk(Walker().make(), handle, START_STATE)
    assert (await measure(bench.db, bench.run))[0] == 0


async def test_two_runs_do_not_see_each_other(bench: Workbench) -> None:
    await bench.begin("Go.")
    await walk(Walker().make(), bench.make_handle(), START_STATE)
    await bench.begin("Go again.")
    walker = Walker()
    await walk(walker.make(), bench.make_handle(), START_STATE)
    assert len(walker.visits) == 3


async def test_of_a_run_that_is_over_only_its_last_state_is_kept(bench: Workbench) -> None:
    await bench.begin("Go.")
    walker = Walker()
    await walk(walker.make(), bench.make_handle(), START_STATE)
    before, size = await measure(bench.db, bench.run)
    async with bench.db.transaction() as tx:
        await prune_checkpoints(tx, bench.run)
    after, left = await measure(bench.db, bench.run)
    assert (before, after) == (5, 1)
    assert left < size / 2
    await bench.again()
    state = await walk(walker.make(), bench.make_handle(), START_STATE)
    assert state["seen"] == ["one", "two", "three"]
    assert len(walker.visits) == 3


async def test_a_run_that_was_stopped_is_pruned_by_whoever_tidies_up(bench: Workbench) -> None:
    await bench.begin("Go.")
    walker = Walker()
    walker.fault = Transient("busy")
    with pytest.raises(Transient):
        await walk(walker.make(), bench.make_handle(), START_STATE)
    async with bench.db.transaction() as tx:
        assert await prune_ended_runs(tx) == 0
        await end_run(tx, bench.run, "anna")
        assert await prune_ended_runs(tx) == 1
        assert await prune_ended_runs(tx) == 0
    assert (await measure(bench.db, bench.run))[0] == 1


async def test_no_tenant_sees_a_checkpoint(db: Database) -> None:
    async with db.reading() as tx:
        seen = await tx.value("SELECT has_schema_privilege('gristmill_tenant', 'langgraph', 'USAGE')")
    assert not seen


async def test_the_tables_are_those_of_the_library(db: Database) -> None:
    """A newer library with another migration needs another migration of ours."""
    async with db.reading() as tx:
        assert await tx.value("SELECT max(v) + 1 FROM langgraph.checkpoint_migrations") == len(MIGRATIONS)
