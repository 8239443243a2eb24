"""The plainest course of a run, which needs no model: what was done so far, and what is known about the request."""

from gristmill.agents.delegation.store import list_delegations
from gristmill.agents.desk import Desk

MOST_PASSAGES = 5


async def report_by_template(desk: Desk, why: str) -> str:
    """A report where no model answers: why it does not, what came of the goals so far, and the passages that fit."""
    async with desk.step("report", title=desk.run.title, input={"request": desk.run.request}) as step:
        calls = desk.toolbox.at("report")
        found = await calls.call("search_knowledge", {"query": desk.run.request[:1_000], "limit": MOST_PASSAGES})
        step.output = {"documents": found.data.get("documents", []), "why": why}
    done = [f"- {one.summary}" for one in await desk.load_contexts() if one.level == "goal"]
    async with desk.db.reading() as tx:
        done += [f"- {one.summary}" for one in await list_delegations(tx, desk.run.id) if one.is_over]
    parts = [
        f"# {desk.run.title}",
        f"The model did not answer: {why}" if why else "No model worked on this request.",
        "## Done before\n\n" + "\n".join(done) if done else "",
        f"These passages fit it best:\n\n{found.text}",
    ]
    return "\n\n".join(part for part in parts if part)
