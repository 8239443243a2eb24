"""The plainest course of a run, which needs no model: what is known about the request, and what would be asked next."""

from gristmill.agents.desk import Desk

MOST_PASSAGES = 5


async def report_passages(desk: Desk) -> str:
    """A report of the passages that fit the request best."""
    async with desk.step("report", title=desk.run.title, input={"request": desk.run.request}) as step:
        calls = desk.toolbox.at("report")
        found = await calls.call("search_knowledge", {"query": desk.run.request[:1_000], "limit": MOST_PASSAGES})
        step.output = {"documents": found.data.get("documents", [])}
    return f"# {desk.run.title}\n\nNo model worked on this request. These passages fit it best:\n\n{found.text}"
