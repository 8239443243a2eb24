"""The specialist for documentation: writes what is true of the code, beside it."""

import re
from collections.abc import Iterator

from gristmill.agents.acting import Acted
from gristmill.agents.delegation.model import AgentOutput, DomainType
from gristmill.agents.specialists.model import make_specialist
from gristmill.agents.specialists.rules import check_by, find_changes, find_done, is_claimed, is_prose, join_shown

NAMED_FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.\w{1,8})`|\]\((?!https?:)([\w./-]+\.\w{1,8})(?:#[\w-]+)?\)")
INSTRUCTIONS = """You document a project.
First read the code and the documents that are there: list_files, read_file, search_files, search_knowledge. Say
what is true now; where the code and an old text differ, the code is right, and the text is changed.
Write for somebody who comes new: what it is, how it is used, an example that works, what goes wrong and what to do.
Short sentences; name the thing. Use patch_file for a part of a page, write_file for a new one in the project's own
folder for documents, and write_document only for what belongs to no repository.
Every file, command and setting that you name exists: look it up. Links between files are relative and lead
somewhere.
Never change code. Never describe what is only planned as if it were there. Do not commit."""


def changes_prose_alone(output: AgentOutput, acted: Acted) -> Iterator[str]:
    foreign = [path for path in acted.changed_files if not is_prose(path)]
    if foreign:
        yield f"It changed {foreign[0]}, which is no documentation."


def writes_something(output: AgentOutput, acted: Acted) -> Iterator[str]:
    if is_claimed(output) and not find_changes(acted) and not find_done(acted, "write_document"):
        yield "It says that something is documented, and nothing was written."


def reads_first(output: AgentOutput, acted: Acted) -> Iterator[str]:
    if is_claimed(output) and not find_done(acted, "read_file", "search_files", "read_document", "search_knowledge"):
        yield "It wrote without having read anything."


def names_files_that_exist(output: AgentOutput, acted: Acted) -> Iterator[str]:
    """Files that a page names must have been seen, or be written here."""
    shown = join_shown(acted, output) + "\n".join(acted.changed_files)
    seen = shown + " ".join(str(one.arguments.get("path", "")) for one in acted.calls if not one.result.is_error)
    for one in find_changes(acted):
        text = str(one.arguments.get("text") or one.arguments.get("new") or "")
        for in_code, in_link in NAMED_FILE.findall(text):
            name = (in_code or in_link).removeprefix("./").removeprefix("../")
            if name.rpartition("/")[2] not in seen:
                yield f"{one.arguments.get('path')} names {name}, which was not seen: look it up."


SPECIALIST = make_specialist(
    "documentation",
    "Writes and mends documentation in the project's workspace, true to its code.",
    [DomainType.CODE, DomainType.PROJECT_MANAGEMENT],
    [
        "list_files",
        "read_file",
        "search_files",
        "search_knowledge",
        "read_document",
        "git_diff",
        "git_log",
        "write_file",
        "patch_file",
        "write_document",
    ],
    INSTRUCTIONS,
    check_by(reads_first, writes_something, changes_prose_alone, names_files_that_exist),
)
