"""A git repository as a connector: a clone of its own, and the commits that its branches reach."""

import asyncio
import fcntl
import os
import re
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Literal, NamedTuple, Self, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import Field, field_validator, model_validator

from gristmill.errors import Overloaded, Permanent, Transient
from gristmill.hosts import is_loopback
from gristmill.settings import Reference, Slice, read_reference
from gristmill.sources.git.branches import find_reach
from gristmill.sources.git.commits import Commit, read_commits
from gristmill.sources.git.index import describe_commit
from gristmill.sources.git.program import Git, make_header
from gristmill.sources.model import Batch, Checkpoint, Connector, ConnectorContext, Kind, Listed, RawItem, Source
from gristmill.sources.site import check_plain

PORTION = 200  # commits that are read and kept together
COMPARED = 2_000  # commits that are compared with those that are known
PATIENCE = 3600.0  # seconds for a clone or a fetch
PATIENCE_FOR_OTHERS = 30.0  # seconds until a task comes back later, and its worker does other things
ASKING = 60.0  # seconds for the names of all branches
MANY_PACKS = 50
SCP = re.compile(r"[\w.-]+@[\w.-]+:[^\s-]\S*")


class GitOptions(Slice):
    """A repository."""

    url: str = Field(description="https://…, ssh://…, user@host:path, or a folder of this machine.")
    project: str = Field(default="", description="The name of the project in URNs; none: the last part of the URL.")
    branches: str = Field(default="", description="Branches, with commas between; none: all.")
    user: str = Field(default="git", description="The name to sign in with over https.")
    token: Reference | None = Field(default=None, description="The token for https: env:NAME or file:/path.")
    ssh_key: str | None = Field(default=None, description="The file of the private key for ssh.")

    @field_validator("url")
    @classmethod
    def check_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme in ("http", "https"):
            check_plain(url)
        if parts.password:
            raise ValueError("it holds a password: write ssh_key=/path instead")
        if parts.scheme in ("https", "http", "ssh", "file") or SCP.fullmatch(url) or url.startswith("/"):
            return url
        raise ValueError("it is no address that is allowed: write https://…, ssh://…, user@host:path or /folder")

    @model_validator(mode="after")
    def check_line(self) -> Self:
        parts = urlsplit(self.url)
        if self.token and parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            raise ValueError("http:// would send the token in clear: write https://…")
        return self

    @property
    def project_name(self) -> str:
        last = re.split(r"[/:]", self.url.rstrip("/"))[-1].removesuffix(".git")
        return self.project or last or "repository"


class Seen(NamedTuple):
    """What is known of a commit before it is read."""

    branches: Sequence[str]  # that reach it
    mark: str | None


