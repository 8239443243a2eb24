"""The tool that looks for secrets in the files of the workspace."""

import asyncio
from pathlib import Path

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.tools.secrets import find_secrets
from gristmill.agents.workspaces import read_text
from gristmill.errors import Refused

MOST_SHOWN = 200
MOST_FILES = 5_000
MOST_CHARACTERS = 50_000_000  # of all files together


class ScanSecrets(Arguments):
    """Where."""

    folder: str = Field(default="", max_length=500, description="Only below this folder; none: everywhere.")


async def scan_secrets(arguments: ScanSecrets, context: ToolContext) -> ToolResult:
    """The secrets themselves are not said: only where they stand, and what they are."""
    files = await context.files()
    top = arguments.folder.strip("/")
    wanted = [one for one in await files.list_files() if not top or one == top or one.startswith(f"{top}/")]
    found, read = await asyncio.to_thread(scan, files.folder, wanted[:MOST_FILES])
    more = f"\n… {len(found) - MOST_SHOWN:,} more" if len(found) > MOST_SHOWN else ""
    said = "\n".join(found[:MOST_SHOWN]) + more if found else "No secret was found."
    skipped = len(wanted) - read
    note = f"{read:,} files were read" + (
        f", {skipped:,} were not (no text, too large, or too many)." if skipped else "."
    )
    return ToolResult(f"{said}\n{note}", {"secrets": len(found), "files": read}, "files of the workspace")


def scan(top: Path, paths: list[str]) -> tuple[list[str], int]:
    """Where secrets stand, and how many files were read."""
    found, read, left = list[str](), 0, MOST_CHARACTERS
    for path in paths:
        try:
            text = read_text(top, path)
        except Refused:  # no text, too large, or a link
            continue
        if len(text) > left:
            break
        left -= len(text)
        read += 1
        found += [f"{path}:{one.line}: {one.kind}, {one.hint}" for one in find_secrets(text)]
    return found, read


TOOL = Tool(
    "scan_secrets",
    "Look for keys, tokens and passwords in the files of the workspace; says where, never what.",
    ScanSecrets,
    scan_secrets,
)
