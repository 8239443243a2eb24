"""What a commit is to the indexer: a page of its message and its changes, and a graph that needs no LLM."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import orjson

from gristmill.errors import Permanent
from gristmill.sources.model import Description, Fetched
from gristmill.sources.moments import read_moment

KEY = re.compile(r"\b[A-Z][A-Z0-9]{1,9}-\d{1,7}\b")
NUMBER = re.compile(r"(?<![\w/&#])#(\d{1,7})\b")
MOST_NAMED = 200  # files and keys in the graph
LONGEST_FENCE = re.compile(r"^[ +-]?(`{3,})", re.MULTILINE)
FILE = re.compile(r"^diff --(?:git|cc|combined) ", re.MULTILINE)


def describe_commit(item: Fetched) -> Description:
    try:
        commit: dict[str, Any] = orjson.loads(item.content)
    except orjson.JSONDecodeError as error:
        raise Permanent("It is no commit.") from error
    hash_, project = commit["hash"], item.note["project"]
    subject = commit["message"].partition("\n")[0].strip()[:200]
    return Description(
        urn=f"commit::{hash_}::{project}",
        type="git",
        name=f"{hash_[:12]}.md",
        text=commit["message"],
        title=subject or hash_[:12],
        reading="markdown",
        content=write_page(commit, item.note).encode(),
        written_at=read_moment(commit["committed_at"]),
        metadata={"commit": _describe_graph(commit, item.note)},
    )


def _describe_graph(commit: dict[str, Any], note: Any) -> dict[str, Any]:
    """Everything that the graph of a commit is made of."""
    return {
        "hash": commit["hash"],
        "project": note["project"],
        "branch": note.get("branch", ""),
        "branches": list_branches(note),
        "author": commit["author"],
        "author_mail": commit["author_mail"],
        "parents": commit["parents"],
        "files": [[one["status"], one["path"], one["before"]] for one in commit["files"][:MOST_NAMED]],
        "keys": find_keys(commit["message"], note["project"])[:MOST_NAMED],
        "subject": commit["message"].partition("\n")[0][:200],
    }


def list_branches(note: Any) -> list[str]:
    """The branches that reach a commit, the default one first."""
    return list(note.get("branches") or filter(None, [note.get("branch")]))


def find_keys(message: str, project: str) -> list[str]:
    """The issues that a message mentions: PROJ-12 as it is, #12 as one of this project."""
    found = [*KEY.findall(message), *(f"{project}#{one}" for one in NUMBER.findall(message))]
    return list(dict.fromkeys(found))


def write_page(commit: dict[str, Any], note: Any) -> str:
    """A commit as Markdown; each file's change is a passage of its own."""
    lines = [
        f"# {commit['message'].partition(chr(10))[0].strip()}",
        "",
        f"Commit {commit['hash']} on {', '.join(list_branches(note)) or 'a branch'} of {note['project']}  ",
        f"Author: {commit['author']} <{commit['author_mail']}>, {commit['authored_at']}  ",
        *([f"Merge of {', '.join(commit['parents'])}"] if len(commit["parents"]) > 1 else []),
        "",
        commit["message"].partition("\n")[2].strip(),
        "",
        *_write_files(commit),
        *_write_changes(commit["patch"]),
    ]
    if commit["cut"]:
        lines.append("\nSome of its changes are too large to be shown.")
    return "\n".join(lines)


def _write_files(commit: dict[str, Any]) -> Iterator[str]:
    for one in commit["files"]:
        how = f"renamed from {one['before']}" if one["before"] else one["status"]
        size = "binary" if one["added"] is None else f"+{one['added']} -{one['deleted']}"
        kind = "submodule" if one["submodule"] else size
        yield f"- {one['path']}: {how} ({kind})"
    if commit["more_files"]:
        yield f"- … and {commit['more_files']:,} more files"


def _write_changes(patch: str) -> Iterator[str]:
    starts = [found.start() for found in FILE.finditer(patch)]
    for start, stop in pairwise([*starts, len(patch)]):
        change = patch[start:stop].rstrip("\n")
        head, _, _ = change.partition("\n")
        longest = max((len(found) for found in LONGEST_FENCE.findall(change)), default=2)
        fence = "`" * (max(longest, 2) + 1)  # a change of a Markdown file may hold fences itself
        yield f"\n## {head.rpartition(' b/')[2] or head}\n\n{fence}diff\n{change}\n{fence}"
