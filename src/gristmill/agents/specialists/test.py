"""The specialist for tests: writes and runs them, and tells their result as it is."""

from collections.abc import Iterator

from gristmill.agents.acting import Acted
from gristmill.agents.delegation.model import AgentOutput, DomainType
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import check_by, find_last_tests, tells_tests_truly, tests_after_changes

INSTRUCTIONS = """You test what a project does.
First list_files and read_file: how are tests written and run here? Write tests in the same manner: each a sentence
about behaviour, on the real thing where that is possible. Test the border, the empty, the wrong and the second
time. Run them with run_tests, and read the output to its end. A test that cannot fail is no test: say what would
make it fail. Tell the result exactly as the output shows it: how many passed and failed, and the first error in its
own words. If the last run failed, STATUS is 0, or P if you found out why. If the tests cannot be run here, say so:
STATUS is P, and NEEDS_VERIFICATION is true.
Never change the code that is tested. Never skip, loosen or delete a test so that it passes. Never guess a result."""


def runs_tests(output: AgentOutput, acted: Acted) -> Iterator[str]:
    if output.success and not output.is_partial and find_last_tests(acted) is None:
        yield "The tests were not run to their end: call run_tests."


def changes_tests_alone(output: AgentOutput, acted: Acted) -> Iterator[str]:
    foreign = [path for path in acted.changed_files if not is_test(path)]
    if foreign:
        yield f"It changed {foreign[0]}, which is no test."


def is_test(path: str) -> bool:
    parts = path.casefold().split("/")
    name = parts[-1]
    in_folder = any(part in ("test", "tests", "spec", "specs", "__tests__", "testdata") for part in parts[:-1])
    return (
        in_folder or name.startswith(("test_", "conftest")) or "_test." in name or ".test." in name or ".spec." in name
    )


SPECIALIST = make_specialist(
    "test",
    "Writes tests and runs them in the sandbox; tells their result exactly.",
    [DomainType.CODE],
    ["list_files", "read_file", "search_files", "write_file", "patch_file", "git_diff", "run_tests"],
    INSTRUCTIONS,
    check_by(runs_tests, tests_after_changes, tells_tests_truly, changes_tests_alone),
)