@dataclass(frozen=True)
class GitConnector:
    """The checkpoint is the commit at which each branch stood, with its mark."""

    git: Git
    options: GitOptions
    context: ConnectorContext
    walked: dict[str, dict[str, Seen]] = field(default_factory=dict[str, dict[str, Seen]])
    fetched: list[bool] = field(default_factory=list[bool])  # whether the clone is up to date

    async def check(self) -> str:
        """Ask the server, and leave the clone alone: a poll may be making it."""
        await asyncio.to_thread(self.context.folder.mkdir, parents=True, exist_ok=True)
        outside = await open_repository(self.options, self.context.folder)
        heads = self._choose_wanted(await outside.run("ls-remote", "--heads", "--", self.options.url, patience=ASKING))
        return f"It has {len(heads):,} {'branch' if len(heads) == 1 else 'branches'}."

    async def _prepare(self) -> None:
        if not self.fetched:
            await prepare_clone(self.options, self.context.folder)
            self.fetched.append(True)

    async def changes(self, checkpoint: Checkpoint) -> AsyncIterator[Batch]:
        """Commits that no branch reached before, and those that other branches reach now: a merge tells of both.

        A branch that was deleted and pushed again stands where it stood, but its commits may be removed here.
        """
        heads = await self._find_heads()
        before, marks = dict(checkpoint.get("heads", {})), dict(checkpoint.get("marks", {}))
        listed = [Listed(one, marks.get(one)) for one in heads.values()]
        missing = {one.external for one in await self.context.known.find_unlike(listed)}
        if heads != before or missing:
            old = await self._find_existing([one for one in before.values() if one not in missing])
            commits = await self._survey(heads, old, before.get(await self._find_default()))
            for portion in _portions(list(commits.items()), COMPARED):
                unlike = await self.context.known.find_unlike([Listed(one, seen.mark) for one, seen in portion])
                async for items in self._read({one.external: commits[one.external] for one in unlike}):
                    yield Batch(checkpoint, items)
            marks = {one: seen.mark for one in heads.values() if (seen := commits.get(one)) and seen.mark} | {
                one: mark for one, mark in marks.items() if one in heads.values() and one not in commits
            }
        yield Batch({"heads": heads, **({"marks": marks} if marks else {})})

    async def list_ids(self) -> AsyncIterator[Sequence[Listed]]:
        for portion in _portions(list((await self._survey(await self._find_heads())).items()), COMPARED):
            yield [Listed(one, seen.mark) for one, seen in portion]

    async def fetch(self, ids: Sequence[str]) -> AsyncIterator[RawItem]:
        """The commits that a branch reaches: a commit that a forced push took away may still lie in the clone.

        A listing asks for one portion after the other: the history is walked through once for all of them.
        """
        if "there" not in self.walked:
            self.walked["there"] = await self._survey(await self._find_heads())
        there = self.walked["there"]
        async for items in self._read({one: there[one] for one in ids if one in there}):
            for item in items:
                yield item

    async def _survey(
        self, heads: Mapping[str, str], old: Sequence[str] = (), since: str | None = None
    ) -> dict[str, Seen]:
        """The commits that these branches reach and the old ones do not, the oldest first, each with its branches.

        Then the commits that the default branch has reached since then, and those that only other branches reach.
        """
        default = await self._find_default()
        commits = await self._walk(heads, old)
        reach = await find_reach(self.git, heads, default, [one for one in old if one == since])
        again = {one: default for one in (*reach.new, *reach.apart) if one not in commits}
        return {one: Seen(reach.name(one, by), reach.mark(one)) for one, by in (commits | again).items()}

    async def _find_heads(self) -> dict[str, str]:
        await self._prepare()
        return self._choose_wanted(
            await self.git.run("for-each-ref", "--format=%(objectname)%09%(refname)", "refs/heads/")
        )

    def _choose_wanted(self, said: bytes) -> dict[str, str]:
        """The branches that are wanted, with the commit at which each stands."""
        lines = [line.split("\t", 1) for line in said.decode("utf-8", "replace").splitlines()]
        found = {name: hash_ for hash_, name in lines}
        wanted = {f"refs/heads/{name.strip()}" for name in self.options.branches.split(",") if name.strip()}
        return {name: hash_ for name, hash_ in found.items() if not wanted or name in wanted}

    async def _find_existing(self, hashes: Sequence[str]) -> list[str]:
        """The commits, of these, that the clone still has: a forced push may have taken some away."""
        said = await self.git.run("cat-file", "--batch-check", given="".join(f"{one}\n" for one in hashes))
        return [line.split()[0] for line in said.decode().splitlines() if line.endswith(tuple("0123456789"))]

    async def _walk(self, heads: Mapping[str, str], without: Sequence[str]) -> dict[str, str]:
        """The commits that these branches reach and those commits do not, the oldest first, each with its branch."""
        if not heads:
            return {}
        first = await self._find_default()
        names = sorted(heads, key=lambda name: (name != first, name))
        given = "".join(f"{name}\n" for name in names) + "".join(f"^{one}\n" for one in without)
        said = await self.git.run(
            "log", "--stdin", "--topo-order", "--reverse", "--source", "--format=%H %S", given=given, patience=PATIENCE
        )
        return dict(line.split(" ", 1) for line in said.decode("utf-8", "replace").splitlines())

    async def _find_default(self) -> str:
        return (await self.git.run("symbolic-ref", "-q", "HEAD")).decode().strip()

    async def _read(self, commits: Mapping[str, Seen]) -> AsyncIterator[list[RawItem]]:
        for portion in _portions(list(commits), PORTION):
            found = await read_commits(self.git, portion)
            yield [self._make_item(one, commits[one.hash]) for one in found]

    def _make_item(self, commit: Commit, seen: Seen) -> RawItem:
        names = [one.removeprefix("refs/heads/") for one in seen.branches]
        note: dict[str, object] = {"project": self.options.project_name, "branch": names[0]}
        if len(names) > 1:
            note["branches"] = names
        return RawItem(commit.hash, commit.to_bytes(), seen.mark, note)


