"""Runs git on repositories that nobody trusts: no hooks, no foreign settings, no protocols but those we name."""

import asyncio
import os
import shlex
import signal
from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from gristmill.errors import Permanent, Transient
from gristmill.settings import environment
from gristmill.wording import format_bytes

LONGEST_ERROR = 300  # characters of what git says
LONGEST_REASON = 2_000  # characters of a line that may tell one
LONGEST_COMPLAINT = 16_384  # bytes of its complaints that are kept
PATIENCE = 600.0  # seconds for a question about the clone
MOST_SAID = 1 << 30  # bytes of one answer: a list of ten million commits
MOST_BYTES = 20 << 30  # of one file that git writes, and so of everything that a fetch brings
PIECE = 1 << 16
BLOCK = 512  # bytes; in these `ulimit -f` counts
KILOBYTE = 1024  # bytes; in these `ulimit -v` counts
# A server that sends without end must not fill the disk: neither git nor what it starts writes a larger file.
LIMITED = 'ulimit -f "$1" && { [ -z "$2" ] || ulimit -v "$2"; } && shift 2 && exec git "$@"'
R = TypeVar("R")
# Without these, a repository or the settings of the user could make git run programs.
HARMLESS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.attributesFile": "/dev/null",
    "core.sshCommand": "ssh -o BatchMode=yes -o ConnectTimeout=15",
    "core.askPass": "",
    "credential.helper": "",
    "diff.external": "",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.ext.allow": "never",
    "http.followRedirects": "false",  # our token must not follow
    "fetch.unpackLimit": "1",  # what comes is one file, so that its size can be limited
    "transfer.unpackLimit": "1",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "transfer.bundleURI": "false",
}
PROTOCOLS = "https:http:ssh:file"
TOO_LARGE = ("file size limit exceeded", "file too large", "signal 25")
DENIED = (
    *("authentication failed", "permission denied", "could not read username", "access denied"),
    *("returned error: 401", "returned error: 403"),  # these words: a number may stand in the name of a repository
)
UNKNOWN_SERVER = ("host key verification failed",)
LOCKED = (".lock': file exists", "another git process seems to be running")
MOVED = ("returned error: 301", "returned error: 302", "returned error: 307", "returned error: 308")
REJECTED = ("[rejected]", "[remote rejected]")
# Lines of git and ssh that tell no reason: advice and progress.
BESIDE = (
    *("hint:", "warning:", "usage:", "cloning into", "receiving objects", "resolving deltas"),
    *("remote: enumerating", "remote: counting", "remote: compressing", "remote: total"),
    *("please make sure you have the correct access", "and the repository exists"),
    "fatal: could not read from remote repository",
)
MISSING = ("not found", "does not exist", "does not appear to be a git repository")


