"""The specialist for building and running: pipelines, containers, scripts and settings of a project."""

import re
from collections.abc import Iterator

from gristmill.agents.acting import Acted
from gristmill.agents.delegation.model import AgentOutput, DomainType
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import (
    check_by,
    find_changes,
    find_done,
    is_claimed,
    names_known_lines,
    tells_tests_truly,
)
from gristmill.agents.tools.check_ci import PIPELINE
from gristmill.agents.tools.secrets import hides_secret

INSTRUCTIONS = """You care for how a project is built, tested and run: pipelines, containers, make files, scripts.
First list_files and check_ci, then read_file for what matters. git_log shows what changed last where something
broke. Find the cause before you change anything: the first error counts, not the last. Change one thing, then run
it again with run_tests or run_command (a sandbox without network: say what could not be tried there).
Name versions exactly; give a job the fewest rights; keep secrets in the secret store and never in a file. After a
change of a pipeline or container file call check_ci again, and name what it still finds as path:line.
Some of these files may not be changed by agents: then write what should stand there into RESULT, for a person.
Never deploy, never delete, never switch a check off so that it passes. Nothing outside the workspace is changed."""


def checks_after_changes(output: AgentOutput, acted: Acted) -> Iterator[str]:
    changes = [
        n
        for n, one in enumerate(acted.calls)
        if one.tool in ("write_file", "patch_file")
        and not one.result.is_error
        and PIPELINE.search(str(one.arguments.get("path", "")))
    ]
    if output.success and changes and not any(one.tool == "check_ci" for one in acted.calls[changes[-1] + 1 :]):
        yield "A file of the pipeline was changed and not checked again: call check_ci."


def writes_no_secret(output: AgentOutput, acted: Acted) -> Iterator[str]:
    for one in find_changes(acted):
        kind = hides_secret(str(one.arguments.get("text") or one.arguments.get("new") or ""))
        if kind:
            yield f"It wrote {kind} into {one.arguments.get('path')}."


def looks_first(output: AgentOutput, acted: Acted) -> Iterator[str]:
    if is_claimed(output) and not find_done(acted, "check_ci", "read_file", "search_files", "git_log", "run_command"):
        yield "It has looked at nothing."


def tells_commands_truly(output: AgentOutput, acted: Acted) -> Iterator[str]:
    """A success needs a last command that ended well, or an issue that says otherwise."""
    runs = [one for one in acted.calls if one.tool in ("run_command", "run_tests") and "code" in one.result.data]
    if output.success and runs and runs[-1].result.data["code"] != 0 and not output.issues:
        said = re.sub(r"\s+", " ", str(runs[-1].arguments.get("command", "")))[:80]
        yield f"“{said}” ended with the code {runs[-1].result.data['code']}, and the answer names no issue."


SPECIALIST = make_specialist(
    "devops",
    "Pipelines, containers, builds and scripts: finds what is wrong, mends it in the workspace.",
    [DomainType.DEVOPS, DomainType.CODE],
    [
        "list_files",
        "read_file",
        "search_files",
        "check_ci",
        "git_log",
        "git_diff",
        "write_file",
        "patch_file",
        "run_command",
        "run_tests",
    ],
    INSTRUCTIONS,
    check_by(
        looks_first,
        checks_after_changes,
        writes_no_secret,
        tells_commands_truly,
        tells_tests_truly,
        names_known_lines,
    ),
    delegates=True,
)
