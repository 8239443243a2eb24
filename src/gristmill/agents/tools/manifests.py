"""Reads the files that name what a project depends on, in a child process: strangers wrote them."""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

REQUIREMENTS = re.compile(
    r"(?:^|/)(?:requirements[^/]*|constraints[^/]*)\.(?:txt|in|lock)$|(?:^|/)requirements/[^/]+\.(?:txt|in|lock)$"
)
REQUIREMENT = re.compile(r"^([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(.*)$")
GO_MODULE = re.compile(r"[\w./-]+")
EXACT = re.compile(r"^(?:===?)\s*[\w.!+-]+$")
EXACT_ELSEWHERE = re.compile(r"^=?v?\d+\.\d+\.\d+(?:[-+][\w.-]+)?$")


class Dependency(NamedTuple):
    """Something that the workspace depends on."""

    file: str
    name: str
    version: str
    trouble: str  # why its version is not firm; empty: it is


def read_manifests(files: Sequence[tuple[str, str]]) -> tuple[list[Dependency], list[str]]:
    """The dependencies in files, given by path and text, and what could not be read."""
    found, unread = list[Dependency](), list[str]()
    for path, text in files:
        try:
            found += read_manifest(path, text)
        # it is no TOML or JSON, it is folded too deeply, or it has a number where a list should be
        except (ValueError, RecursionError, TypeError, AttributeError) as error:
            unread.append(f"{path}: it cannot be read ({str(error)[:100]})")
    return found, unread


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
                words = line.split()
                name, version, *_ = [*(words[1:] if words[:1] == ["require"] else words), "", ""]
                if GO_MODULE.fullmatch(name) and "." in name.partition("/")[0] and version.startswith("v"):
                    yield Dependency(path, name, version, "")
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
