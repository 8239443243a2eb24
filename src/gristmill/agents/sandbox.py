"""Runs commands of agents in a sandbox: no network, nothing but the workspace can be written, limits for everything."""

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from gristmill.errors import Refused
from gristmill.settings import AgentsSettings

INSIDE = "/workspace"
LARGEST_OUTPUT = 400_000  # bytes that are kept, from the end
LARGEST_FILE = 1 << 30  # bytes of a file that a command writes
LARGEST_SCRATCH = 256 << 20  # bytes
ROOMY = 4  # times the memory that is used: many programs reserve more than they use
LOOK_EVERY = 0.2  # seconds
BLOCK = 512  # bytes; in these the kernel counts what a file takes
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
SYSTEM_SETTINGS = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl/certs")
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp",
    "USER": "agent",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "CI": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_OPTIONAL_LOCKS": "0",
}
ADVICE = "commands of agents are not run outside of a sandbox"


@dataclass(frozen=True)
class CommandEnd:
    """How a command ended, and the end of what it said."""

    code: int | None  # None: it was ended
    said: str
    reason: str = ""  # why it was ended


@dataclass(frozen=True)
class SandboxLimits:
    """What a command and its children may use."""

    seconds: float
    memory: int
    processes: int
    disk: int = 5 << 30  # bytes of the whole workspace, without git's own files

    @classmethod
    def of(cls, settings: AgentsSettings) -> "SandboxLimits":
        return cls(
            settings.command_timeout.total_seconds(),
            settings.command_memory,
            settings.command_processes,
            settings.command_disk,
        )


def write_command(words: Sequence[str], folder: Path, limits: SandboxLimits, readable: Sequence[str]) -> list[str]:
    """The command line of bubblewrap that runs these words in a folder."""
    return [
        *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--clearenv"),
        *(word for name, value in ENVIRONMENT.items() for word in ("--setenv", name, value)),
        *(word for place in (*SYSTEM, *SYSTEM_SETTINGS, *readable) for word in ("--ro-bind-try", place, place)),
        *("--proc", "/proc", "--dev", "/dev"),
        # files there take memory that is counted for no process: so their size is limited
        *(word for place in ("/tmp", "/dev/shm") for word in ("--size", str(LARGEST_SCRATCH), "--tmpfs", place)),
        # git's own files are not to be written: our git, outside, obeys the settings in them
        *("--bind", str(folder), INSIDE, "--ro-bind-try", str(folder / ".git"), f"{INSIDE}/.git"),
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", INSIDE, "--"),
        # inside: outside, the other processes of our user would count, too
        *("prlimit", f"--as={ROOMY * limits.memory}", f"--nproc={limits.processes}", f"--fsize={LARGEST_FILE}"),
        *("--core=0", "--nofile=1024", f"--cpu={max(1, int(limits.seconds))}", "--", *words),
    ]


async def run_in_sandbox(
    words: Sequence[str], folder: Path, limits: SandboxLimits, readable: Sequence[str] = ()
) -> CommandEnd:
    """Run a command; Refused if it cannot be kept in a sandbox on this machine."""
    await check_sandbox()
    if reason := await _measure_disk(folder, limits):
        raise Refused(f"{reason} Remove what nobody needs, then run it again.")
    process = await _start(write_command(words, folder, limits, readable))
    reading = asyncio.create_task(_read_end(process))
    growing = asyncio.create_task(_watch_disk(folder, limits))
    try:
        reason = await _watch(process, limits, growing) or await _measure_disk(folder, limits)
        return CommandEnd(None if reason else process.returncode, (await reading).decode(errors="replace"), reason)
    finally:
        growing.cancel()
        reading.cancel()
        await _end(process)


_working: set[str] = set()  # ways to a bubblewrap that made a sandbox; a failure may pass, and is found out again


async def check_sandbox() -> None:
    """Refused, with a sentence, if this machine has no sandbox."""
    place = shutil.which("bwrap")
    if place is None or shutil.which("prlimit") is None:
        raise Refused(f"bubblewrap is not installed (apt-get install bubblewrap util-linux), and {ADVICE}.")
    if place in _working:
        return
    if refusal := await _try_sandbox():
        raise Refused(f"The kernel does not let bubblewrap make a sandbox ({refusal}), and {ADVICE}.")
    _working.add(place)


async def _try_sandbox() -> str:
    """Why a sandbox cannot be made; empty if it can."""
    words = write_command(["true"], Path("/tmp"), SandboxLimits(10, 1 << 30, 1_000), ())
    process = await _start(words)
    said, _ = await process.communicate()
    lines = said.decode(errors="replace").strip().splitlines()
    return "" if process.returncode == 0 else (lines or ["it says nothing"])[-1][:200]


async def _start(words: Sequence[str]) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.defpath},
        start_new_session=True,
    )


async def _read_end(process: asyncio.subprocess.Process) -> bytes:
    """The end of what it says: what failed usually stands there."""
    assert process.stdout is not None
    kept = bytearray()
    while piece := await process.stdout.read(1 << 16):
        kept += piece
        if len(kept) > 2 * LARGEST_OUTPUT:
            del kept[:-LARGEST_OUTPUT]
    return bytes(kept[-LARGEST_OUTPUT:])


async def _watch(process: asyncio.subprocess.Process, limits: SandboxLimits, growing: "asyncio.Task[str]") -> str:
    """Wait for its end; why it was ended before, or nothing.

    Limits of the kernel hold for each process by itself, and some of them not for root: here all are counted together.
    """
    began = asyncio.get_running_loop().time()
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY):
                await process.wait()
                return ""
        reason = find_excess(list(_measure(process.pid)), limits) or (growing.result() if growing.done() else "")
        if not reason and asyncio.get_running_loop().time() - began > limits.seconds:
            reason = f"It ran longer than {limits.seconds:g} s (agents.command_timeout)."
        if reason:
            await _end(process)
            return reason


async def _watch_disk(folder: Path, limits: SandboxLimits) -> str:
    """Which limit the files are beyond, as soon as they are; large workspaces are looked at less often."""
    loop = asyncio.get_running_loop()
    while True:
        began = loop.time()
        if reason := await _measure_disk(folder, limits):
            return reason
        await asyncio.sleep(max(LOOK_EVERY, 10 * (loop.time() - began)))


async def _measure_disk(folder: Path, limits: SandboxLimits) -> str:
    size = await asyncio.to_thread(measure_folder, folder)
    if size <= limits.disk:
        return ""
    return f"The workspace takes {size:,} bytes of disk; {limits.disk:,} are allowed (agents.command_disk)."


def measure_folder(top: Path) -> int:
    """The bytes of disk that the files below a folder take, without git's own; no link is followed."""
    size, folders = 0, [str(top)]
    own = str(top / ".git")
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.path == own:
                    continue
                with suppress(OSError):
                    size += entry.stat(follow_symlinks=False).st_blocks * BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
    return size


def find_excess(sizes: Sequence[int], limits: SandboxLimits) -> str:
    """Which limit a command and its children are beyond, by the memory of each; or nothing."""
    if len(sizes) > limits.processes:
        return f"It had {len(sizes):,} processes; {limits.processes:,} are allowed (agents.command_processes)."
    if sum(sizes) > limits.memory:
        return f"It used {sum(sizes):,} bytes; {limits.memory:,} are allowed (agents.command_memory)."
    return ""


def _measure(pid: int) -> Iterator[int]:
    with suppress(psutil.Error):
        for one in psutil.Process(pid).children(recursive=True):
            with suppress(psutil.Error):
                yield int(one.memory_info().rss)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End everything of it: with the first process of the sandbox, the kernel ends all others."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