@dataclass(frozen=True)
class Git:
    """The git of this machine, in one folder."""

    folder: Path
    header: str | None = field(default=None, repr=False)  # of HTTP, with a secret: it goes by the environment alone …
    base: str = ""  # … to the addresses below this one alone
    ssh_key: str | None = None
    most_bytes: int = MOST_BYTES  # that a fetch may bring
    most_memory: int | None = None  # bytes of addresses that git may use: a pattern of a stranger may want all of them

    async def run(self, *words: str, given: str = "", patience: float = PATIENCE, most: int = MOST_SAID) -> bytes:
        """The output of git; if git fails, its message becomes one of our errors."""
        said = bytearray()
        async with aclosing(self.stream(*words, given=given, patience=patience)) as pieces:
            async for piece in pieces:
                said += piece
                if len(said) > most:
                    raise Permanent(
                        f"git {name_command(words)} said more than {format_bytes(most)}: the repository is too large."
                    )
        return bytes(said)

    async def stream(self, *words: str, given: str = "", patience: float = PATIENCE) -> AsyncGenerator[bytes]:
        """The output of git, piece by piece: it may be of any size, but it must end in time."""
        command = name_command(words)
        process = await self._start(words)
        assert process.stdout is not None
        talking = asyncio.create_task(_tell(process, given.encode()))
        listening = asyncio.create_task(_hear_complaint(process))
        until = asyncio.get_running_loop().time() + patience
        try:
            # the time in which the caller works on a piece counts, too: git waits meanwhile
            while piece := await _within(until, process.stdout.read(PIECE)):
                yield piece
            complaint = await _within(until, listening)
            if await _within(until, process.wait()):
                raise explain(command, complaint.decode(errors="replace"))
        except TimeoutError as error:
            raise Transient(f"git {command} did not end within {patience:g} s.") from error
        finally:
            talking.cancel()
            listening.cancel()
            await _end(process)

    async def _start(self, words: Sequence[str]) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *("sh", "-c", LIMITED, "git", str(self.most_bytes // BLOCK)),
                str(self.most_memory // KILOBYTE) if self.most_memory else "",
                *words,
                cwd=self.folder,
                env=self._make_environment(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=1 << 20,
                start_new_session=True,  # so that the programs that it starts end with it: ssh, git-remote-https
            )
        except FileNotFoundError as error:
            raise Permanent("There is no shell (sh) on this machine, or the folder of the clone is gone.") from error

    def _make_environment(self) -> Mapping[str, str]:
        settings = dict(HARMLESS)
        if self.header:
            settings[f"http.{self.base}.extraHeader"] = self.header
        if self.ssh_key:
            settings["core.sshCommand"] += f" -o IdentitiesOnly=yes -i {shlex.quote(self.ssh_key)}"
        numbered = {f"GIT_CONFIG_KEY_{n}": name for n, name in enumerate(settings)}
        numbered |= {f"GIT_CONFIG_VALUE_{n}": value for n, value in enumerate(settings.values())}
        plain = {name: value for name, value in environment().items() if not name.startswith("GIT_")}
        return {
            **plain,
            **numbered,
            "GIT_CONFIG_COUNT": str(len(settings)),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": PROTOCOLS,
            "GIT_LFS_SKIP_SMUDGE": "1",
            "GIT_OPTIONAL_LOCKS": "0",  # a git that only reads must not lock out one that writes
            "LC_ALL": "C",
        }


def make_header(user: str, secret: str) -> str:
    return "Authorization: Basic " + b64encode(f"{user}:{secret}".encode()).decode()


def name_command(words: Sequence[str]) -> str:
    """The command of git among its words: options for all commands come before it."""
    rest = iter(words)
    for word in rest:
        if word == "-c":
            next(rest, None)  # its value
        elif not word.startswith("-"):
            return word
    return words[0]


class RepositoryLocked(Transient):
    """Another git writes to the same repository, or was killed and left its lock behind."""


def explain(command: str, complaint: str) -> Exception:
    """The error that git's complaint means, in the first words that tell a reason."""
    lines = [line.strip("@ \t\r") for line in complaint.splitlines()]
    lines = [line for line in lines if line]
    # an endless line is no reason: where a server floods us, the reason stands behind the flood
    reasons = [line for line in lines if not line.casefold().startswith(BESIDE) and len(line) <= LONGEST_REASON]
    words = " ".join((reasons or lines or ["it says nothing"])[0].split())[:LONGEST_ERROR]
    low = complaint.casefold()
    if any(sign in low for sign in TOO_LARGE):
        return Permanent(f"The repository is too large: git {command} brought more than it may write.")
    if "git: not found" in low:
        return Permanent("git is not installed on this machine: apt-get install git.")
    if any(sign in low for sign in LOCKED):
        return RepositoryLocked(f"git {command} found a lock of another git, which is at work there, or was killed.")
    if any(sign in low for sign in UNKNOWN_SERVER):
        return Permanent(f"The server has another key than we know, or none that we know: {words}")
    if any(sign in low for sign in DENIED):
        return Permanent(f"The server does not let us in: {words}")
    if any(sign in low for sign in MOVED):
        return Permanent(
            f"The address redirects, which is not followed: write the other address. {words}"[:LONGEST_ERROR]
        )
    if rejected := next((line for line in lines if any(sign in line for sign in REJECTED)), None):
        return Permanent(f"The repository does not take it: {' '.join(rejected.split())}"[:LONGEST_ERROR])
    if any(sign in low for sign in MISSING) and command in ("clone", "fetch", "ls-remote"):
        return Permanent(f"There is no such repository, or we may not see it: {words}")
    return Transient(f"git {command} failed: {words}")


async def _within(until: float, waiting: Awaitable[R]) -> R:
    async with asyncio.timeout_at(until):
        return await waiting


async def _tell(process: asyncio.subprocess.Process, given: bytes) -> None:
    """Write what git asks for while it is already answering: else each would wait for the other."""
    assert process.stdin is not None
    with suppress(ConnectionError):  # it ended before it had read all
        process.stdin.write(given)
        await process.stdin.drain()
        process.stdin.close()


async def _hear_complaint(process: asyncio.subprocess.Process) -> bytes:
    """The end of the error output of git: it repeats the words of the server, which may never stop."""
    assert process.stderr is not None
    kept = b""
    while piece := await process.stderr.read(PIECE):
        kept = (kept + piece)[-LONGEST_COMPLAINT:]
    return kept


async def _end(process: asyncio.subprocess.Process) -> None:
    """Also when we are cancelled: nothing that it started is left running."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
