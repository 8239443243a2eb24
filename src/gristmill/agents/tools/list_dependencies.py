"""The tool that lists what the workspace depends on, and how firmly each version is named."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

from gristmill.agents.tools.model import Arguments, Tool, ToolContext, ToolResult
from gristmill.errors import Refused

MOST_SHOWN = 500
REQUIREMENTS = re.compile(
    r"(?:^|/)(?:requirements[^/]*|constraints[^/]*)\.(?:txt|in|lock)$|(?:^|/)requirements/[^/]+\.(?:txt|in|lock)$"
)
REQUIREMENT = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(.*)$")
GO = re.compile(r"^\s*(?:require\s+)?([\w.-]+\.[\w./-]+)\s+(v\S+)")
EXACT = re.compile(r"^(?:===?)\s*[\w.!+-]+$")
EXACT_ELSEWHERE = re.compile(r"^=?v?\d+\.\d+\.\d+(?:[-+][\w.-]+)?$")


class Dependency(NamedTuple):
    """Something that the workspace depends on."""

    file: str
    name: str
    version: str
    trouble: str  # why its version is not firm; empty: it is


class ListDependencies(Arguments):
    """Nothing is to be said."""


async def list_dependencies(arguments: ListDependencies, context: ToolContext) -> ToolResult:
    files = await context.files()
    found: list[Dependency] = []
    unread: list[str] = []
    for path in await files.list_files():
        if is_manifest(path):
            try:
                found += read_manifest(path, await files.read(path))
            except (Refused, ValueError) as error:  # tomllib and json raise ValueError for a text that is not theirs
                unread.append(f"{path}: it cannot be read ({str(error)[:100]})")
    lines = [f"{one.file}: {one.name} {one.version}{f' – {one.trouble}' if one.trouble else ''}" for one in found]
    more = [f"… {len(lines) - MOST_SHOWN:,} more"] if len(lines) > MOST_SHOWN else []
    text = "\n".join([*lines[:MOST_SHOWN], *more, *unread]) or "No file names a dependency."
    loose = sum(bool(one.trouble) for one in found)
    return ToolResult(text, {"dependencies": len(found), "loose": loose}, "files of the workspace")


def is_manifest(path: str) -> bool:
    name = path.rpartition("/")[2]
    return name in ("pyproject.toml", "package.json", "Cargo.toml", "go.mod") or REQUIREMENTS.search(path) is not None


def read_manifest(path: str, text: str) -> Iterator[Dependency]:
    match path.rpartition("/")[2]:
        case "pyproject.toml":
            project = _get(tomllib.loads(text), "project")
            groups = _get(project, "optional-dependencies").values()
            for line in [*project.get("dependencies", []), *(one for group in groups for one in group)]:
                yield from _read_requirement(path, str(line))
        case "package.json":
            data = cast(dict[str, Any], json.loads(text))
            for group in ("dependencies", "devDependencies", "optionalDependencies"):
                for name, version in _get(data, group).items():
                    yield Dependency(path, name, str(version), _judge_elsewhere(str(version)))
        case "Cargo.toml":
            for name, version in _get(tomllib.loads(text), "dependencies").items():
                said = str(cast(dict[str, Any], version).get("version", "")) if isinstance(version, dict) else version
                yield Dependency(path, name, str(said), _judge_elsewhere(str(said)))
        case "go.mod":
            for line in text.splitlines():
                if found := GO.match(line):
                    yield Dependency(path, found[1], found[2], "")
        case _:
            for line in text.splitlines():
                yield from _read_requirement(path, line)


def _get(data: Mapping[str, Any], name: str) -> dict[str, Any]:
    found = data.get(name)
    return cast(dict[str, Any], found) if isinstance(found, dict) else {}


def _read_requirement(path: str, line: str) -> Iterator[Dependency]:
    plain = line.partition(" #")[0].partition(";")[0].strip().rstrip("\\").strip()
    if not plain or plain.startswith(("#", "-")):
        return
    if "://" in plain:
        yield Dependency(path, plain.partition("@")[0].strip(), plain, "it comes from an address")
        return
    if found := REQUIREMENT.match(plain):
        version = found[2].partition("--hash")[0].strip()
        trouble = (
            "" if EXACT.match(version) else "any version that fits is taken" if version else "any version is taken"
        )
        yield Dependency(path, found[1], version, trouble)


def _judge_elsewhere(version: str) -> str:
    if "://" in version or version.startswith(("git", "file:")):
        return "it comes from an address"
    return "" if EXACT_ELSEWHERE.match(version) else "any version that fits is taken"


TOOL = Tool(
    "list_dependencies",
    "What the workspace depends on (Python, Node, Rust, Go), and which versions are not named exactly.",
    ListDependencies,
    list_dependencies,
)
