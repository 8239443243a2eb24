"""The node that brings the changes of the workspace out of it: committed on a branch of the run, pushed if allowed."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from gristmill.agents.orchestrator.state import OrchestratorState, Update
from gristmill.agents.policy import load_policy
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import QuestionToAsk, Stepping
from gristmill.agents.tools import Calls
from gristmill.agents.tools.git_commit import find_changes, show_difference

PLACE = "git_operations"
COMMIT, LEAVE = "commit", "leave"
LONGEST_SUBJECT = 72


async def git_operations(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    if not state.get("changed_files"):
        return {"git": ""}
    branch = f"agent/run-{handle.run.id}"
    if not await may_commit(state, handle, branch):
        return {"git": "The changes were not committed: a person left them in the workspace."}
    calls = handle.toolbox.at(PLACE)
    said = await commit(state, calls, branch)
    step.output = {"branch": branch, "said": said}
    return {"git": " ".join(said), "artifacts": [*state.get("artifacts", []), *said]}


async def may_commit(state: OrchestratorState, handle: RunHandle, branch: str) -> bool:
    """Whether the changes may be committed: a person is asked, unless the policy lets branches be pushed unasked."""
    async with handle.db.reading() as tx:
        policy = await load_policy(tx, handle.run.place)
    if policy.auto_push:
        return True
    sentence = f"Shall these changes be committed on the branch {branch}? {state.get('goal', '')}"
    for n in count(1):
        key = "commit" if n == 1 else f"commit {n}"
        known = await handle.recall(key)
        details = known.details if known is not None else await describe_changes(handle, branch)
        (answer,) = await handle.ask(QuestionToAsk(key, "commit", sentence, (COMMIT, LEAVE), details))
        if answer.choice != COMMIT:
            return False
        if await is_as_shown(handle, details):
            return True
    return False


async def is_as_shown(handle: RunHandle, details: Mapping[str, Any]) -> bool:
    """Whether the workspace holds what a person agreed to; once the commit is in the ledger, it is compared there."""
    if "contents" not in details or await handle.toolbox.at(PLACE).has_asked_for("git_commit"):
        return True
    files = await handle.toolbox.context.files()
    return await files.hash_files(await find_changes(files)) == details["contents"]


async def describe_changes(handle: RunHandle, branch: str) -> dict[str, object]:
    files = await handle.toolbox.context.files()
    return {"branch": branch, **await show_difference(files, await find_changes(files))}


async def commit(state: OrchestratorState, calls: Calls, branch: str) -> list[str]:
    """Branch, commit, push: each is an effect with a key of its own; a refusal ends the row and is reported."""
    made = await calls.call("git_branch", {"branch": branch})
    if made.is_error:
        return [made.text]
    done = await calls.call("git_commit", {"message": write_message(state)})
    if done.is_error:
        return [done.text]
    said = [f"On {branch}: {done.text}"]
    pushed = await calls.call("git_push", {"branch": branch})
    return [*said, pushed.text]


def write_message(state: OrchestratorState) -> str:
    goal = " ".join(state.get("goal", "").split()) or "Do what was asked for"
    subject = goal if len(goal) <= LONGEST_SUBJECT else goal[: LONGEST_SUBJECT - 1] + "…"
    goals = [f"- {one['title']}" for one in state.get("goals", []) if one["state"] == "done"]
    return "\n\n".join([subject, "\n".join(goals)]) if goals else subject
