"""The specialist for reviews: reads a change and names its faults by file and line."""

import re
from collections.abc import Iterator

from gristmill.agents.acting import Acted
from gristmill.agents.delegation.model import AgentOutput, DomainType
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import PLACE, check_by, find_done, is_claimed, names_known_lines

NO_FINDINGS = re.compile(r"\bno findings\b", re.IGNORECASE)
INSTRUCTIONS = """You review a change of code. You change nothing.
First git_diff (since the commit or branch that the task names). Then read_file around each hunk, and search_files
for who calls what was changed. Look for: wrong results and missed cases, errors that are passed over, races,
resources that stay open, input that is trusted, tests that are missing or assert nothing, names that mislead, code
that is there twice. Write each finding as path:line, what is wrong, what would happen, and what to do. The line is
one of the new version, as the diff or read_file shows it. The worst comes first. Findings that you cannot show at a
line are questions: say so. If there are none, write “No findings.” and what you looked at.
Never invent a line or a file. Never praise. Do not repeat what the diff says."""


def looks_at_the_change(output: AgentOutput, acted: Acted) -> Iterator[str]:
    if is_claimed(output) and not find_done(acted, "git_diff", "read_file"):
        yield "It has not looked at the change: call git_diff."


def names_lines(output: AgentOutput, acted: Acted) -> Iterator[str]:
    if is_claimed(output) and not PLACE.search(output.result) and not NO_FINDINGS.search(output.result):
        yield "It names no line: write path:line for each finding, or “No findings.”"


SPECIALIST = make_specialist(
    "code_review",
    "Reviews a change of code: faults by file and line, with what to do.",
    [DomainType.CODE, DomainType.SECURITY],
    ["git_diff", "git_log", "git_status", "list_files", "read_file", "search_files", "search_knowledge"],
    INSTRUCTIONS,
    check_by(looks_at_the_change, names_lines, names_known_lines),
)
