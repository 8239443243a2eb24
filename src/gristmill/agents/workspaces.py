"""The workspace of a run: a clone of its own, in which an agent reads and changes files."""

import asyncio
import errno
import os
import re
import shutil
import socket
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import file_digest, sha256
from pathlib import Path, PurePosixPath
from secrets import token_hex

import psutil

from gristmill.agents.runs import Run
from gristmill.db import Tx
from gristmill.errors import Permanent, Refused, Transient, Unknown
from gristmill.ids import RunId
from gristmill.sources import Git, GitOptions, RepositoryLocked, Source, list_sources, open_repository, prepare_clone
from gristmill.telemetry import log

# for a repository within the workspace, git starts another git, which obeys the settings of that repository
APART = ("-c", "diff.ignoreSubmodules=all", "-c", "status.submoduleSummary=false")
MOST_FILES = 50_000  # that are listed
LARGEST = 4 << 20  # bytes of a file that is read or written
DRAFT = re.compile(r"(?:^|/)\.[^/]{1,80}\.[0-9a-f]{16}\.gristmill$")
AUTHOR = "Gristmill agent <agent@gristmill.invalid>"
NAME, _, ADDRESS = AUTHOR.rstrip(">").partition(" <")


@dataclass(frozen=True)
class Workspace:
    """A folder with a git repository; `remote` is where its commits can be pushed to."""

    folder: Path
    git: Git
    remote: str | None = None
    # one git writes at a time: agents that work side by side share the index and the branch
    writing: asyncio.Lock = field(default_factory=asyncio.Lock, compare=False, repr=False)

    async def hash_files(self, paths: Sequence[str]) -> str:
        """One number for what these files hold now: what was approved can be compared with what is there."""
        return await asyncio.to_thread(hash_files, self.folder, paths)

    async def read(self, path: str) -> str:
        return await asyncio.to_thread(read_text, self.folder, path)

    async def write(self, path: str, text: str) -> None:
        await asyncio.to_thread(write_text, self.folder, path, text)

    async def ask_git(self, *words: str, given: str = "") -> str:
        """What git says of this folder alone; its complaint is a refusal, for nothing outside was asked."""
        try:
            return (await self.git.run(*APART, *words, given=given)).decode(errors="replace")
        except RepositoryLocked:
            raise  # it passes: the other git ends, or the next worker removes what it left
        except Transient as error:
            raise Refused(str(error)) from error

    async def list_files(self) -> list[str]:
        """The files that git knows or would know, by their paths."""
        said = await self.ask_git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate")
        return [one for one in said.split("\0") if one and not is_draft(one)][:MOST_FILES]


# --- files


def split_path(path: str) -> tuple[str, ...]:
    """The parts of a path in the workspace; Refused if it leads out of it, or into git's own files."""
    parts = PurePosixPath(path.strip()).parts
    if not parts or parts[0] == "/" or ".." in parts or "\0" in path or "\\" in path or not path.isprintable():
        raise Refused(f"{path!r} is no path in the workspace: write it from the top of the repository, without “..”.")
    if any(part.casefold().rstrip(". ") in (".git", "git~1") for part in parts):
        raise Refused("The files of git itself are not read or written: use the tools of git.")
    return parts


@contextmanager
def _open_folder(top: Path, parts: Sequence[str], *, make: bool = False) -> Generator[int]:
    """A handle of a folder below `top`, opened part by part: no link on the way is followed, not even a new one."""
    handle = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        for part in parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=handle)
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def read_text(top: Path, path: str) -> str:
    *folders, name = split_path(path)
    try:
        with _open_folder(top, folders) as folder:
            # not blocking: a pipe would never end
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except FileNotFoundError:
        raise Refused(f"There is no file {path} in the workspace.") from None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {_explain(error)}.") from None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise Refused(f"{path} is no ordinary file.")
        content = file.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise Refused(f"{path} is larger than {LARGEST:,} bytes.")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Refused(f"{path} is no text in UTF-8.") from None


def hash_files(top: Path, paths: Sequence[str]) -> str:
    """Of names, kinds, rights and contents; a link counts by where it leads, and is not followed."""
    whole = sha256()
    for path in sorted(paths):
        whole.update(f"{path}\0{_hash_file(top, path)}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()


def _hash_file(top: Path, path: str) -> str:
    *folders, name = PurePosixPath(path).parts
    try:
        with _open_folder(top, folders) as folder:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISLNK(found.st_mode):
                return f"link {os.readlink(name, dir_fd=folder)}"
            if not stat.S_ISREG(found.st_mode):
                return "no file"
            with os.fdopen(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder), "rb") as file:
                return f"{stat.S_IMODE(found.st_mode):o} {file_digest(file, 'sha256').hexdigest()}"
    except OSError:
        return "not there"


