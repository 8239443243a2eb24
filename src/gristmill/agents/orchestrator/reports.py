"""Writes the report of a run from what is known of it: pure functions, and no model."""

from collections.abc import Iterator

from gristmill.agents.ask.excerpts import choose_excerpt
from gristmill.agents.orchestrator.state import Goal, OrchestratorState
from gristmill.agents.orchestrator.summary import drop_marks
from gristmill.agents.runs import Run
from gristmill.wording import format_count

MARKS = {"done": "x", "failed": "!", "open": " "}
LONGEST_PASSAGE = 600  # characters
MOST_PASSAGES = 5
NO_MODEL = "No model worked on this request. These passages fit it best:"
NEXT = {
    "ADVICE": "With a model, the question would be answered from these passages, sentence by sentence.",
    "SINGLE_TASK": "With a model, the task would be planned, done with tools and judged.",
    "EPIC": "With a model, a plan with several goals would be made, and you would be asked whether it fits.",
    "GENERATIVE": "With a model, a design would be made, and you would be asked whether it fits.",
}


def write_report(run: Run, state: OrchestratorState, summary: str = "") -> str:
    """In Markdown: what came of it, what was done for it, and on what it stands."""
    parts = [f"# {run.title}", *_list_parts(run, state, summary)]
    return "\n\n".join(part for part in parts if part)


def _list_parts(run: Run, state: OrchestratorState, summary: str) -> Iterator[str]:
    if not state.get("has_model"):
        yield NO_MODEL
        yield list_passages(run, state)
        yield NEXT[state.get("category", "SINGLE_TASK")]
        return
    yield state.get("answer", "")
    yield count_failures(state)
    yield summary
    yield state.get("ended", "")
    yield describe_work(state)
    if state.get("answer"):
        yield list_sources(state)
    elif not state.get("goals") and not state.get("ended"):
        yield NO_MODEL
        yield list_passages(run, state)


def count_failures(state: OrchestratorState) -> str:
    """What was not reached, by rule, before the words of the model: it may say that all is well."""
    goals = state.get("goals", [])
    failed = [one for one in goals if one["state"] != "done"]
    if not failed:
        return ""
    return f"{len(failed)} of {format_count(len(goals), 'goal')} {'was' if len(failed) == 1 else 'were'} not reached."


def name_unreached(state: OrchestratorState) -> str:
    """The same in a few words, for a list of runs; empty if every goal was reached."""
    goals = state.get("goals", [])
    failed = sum(one["state"] != "done" for one in goals)
    if not failed:
        return ""
    return "no goal reached" if failed == len(goals) else f"{failed} of {format_count(len(goals), 'goal')} not reached"


def describe_work(state: OrchestratorState) -> str:
    """The goals and what came of them, the files and other things that are there now, and where they went."""
    parts = [
        f"## Design\n\n{design}" if (design := state.get("design")) else "",
        "## Goals\n\n" + "\n".join(map(describe_goal, state.get("goals", []))) if state.get("goals") else "",
        "## Made or changed\n\n" + "\n".join(f"- {one}" for one in state.get("artifacts", []))
        if state.get("artifacts")
        else "",
        state.get("git", ""),
    ]
    return "\n\n".join(part for part in parts if part)


def describe_goal(goal: Goal) -> str:
    line = f"- [{MARKS[goal['state']]}] {goal['title']}"
    return f"{line}\n  {drop_marks(goal['summary'])}" if goal["summary"] else line


def list_passages(run: Run, state: OrchestratorState) -> str:
    """Of each passage the sentences that fit the request."""
    found = state.get("evidence", [])[:MOST_PASSAGES]
    shown = [
        f"[{one['number']}] {one['title']} (document {one['document']}, page {one['page']})\n> "
        + "\n> ".join(choose_excerpt(run.request, one["text"], most=LONGEST_PASSAGE).splitlines())
        for one in found
    ]
    return "\n\n".join(shown) or "Nothing that is stored fits."


def list_sources(state: OrchestratorState) -> str:
    """The passages that the answer cites, each with its page."""
    cited = [one for one in state.get("evidence", []) if f"[{one['number']}]" in state.get("answer", "")]
    lines = [f"[{one['number']}] {one['title']}, document {one['document']}, page {one['page']}" for one in cited]
    return "## Sources\n\n" + "\n".join(lines) if lines else ""
