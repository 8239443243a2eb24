"""Reads commits from a clone: who, when, why, which files, and the changes themselves, within limits."""

import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict, dataclass, field
from secrets import token_hex

import orjson

from gristmill.errors import Permanent
from gristmill.sources.git.program import Git

FIELDS = ("%H", "%P", "%an", "%ae", "%aI", "%cn", "%ce", "%cI", "%B")
MOST_FILES = 2_000  # files of one commit that are named
MOST_PATCH = 200_000  # bytes of the changes of one commit that are kept
MOST_LINES = 20_000  # changed lines of a commit whose changes are read at all
STATUSES = {"A": "created", "M": "modified", "D": "deleted", "R": "renamed", "C": "created", "T": "modified"}
SUBMODULE = "160000"
COUNTED = re.compile(rb"(?:\d+|-)\t(?:\d+|-)\t")


@dataclass
class ChangedFile:
    """A file that a commit changed."""

    path: str
    status: str
    before: str | None = None  # of a renamed one
    added: int | None = None  # lines; None: it is binary
    deleted: int | None = None
    submodule: bool = False


@dataclass
class Commit:
    """A commit as the indexer gets it."""

    hash: str
    parents: list[str]
    author: str
    author_mail: str
    authored_at: str
    committer: str
    committer_mail: str
    committed_at: str
    message: str
    files: list[ChangedFile] = field(default_factory=list[ChangedFile])
    more_files: int = 0  # that are not named
    patch: str = ""
    cut: bool = False  # whether some of the changes are left out

    def to_bytes(self) -> bytes:
        return orjson.dumps(asdict(self))


async def read_commits(git: Git, hashes: Sequence[str]) -> list[Commit]:
    """These commits with their files and changes; two calls of git, however many there are."""
    given = "".join(f"{one}\n" for one in hashes)
    mark = token_hex(16)  # nobody who wrote a commit can have guessed it
    walk = ("log", "--stdin", "--no-walk=unsorted", "--encoding=UTF-8", "-M", "-l400", "--no-ext-diff", "--no-textconv")
    format_ = f"{mark}begin" + "".join(f"{one}{mark}" for one in FIELDS)
    said = await git.run(*walk, "-z", "--raw", "--numstat", f"--format={format_}", given=given)
    commits = [_read_commit(block, mark.encode()) for block in said.split(f"{mark}begin".encode())[1:]]
    small = [one.hash for one in commits if one.files and not one.more_files and _count_lines(one) <= MOST_LINES]
    patches = await _read_patches(git, walk, small)
    for one in commits:
        one.patch, one.cut = patches.get(one.hash, ("", bool(one.files)))
        one.cut = one.cut or one.more_files > 0
    return commits


def _count_lines(commit: Commit) -> int:
    return sum((one.added or 0) + (one.deleted or 0) for one in commit.files)


def _read_commit(block: bytes, mark: bytes) -> Commit:
    *fields, rest = block.split(mark, len(FIELDS))
    if len(fields) != len(FIELDS):
        raise Permanent("git wrote a commit that cannot be read.")
    words = [_decode(one) for one in fields]
    commit = Commit(words[0], words[1].split(), *words[2:8], words[8].strip())  # pyright: ignore[reportCallIssue]
    files = _read_files(rest)
    commit.files, commit.more_files = files[:MOST_FILES], max(len(files) - MOST_FILES, 0)
    return commit


def _read_files(rest: bytes) -> list[ChangedFile]:
    """`:100644 100644 abc def M\\0path\\0` for each file, then `3\\t1\\tpath\\0`; a renamed file has two paths."""
    parts = iter(rest.lstrip(b"\n\0").split(b"\0"))
    files: dict[str, ChangedFile] = {}
    for part in parts:
        head = part.lstrip(b"\n")
        if head.startswith(b":"):
            words = head[1:].split()
            sign = _decode(words[4])[:1]
            before = _decode(next(parts, b"")) if sign in "RC" else None
            path = _decode(next(parts, b""))
            files[path] = ChangedFile(path, STATUSES.get(sign, "modified"), before if sign == "R" else None)
            files[path].submodule = SUBMODULE in (_decode(words[0]), _decode(words[1]))
        elif COUNTED.match(head):
            added, deleted, path = head.split(b"\t", 2)
            if not path:  # renamed
                next(parts, b"")
                path = next(parts, b"")
            if found := files.get(_decode(path)):
                found.added = int(added) if added.isdigit() else None
                found.deleted = int(deleted) if deleted.isdigit() else None
    return list(files.values())


async def _read_patches(git: Git, walk: Sequence[str], hashes: Sequence[str]) -> dict[str, tuple[str, bool]]:
    """The changes of these commits as git writes them, and whether some were cut off."""
    if not hashes:
        return {}
    given = "".join(f"{one}\n" for one in hashes)
    found: dict[str, tuple[str, bool]] = {}
    mark = token_hex(16)
    pieces = git.stream(*walk, "-p", "-U3", f"--format={mark}%H", given=given)
    async for patch, cut in split_patches(pieces, mark.encode()):
        head, _, body = patch.partition(b"\n")
        found[_decode(head)] = _decode(body).strip("\n"), cut
    return found


async def split_patches(pieces: AsyncIterator[bytes], mark: bytes) -> AsyncIterator[tuple[bytes, bool]]:
    """The text behind each mark, and whether its end was left out: of an endless change only the beginning is kept."""
    kept, cut, started = bytearray(), False, False
    async for piece in pieces:
        kept += piece
        while (at := kept.find(mark)) >= 0:
            if started:
                yield bytes(kept[: min(at, MOST_PATCH)]), cut or at > MOST_PATCH
            del kept[: at + len(mark)]
            cut, started = False, True
        if len(kept) > MOST_PATCH + 2 * len(mark):
            cut = True
            del kept[MOST_PATCH : -len(mark)]  # half of a mark may stand at the end
    if started:
        yield bytes(kept[:MOST_PATCH]), cut or len(kept) > MOST_PATCH


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace").replace("\0", "")
