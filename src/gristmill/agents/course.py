"""The plainest course of a run, which needs no model: what was done so far, and what is known about the request."""

from gristmill.agents.delegation.store import list_delegations
from gristmill.agents.run_handle import RunHandle

MOST_PASSAGES = 5


async def report_by_template(handle: RunHandle, why: str) -> str:
    """A report where no model answers: why it does not, what came of the goals so far, and the passages that fit."""
    async with handle.step("report", title=handle.run.title, input={"request": handle.run.request}) as step:
        calls = handle.toolbox.at("report")
        found = await calls.call("search_knowledge", {"query": handle.run.request[:1_000], "limit": MOST_PASSAGES})
        step.output = {"documents": found.data.get("documents", []), "why": why}
    done = [f"- {one.summary}" for one in await handle.load_contexts() if one.level == "goal"]
    async with handle.db.reading() as tx:
        done += [f"- {one.summary}" for one in await list_delegations(tx, handle.run.id) if one.is_over]
    parts = [
        f"# {handle.run.title}",
        f"The model did not answer: {why}" if why else "No model worked on this request.",
        "## Done before\n\n" + "\n".join(done) if done else "",
        f"These passages fit it best:\n\n{found.text}",
    ]
    return "\n\n".join(part for part in parts if part)
