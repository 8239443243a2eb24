"""Runs git on repositories that nobody trusts: no hooks, no foreign settings, no protocols but those we name."""

import asyncio
import os
import shlex
from base64 import b64encode
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from gristmill.errors import Permanent, Transient
from gristmill.settings import environment

LONGEST_ERROR = 300  # characters of what git says
PIECE = 1 << 16
# What a repository, or the user's own settings, could otherwise make git do or run.
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
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "60",
    "transfer.bundleURI": "false",
}
PROTOCOLS = "https:http:ssh:file"
DENIED = ("authentication failed", "permission denied", "could not read username", "403", "401", "access denied")
MOVED = ("returned error: 301", "returned error: 302", "returned error: 307", "returned error: 308")
REJECTED = ("[rejected]", "[remote rejected]")
MISSING = ("not found", "does not exist", "does not appear to be a git repository")


@dataclass(frozen=True)
class Git:
    """The git of this machine, in one folder."""

    folder: Path
    header: str | None = field(default=None, repr=False)  # of HTTP, with a secret: it goes by the environment alone …
    base: str = ""  # … to the addresses below this one alone
    ssh_key: str | None = None

    async def run(self, *words: str, given: str = "", patience: float = 600) -> bytes:
        """What git says; its complaints become one of our errors."""
        process = await self._start(words)
        try:
            async with asyncio.timeout(patience):
                said, complaint = await process.communicate(given.encode())
        except TimeoutError as error:
            raise Transient(f"git {words[0]} did not end within {patience:g} s.") from error
        finally:
            _end(process)
        if process.returncode:
            raise explain(words[0], complaint.decode(errors="replace"))
        return said

    async def stream(self, *words: str, given: str = "") -> AsyncIterator[bytes]:
        """What git says, piece by piece: nobody knows how much it is."""
        process = await self._start(words)
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            process.stdin.write(given.encode())
            process.stdin.close()
            while piece := await process.stdout.read(PIECE):
                yield piece
            complaint = await process.stderr.read()
            if await process.wait():
                raise explain(words[0], complaint.decode(errors="replace"))
        finally:
            _end(process)

    async def _start(self, words: Sequence[str]) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                "git",
                *words,
                cwd=self.folder,
                env=self._make_environment(),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=1 << 20,
            )
        except FileNotFoundError as error:
            raise Permanent("git is not installed on this machine: apt-get install git.") from error

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
            "LC_ALL": "C",
        }


def make_header(user: str, secret: str) -> str:
    return "Authorization: Basic " + b64encode(f"{user}:{secret}".encode()).decode()


def explain(command: str, complaint: str) -> Exception:
    """The error that git's complaint means, in its last words."""
    lines = [line for line in complaint.splitlines() if line.strip() and not line.startswith("hint:")]
    words = " ".join((lines or ["it says nothing"])[-1].split())[:LONGEST_ERROR]
    low = complaint.casefold()
    if any(sign in low for sign in DENIED):
        return Permanent(f"The server does not let us in: {words}")
    if any(sign in low for sign in MOVED):
        return Permanent(
            f"The address leads elsewhere, and we do not follow: write where it leads to. {words}"[:LONGEST_ERROR]
        )
    if rejected := next((line for line in lines if any(sign in line for sign in REJECTED)), None):
        return Permanent(f"The repository does not take it: {' '.join(rejected.split())}"[:LONGEST_ERROR])
    if any(sign in low for sign in MISSING) and command in ("clone", "fetch", "ls-remote"):
        return Permanent(f"There is no such repository, or we may not see it: {words}")
    return Transient(f"git {command} failed: {words}")


def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
