"""Carries a run through a graph, with LangGraph's checkpoints in the schema `langgraph`.

It loads LangGraph, which takes a second: only what carries runs imports it.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.errors import GraphRecursionError
from langgraph.graph import StateGraph
from typing_extensions import override

from gristmill.agents.checkpoints import SQL
from gristmill.agents.run_handle import RunHandle
from gristmill.db import Database
from gristmill.errors import LeaseLost, Permanent
from gristmill.ids import RunId

SCHEMA = "langgraph"
AnyGraph = StateGraph[Any, Any, Any, Any]


class RunSaver(AsyncPostgresSaver):
    """Keeps the checkpoints of one run. A worker with an old fence writes none: LeaseLost.

    States hold plain values (texts, numbers, lists, dicts) and nothing else: a checkpoint makes no objects when it is
    read.
    """

    def __init__(self, db: Database, run: RunId, fence: int) -> None:
        # it borrows its connections from the database below, and has none of its own
        super().__init__(cast(Any, None), serde=JsonPlusSerializer(allowed_msgpack_modules=None))
        self._db = db
        self._run = run
        self._fence = fence

    @asynccontextmanager
    @override
    async def _cursor(self, *, pipeline: bool = False) -> AsyncGenerator[Any]:
        """A cursor in a transaction; whatever writes asks for a pipeline, and holds the run."""
        async with self._db.lend_cursor(SCHEMA) as cursor:
            if pipeline:
                await cursor.execute(SQL["hold_fence"], {"run": self._run, "fence": self._fence})
                if await cursor.fetchone() is None:
                    raise LeaseLost(f"Run {self._run} is not ours any more: another worker has it, or it was stopped.")
            yield cursor


async def walk(graph: AnyGraph, handle: RunHandle, start: Mapping[str, Any]) -> Mapping[str, Any]:
    """Carry a run through a graph, from its beginning or from its last checkpoint; its last state.

    A node that was interrupted runs again from its beginning. The state after each node is written before the next one
    begins.
    """
    most = handle.settings.agents.max_iterations
    saver = RunSaver(handle.db, handle.run.id, handle.fence)
    compiled = cast(Any, graph).compile(checkpointer=saver)  # its types name what is not known of a state
    config: RunnableConfig = {"configurable": {"thread_id": str(handle.run.id)}, "recursion_limit": 2 * most}
    known = await compiled.aget_state(config)
    # the worker before died between its last node and its report; `next` would be empty, too, where a node has ended
    # and the checkpoint behind it is missing
    if known.values and not known.tasks:
        return known.values
    try:
        return await compiled.ainvoke(None if known.values else dict(start), config, durability="sync")
    except GraphRecursionError as error:
        raise Permanent(f"The run went in circles: more than {2 * most} steps.") from error
