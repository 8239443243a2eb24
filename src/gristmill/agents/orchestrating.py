"""Chooses the course that carries a run: the standard graph, or the one of the settings."""

from gristmill.agents.checkpoints import is_by_delegation
from gristmill.agents.run_handle import RunHandle


async def orchestrate(handle: RunHandle) -> str:
    """Carry a run to its report, from its beginning or from its last checkpoint.

    A run stays in the graph that it began in: the other one could not read its checkpoints.
    """
    async with handle.db.reading() as tx:
        began = await is_by_delegation(tx, handle.run.id)
    # LangGraph takes a second to load, and only workers that carry runs need it
    if handle.settings.agents.use_delegation_graph if began is None else began:
        from gristmill.agents.delegation.graph import carry_by_delegation  # noqa: PLC0415

        return await carry_by_delegation(handle)
    from gristmill.agents.orchestrator.graph import carry  # noqa: PLC0415

    return await carry(handle)
