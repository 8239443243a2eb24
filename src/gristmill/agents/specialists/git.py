"""The specialist for git: branches, commits and pushes what others have changed."""

import re
from collections.abc import Iterator

from gristmill.agents.acting import Acted
from gristmill.agents.delegation.model import AgentOutput, DomainType
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import COMMIT, check_by, find_done, is_denied, join_shown

INSTRUCTIONS = """You keep the history of a project in git.
First git_status and git_diff: know what has changed before you commit it. Commit only what belongs to the task;
name its files if others have changed, too. Work on a branch that agents may write (agent/…): git_branch begins it.
A message has a subject in the imperative of at most 72 characters, an empty line, and the reasons. Say what changed
and why, not how. One purpose a commit.
Push only if the task asks for it; a person is asked before. Afterwards look at git_log, and name commit and branch
exactly as git shows them.
Never commit secrets, files that are made by programs, or changes that you did not look at. Never rewrite history,
and never push to a branch that the policy does not name."""


def names_real_commits(output: AgentOutput, acted: Acted) -> Iterator[str]:
    known = COMMIT.findall(join_shown(acted, output))
    unknown = [one for one in COMMIT.findall(output.result) if not any(other.startswith(one) for other in known)]
    if unknown:
        yield f"It names the commit {unknown[0]}, which git has not shown."


def pushes_truly(output: AgentOutput, acted: Acted) -> Iterator[str]:
    found = re.search(r"\bpushed\b", output.result, re.IGNORECASE)
    if found and not is_denied(output.result, found.start()) and not find_done(acted, "git_push"):
        yield "It says that something was pushed, and nothing was."


def commits_what_it_saw(output: AgentOutput, acted: Acted) -> Iterator[str]:
    tools = [one.tool for one in acted.calls if not one.result.is_error]
    if "git_commit" in tools and not {"git_status", "git_diff"} & set(tools[: tools.index("git_commit")]):
        yield "It committed without a look at what has changed."


def does_something(output: AgentOutput, acted: Acted) -> Iterator[str]:
    if output.success and not any(one.tool.startswith("git_") and not one.result.is_error for one in acted.calls):
        yield "It has asked git nothing."


SPECIALIST = make_specialist(
    "git",
    "Branches, commits and pushes in the project's repository, and looks into its history.",
    [DomainType.CODE, DomainType.DEVOPS],
    ["git_status", "git_diff", "git_log", "git_branch", "git_commit", "git_push", "list_files", "read_file"],
    INSTRUCTIONS,
    check_by(does_something, commits_what_it_saw, names_real_commits, pushes_truly),
)
