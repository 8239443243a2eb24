"""`gristmill agents`: what each agent does in runs, what it has cost, and how often it succeeded."""

from typing import Any

import typer

from gristmill.agents import AgentCapability, AgentMetrics, list_agent_metrics, list_capabilities
from gristmill.cli.output import Json, emit, make_table
from gristmill.cli.session import run, session


def register(root: typer.Typer, text: str) -> None:
    root.command("agents")(agents)


def agents(json: Json = False) -> None:
    """Agents that runs delegate to: what they do, and their figures of the last 90 days.

    Example: gristmill agents
    """
    found = {one.agent: one for one in run(_load())}
    known = list_capabilities()
    described = [_describe(one, found.get(one.name)) for one in known]
    rows = [
        (
            one["name"],
            one["delegations"],
            one["succeeded"],
            one["tokens"],
            one["calls"],
            one["seconds"],
            one["description"],
        )
        for one in described
    ]
    columns = ("agent", ">delegations", ">succeeded", ">tokens", ">calls", ">seconds", "what")
    emit(json, described, lambda: make_table(columns, rows, empty="There are no agents."))


async def _load() -> list[AgentMetrics]:
    async with session() as at, at.db.reading() as tx:
        return await list_agent_metrics(tx)


def _describe(one: AgentCapability, figures: AgentMetrics | None) -> dict[str, Any]:
    """An agent for programs: without a delegation, its figures are zero."""
    return {
        **one.model_dump(mode="json"),
        "delegations": figures.delegations if figures else 0,
        "succeeded": figures.succeeded if figures else 0,
        "failed": figures.failed if figures else 0,
        "tokens": figures.tokens if figures else 0,
        "calls": figures.calls if figures else 0,
        "sub_delegations": figures.parts if figures else 0,
        "seconds": round(figures.seconds, 1) if figures else 0.0,
        "last_at": figures.last_at if figures else None,
    }
