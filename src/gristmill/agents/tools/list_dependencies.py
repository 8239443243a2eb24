"""The tool that lists what the workspace depends on, and how firmly each version is named."""

import asyncio
from pathlib import Path

from gristmill.agents.tools.manifests import Dependency, is_manifest, read_manifests
from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.workspaces import read_text
from gristmill.errors import Refused
from gristmill.processes import Crashed, OutOfMemory, TimedOut

MOST_SHOWN = 500
MOST_FILES = 500
LONGEST = 1_000_000  # characters of one file …
MOST_CHARACTERS = 10_000_000  # … and of all of them


class ListDependencies(Arguments):
    """Nothing is to be said."""


async def list_dependencies(arguments: ListDependencies, context: ToolContext) -> ToolResult:
    files = await context.files()
    paths = [one for one in await files.list_files() if is_manifest(one)]
    texts, left_out = await asyncio.to_thread(read_files, files.folder, paths)
    found, unread = await read_apart(texts, context)
    unread += left_out
    lines = [f"{one.file}: {one.name} {one.version}{f' – {one.trouble}' if one.trouble else ''}" for one in found]
    more = [f"… {len(lines) - MOST_SHOWN:,} more"] if len(lines) > MOST_SHOWN else []
    text = "\n".join([*lines[:MOST_SHOWN], *more, *unread]) or "No file names a dependency."
    loose = sum(bool(one.trouble) for one in found)
    return ToolResult(text, {"dependencies": len(found), "loose": loose}, "files of the workspace")


def read_files(top: Path, paths: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    """Files by path and text, and what could not be read."""
    texts, unread, left = list[tuple[str, str]](), list[str](), MOST_CHARACTERS
    for path in paths[:MOST_FILES]:
        try:
            text = read_text(top, path)
        except Refused as error:
            unread.append(f"{path}: it cannot be read ({str(error)[:100]})")
            continue
        if len(text) > min(left, LONGEST):
            unread.append(f"{path}: it cannot be read (too long)")
            continue
        left -= len(text)
        texts.append((path, text))
    if len(paths) > MOST_FILES:
        unread.append(f"… {len(paths) - MOST_FILES:,} more files were not read")
    return texts, unread


async def read_apart(texts: list[tuple[str, str]], context: ToolContext) -> tuple[list[Dependency], list[str]]:
    """What the files name; a file whose author wants to attack us costs its process alone."""
    if not texts:
        return [], []
    documents = context.settings.documents
    seconds, memory = documents.timeout.total_seconds(), documents.memory
    try:
        return await context.processes.run(read_manifests, texts, timeout=seconds, memory=memory)
    except (Crashed, OutOfMemory, TimedOut) as error:
        raise Refused(f"The files that name dependencies cannot be read: {error}") from error


TOOL = Tool(
    "list_dependencies",
    "What the workspace depends on (Python, Node, Rust, Go), and which versions are not named exactly.",
    ListDependencies,
    list_dependencies,
)