def write_text(top: Path, path: str, text: str) -> None:
    """Write a file as a whole: a worker that is killed meanwhile leaves the old file or the new one."""
    *folders, name = split_path(path)
    content = text.encode(errors="replace")
    if len(content) > LARGEST:
        raise Refused(f"The text for {path} is larger than {LARGEST:,} bytes.")
    draft = f".{name[:80]}.{token_hex(8)}.gristmill"  # nobody can have put a pipe there before, to let us hang
    try:
        with _open_folder(top, folders, make=True) as folder:
            mode = _find_mode(name, folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            with os.fdopen(os.open(draft, flags, mode, dir_fd=folder), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(draft, dir_fd=folder)
                raise
    except OSError as error:
        raise Refused(f"{path} cannot be written: {_explain(error)}.") from None


def is_draft(path: str) -> bool:
    """Whether a file is what a worker left that was killed while it wrote: nobody wants to see or commit it."""
    return DRAFT.search(path) is not None


def _find_mode(name: str, folder: int) -> int:
    """The rights of the file that is replaced: a script stays one."""
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return 0o644
    return stat.S_IMODE(found.st_mode) if stat.S_ISREG(found.st_mode) else 0o644


def _explain(error: OSError) -> str:
    links = (errno.ELOOP, errno.ENOTDIR)
    return "a link is on its way, and links are not followed" if error.errno in links else error.strerror or "refused"


# --- where they are


def folder_of(data: Path, run: RunId) -> Path:
    return data / "workspaces" / str(run)


def host_name() -> str:
    return socket.gethostname()


def check_host(run: Run, hosts: Iterable[str], data: Path) -> str | None:
    """Why a run cannot go on here: its workspace lies on another machine. Permanent if nobody works there any more.

    A machine that got another name is the same one: it has the workspace.
    """
    if run.host is None or run.host == host_name() or folder_of(data, run.id).exists():
        return None
    if run.host not in hosts:
        raise Permanent(
            f"The workspace of run {run.id} is on {run.host}, where no worker is at work: start one there, or ask anew."
        )
    return f"The workspace of run {run.id} is on {run.host}: a worker there goes on with it."


async def find_repository(tx: Tx, run: Run) -> Source | None:
    """The git source that a run works on: the one that it names, or the only one of its project."""
    found = [one for one in await list_sources(tx, run.client, run.project or None) if one.kind == "git"]
    if run.repository is not None:
        named = [one for one in found if one.name == run.repository]
        if not named:
            raise Unknown(f"There is no git source “{run.repository}” in {run.place}.")
        return named[0]
    own = [one for one in found if one.project == run.project]
    return own[0] if len(own) == 1 else None


async def open_workspace(data: Path, run: Run, source: Source | None) -> Workspace:
    """The workspace of a run, made if it is not there; one that was never finished is begun anew."""
    folder = folder_of(data, run.id)
    await asyncio.to_thread(_clear_unfinished, folder)
    options = GitOptions.model_validate(dict(source.options)) if source is not None else None
    place = folder / "repository"
    if not await asyncio.to_thread(place.exists):
        unfinished = folder / "unfinished"
        if options is not None and source is not None:
            bare = await prepare_clone(options, data / "sources" / str(source.id))
            words = ("clone", "--quiet", "--no-tags", "--no-hardlinks", "--", str(bare.folder), str(unfinished))
            await Git(folder).run(*words)
        else:
            await Git(folder).run("init", "--quiet", "--initial-branch=main", str(unfinished))
            await _commit_nothing(Git(unfinished))
        await asyncio.to_thread(unfinished.rename, place)
    await asyncio.to_thread(_remove_left_locks, place)
    if options is None:
        return Workspace(place, Git(place))
    return Workspace(place, await open_repository(options, place), options.url)


def _remove_left_locks(place: Path) -> None:
    """A git that was killed leaves its locks, and no other would work here any more; one that lives needs them."""
    locks = [*(place / ".git").glob("*.lock"), *(place / ".git" / "refs").rglob("*.lock")]
    if not locks or _has_living_git(place):
        return
    for lock in locks:
        lock.unlink(missing_ok=True)
    log.warning("workspace.locks_removed", folder=str(place), locks=len(locks))


def _has_living_git(place: Path) -> bool:
    for process in psutil.process_iter(["name", "cwd"]):
        name, folder = process.info["name"] or "", process.info["cwd"]
        if name.startswith("git") and folder and Path(folder).is_relative_to(place.resolve()):
            return True
    return False


async def _commit_nothing(git: Git) -> None:
    await git.run(*name_author(), "commit", "--quiet", "--allow-empty", "-m", "Begin")


def name_author() -> tuple[str, ...]:
    """Options of git that say whose commits these are."""
    return ("-c", f"user.name={NAME}", "-c", f"user.email={ADDRESS}", "-c", "commit.gpgSign=false")


def make_place(data: Path, run: RunId) -> None:
    """From now on the workspace of a run is here, also before it holds anything."""
    folder_of(data, run).mkdir(parents=True, exist_ok=True, mode=0o700)


def _clear_unfinished(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    shutil.rmtree(folder / "unfinished", ignore_errors=True)


def list_workspaces(data: Path) -> list[RunId]:
    """The runs whose workspaces lie on this machine."""
    top = data / "workspaces"
    return [RunId(int(one.name)) for one in top.iterdir() if one.name.isdigit()] if top.is_dir() else []


async def remove_workspace(data: Path, run: RunId) -> None:
    await asyncio.to_thread(shutil.rmtree, folder_of(data, run), ignore_errors=True)
