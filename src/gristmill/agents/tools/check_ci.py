"""The tool that looks through the files of continuous integration and of containers for known mistakes."""

import asyncio
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.agents.workspaces import read_text
from gristmill.errors import Refused

MOST_FILES = 500

PIPELINE = re.compile(
    r"^\.github/workflows/[^/]+\.ya?ml$|(?:^|/)\.gitlab-ci\.ya?ml$|(?:^|/)Jenkinsfile$|^\.circleci/config\.yml$"
    r"|(?:^|/)(?:Dockerfile|Containerfile)[^/]*$|(?:^|/)(?:docker-)?compose[^/]*\.ya?ml$|(?:^|/)Makefile$"
)
USES = re.compile(r"^(?:-\s*)?uses:\s*['\"]?([\w.-]+/[\w./-]+)@([\w./-]+)")
# Each with what is wrong with it, for a line without spaces at its ends. A line may be as long as a file, so that no
# pattern goes back over what it has passed.
MISTAKES = {
    re.compile(r"\bpull_request_target\b"): "code of strangers may run with our secrets",
    re.compile(r"\$\{\{\s*github\.event\.[\w.]*(?:title|body|name|message|label|ref)\b"): (
        "words of strangers get into a command: put them into an environment variable"
    ),
    re.compile(
        r"(?:^|\|)(?>[^|]*?\b(?:curl|wget)\b)(?>[^|]*)\|\s*(?:sudo\s+)?(?:ba|z)?sh\b"
    ): "what a server sends is run unseen",
    re.compile(r"^FROM\s+[^\s:@]+(?:\s|$)|^(?:FROM|image:)\s+\S+:latest\b", re.IGNORECASE): "no version is named",
    re.compile(r"\bprivileged:\s*true\b|--privileged\b"): "the container may do anything on its host",
    re.compile(r"\bpermissions:\s*write-all\b"): "the job may write everything",
    re.compile(r"\b(?:set\s+\+e|continue-on-error:\s*true|allow_failure:\s*true)\b"): "failures are passed over",
}


class CheckCi(Arguments):
    """Nothing is to be said."""


async def check_ci(arguments: CheckCi, context: ToolContext) -> ToolResult:
    files = await context.files()
    paths = [one for one in await files.list_files() if PIPELINE.search(one)]
    looked_at, found = await asyncio.to_thread(look_through, files.folder, paths[:MOST_FILES])
    if not looked_at:
        return ToolResult("The workspace has no files of CI or containers.", {"files": [], "mistakes": 0})
    said = "\n".join(found) or "No known mistake was found."
    more = f"\n… {len(paths) - MOST_FILES:,} more files were not read" if len(paths) > MOST_FILES else ""
    text = f"Looked at {', '.join(looked_at)}.\n{said}{more}"
    return ToolResult(text, {"files": looked_at, "mistakes": len(found)}, "files of the workspace")


def look_through(top: Path, paths: Iterable[str]) -> tuple[list[str], list[str]]:
    """The files that could be read, and their mistakes."""
    looked_at, found = list[str](), list[str]()
    for path in paths:
        try:
            text = read_text(top, path)
        except Refused:
            continue
        looked_at.append(path)
        found += [f"{path}:{line}: {said}" for line, said in find_mistakes(path, text)]
    return looked_at, found


def find_mistakes(path: str, text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if line.startswith("#"):
            continue
        if (used := USES.match(line)) and not re.fullmatch(r"[0-9a-f]{40}", used[2]):
            yield number, f"{used[1]} is not named by a commit: {used[2]} may change"
        for mistake, said in MISTAKES.items():
            if mistake.search(line):
                yield number, said
    if path.startswith(".github/") and not re.search(r"^[ \t]*permissions:", text, re.MULTILINE):
        yield 1, "it does not say which permissions it needs"


TOOL = Tool(
    "check_ci",
    "Look through the files of continuous integration and containers for known mistakes, by path and line.",
    CheckCi,
    check_ci,
)
