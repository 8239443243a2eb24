"""The tool that looks for secrets in the files of the workspace."""

from pydantic import Field

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.tools.secrets import find_secrets
from gristmill.errors import Refused

MOST_SHOWN = 200
MOST_FILES = 5_000


class ScanSecrets(Arguments):
    """Where."""

    folder: str = Field(default="", max_length=500, description="Only below this folder; none: everywhere.")


async def scan_secrets(arguments: ScanSecrets, context: ToolContext) -> ToolResult:
    """The secrets themselves are not said: only where they stand, and what they are."""
    files = await context.files()
    top = arguments.folder.strip("/")
    wanted = [one for one in await files.list_files() if not top or one == top or one.startswith(f"{top}/")]
    found: list[str] = []
    read = 0
    for path in wanted[:MOST_FILES]:
        try:
            text = await files.read(path)
        except Refused:  # no text, too large, or a link
            continue
        read += 1
        found += [f"{path}:{one.line}: {one.kind}, {one.hint}" for one in find_secrets(text)]
    more = f"\n… {len(found) - MOST_SHOWN:,} more" if len(found) > MOST_SHOWN else ""
    said = "\n".join(found[:MOST_SHOWN]) + more if found else "No secret was found."
    skipped = len(wanted) - read
    note = f"{read:,} files were read" + (
        f", {skipped:,} were not (no text, too large, or too many)." if skipped else "."
    )
    return ToolResult(f"{said}\n{note}", {"secrets": len(found), "files": read}, "files of the workspace")


TOOL = Tool(
    "scan_secrets",
    "Look for keys, tokens and passwords in the files of the workspace; says where, never what.",
    ScanSecrets,
    scan_secrets,
)
