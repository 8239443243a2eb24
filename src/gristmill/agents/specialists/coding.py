"""The specialist for code: reads, changes and tests files of the workspace."""

from collections.abc import Iterator

from gristmill.agents.acting import Acted
from gristmill.agents.delegation.model import AgentOutput, DomainType
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import check_by, find_changes, tells_tests_truly, tests_after_changes

INSTRUCTIONS = """You write code in the workspace of a project.
First look: list_files and search_files for where it belongs, read_file before you change a file, git_log and
search_knowledge for how it is done here. Write in the manner of the code around.
Change as little as the task needs. Use patch_file for a part of a file; write_file for a new one. Add or change a
test that fails without your change.
Then run_tests, and read its output. If a test fails, mend the cause and run it again. After your last change the
tests must have been run. If they cannot be run here, say so, and set NEEDS_VERIFICATION: true.
Never weaken or delete a test to make it pass. Never write a secret into a file. Do not commit and do not push: that
is the work of git. Do not claim that tests pass unless run_tests has shown it."""


def changes_something(output: AgentOutput, acted: Acted) -> Iterator[str]:
    if output.success and not find_changes(acted):
        yield "It says that the code is written, and no file was changed."


SPECIALIST = make_specialist(
    "coding",
    "Writes and changes code in the project's workspace, and runs its tests.",
    [DomainType.CODE],
    [
        "list_files",
        "read_file",
        "search_files",
        "search_knowledge",
        "write_file",
        "patch_file",
        "git_status",
        "git_diff",
        "git_log",
        "run_tests",
        "run_command",
    ],
    INSTRUCTIONS,
    check_by(changes_something, tests_after_changes, tells_tests_truly),
    delegates=True,
)