T = TypeVar("T")


def _portions(things: Sequence[T], size: int) -> Iterator[list[T]]:
    left = iter(things)
    while portion := list(islice(left, size)):
        yield portion


async def open_repository(options: GitOptions, folder: Path) -> Git:
    """The git of a folder, with what it needs to sign in at the server of this source."""
    secret = await asyncio.to_thread(read_reference, options.token) if options.token else None
    header = make_header(options.user, secret) if secret else None
    return Git(folder, header, options.url, options.ssh_key)


async def prepare_clone(options: GitOptions, folder: Path) -> Git:
    """A clone that is up to date; one that was never finished is begun anew.

    Polls, listings and the workspaces of runs take turns: each would take the unfinished clone of another for one that
    was left behind.
    """
    place = folder / "repository"
    git = await open_repository(options, place)
    async with hold_folder(folder):
        await asyncio.to_thread(_clear_unfinished, folder)
        if not await asyncio.to_thread(place.exists):
            await _clone(options, folder, place)
        await git.run(
            "fetch",
            "--quiet",
            "--force",
            "--prune",
            "--no-tags",
            "--",
            options.url,
            "+refs/heads/*:refs/heads/*",
            patience=PATIENCE,
        )
        await _repack(git)
    return git


async def _clone(options: GitOptions, folder: Path, place: Path) -> None:
    unfinished = folder / f"unfinished-{uuid4().hex}"
    outside = await open_repository(options, folder)
    await outside.run("clone", "--quiet", "--bare", "--no-tags", "--", options.url, str(unfinished), patience=PATIENCE)
    await asyncio.to_thread(unfinished.rename, place)


async def _repack(git: Git) -> None:
    """Each fetch brings a pack of its own, and git looks for an object in all of them: many become few."""
    packs = await asyncio.to_thread(lambda: len(list((git.folder / "objects" / "pack").glob("*.pack"))))
    if packs >= MANY_PACKS:
        with suppress(Transient, Permanent):  # the clone is as good as before, and the next fetch tries it again
            await git.run("repack", "--geometric=2", "-d", "--quiet", patience=PATIENCE)


@asynccontextmanager
async def hold_folder(folder: Path) -> AsyncGenerator[None]:
    """Nobody else on this machine changes the clone meanwhile; the system releases the lock of a killed process."""
    await asyncio.to_thread(folder.mkdir, parents=True, exist_ok=True)
    held = await asyncio.to_thread(os.open, folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        until = asyncio.get_running_loop().time() + PATIENCE_FOR_OTHERS
        while not _try_lock(held):
            if asyncio.get_running_loop().time() > until:
                raise Overloaded("The repository is being cloned or fetched by another task.", timedelta(minutes=1))
            await asyncio.sleep(0.1)
        yield
    finally:
        os.close(held)


def _try_lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _clear_unfinished(folder: Path) -> None:
    for left in folder.glob("unfinished-*"):
        shutil.rmtree(left, ignore_errors=True)
    for half in (folder / "repository" / "objects" / "pack").glob("tmp_*"):  # of a fetch that broke off
        half.unlink(missing_ok=True)


@asynccontextmanager
async def open_git(options: GitOptions, context: ConnectorContext) -> AsyncGenerator[Connector]:
    yield GitConnector(await open_repository(options, context.folder / "repository"), options, context)


Workspace = Literal["CLONING", "CLONE_FAILED", "READY"]


def name_workspace(source: Source) -> Workspace:
    """The state of the clone: the first checkpoint is written when the first clone was read to its end."""
    if source.checkpoint is not None:
        return "READY"
    return "CLONE_FAILED" if source.failures else "CLONING"


GIT = Kind(
    "git",
    "A git repository: its commits, with their changes.",
    GitOptions,
    open_git,
    describe_commit,
    every=timedelta(minutes=10),
    backoff=tuple(timedelta(minutes=n) for n in (5, 15, 30, 60)),
)
