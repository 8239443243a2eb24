"""The node that brings the changes of the workspace out of it: committed on a branch of the run, pushed if allowed."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from gristmill.agents.desk import Desk
from gristmill.agents.orchestrator.state import State, Update
from gristmill.agents.policy import load_policy
from gristmill.agents.runs import Asked, Stepping
from gristmill.agents.tools import Calls
from gristmill.agents.tools.git_commit import find_changes, show_difference
from gristmill.errors import Refused

PLACE = "git_operations"
COMMIT, LEAVE = "commit", "leave"
LONGEST_SUBJECT = 72


async def git_operations(state: State, desk: Desk, step: Stepping) -> Update:
    if not state.get("changed_files"):
        return {"git": ""}
    branch = f"agent/run-{desk.run.id}"
    if not await may_commit(state, desk, branch):
        return {"git": "The changes were not committed: a person left them in the workspace."}
    calls = desk.toolbox.at(PLACE)
    said = await commit(state, calls, branch)
    step.output = {"branch": branch, "said": said}
    return {"git": " ".join(said), "artifacts": [*state.get("artifacts", []), *said]}


async def may_commit(state: State, desk: Desk, branch: str) -> bool:
    """Whether the changes may be committed: a person is asked, unless the policy lets branches be pushed unasked."""
    async with desk.db.reading() as tx:
        policy = await load_policy(tx, desk.run.place)
    if policy.auto_push:
        return True
    sentence = f"Shall these changes be committed on the branch {branch}? {state.get('goal', '')}"
    for n in count(1):
        key = "commit" if n == 1 else f"commit {n}"
        known = await desk.recall(key)
        details = known.details if known is not None else await describe_changes(desk, branch)
        (answer,) = await desk.ask(Asked(key, "commit", sentence, (COMMIT, LEAVE), details))
        if answer.choice != COMMIT:
            return False
        if await is_as_shown(desk, details):
            return True
    return False


async def is_as_shown(desk: Desk, details: Mapping[str, Any]) -> bool:
    """Whether the workspace holds what a person agreed to; once the commit is in the ledger, it is compared there."""
    if "contents" not in details or await desk.toolbox.at(PLACE).has_asked_for("git_commit"):
        return True
    files = await desk.toolbox.bench.files()
    return await files.hash_files(await find_changes(files)) == details["contents"]


async def describe_changes(desk: Desk, branch: str) -> dict[str, object]:
    files = await desk.toolbox.bench.files()
    return {"branch": branch, **await show_difference(files, await find_changes(files))}


async def commit(state: State, calls: Calls, branch: str) -> list[str]:
    """Branch, commit, push: each is an effect with a key of its own; a refusal ends the row and is reported."""
    made = await calls.call("git_branch", {"branch": branch})
    if made.is_error:
        return [made.text]
    done = await calls.call("git_commit", {"message": write_message(state)})
    if done.is_error:
        return [done.text]
    said = [f"On {branch}: {done.text}"]
    try:
        pushed = await calls.call("git_push", {"branch": branch})
    except Refused as error:
        return [*said, str(error)]
    return [*said, pushed.text]


def write_message(state: State) -> str:
    goal = " ".join(state.get("goal", "").split()) or "Do what was asked for"
    subject = goal if len(goal) <= LONGEST_SUBJECT else goal[: LONGEST_SUBJECT - 1] + "…"
    goals = [f"- {one['title']}" for one in state.get("goals", []) if one["state"] == "done"]
    return "\n\n".join([subject, "\n".join(goals)]) if goals else subject
