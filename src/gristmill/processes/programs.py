"""Runs a program of the operator: no shell, none of our secrets in its environment, and nothing of it left behind."""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

from gristmill.settings import environment

KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR")  # the rest of our environment holds secrets


class ProgramEnd(NamedTuple):
    """How a program ended, and what it said."""

    code: int
    said: bytes
    complaint: bytes


async def run_program(words: Sequence[str], given: bytes, *, patience: float) -> ProgramEnd:
    """Raises OSError if it cannot be started, and TimeoutError if it takes longer than `patience` seconds."""
    process = await asyncio.create_subprocess_exec(
        *words,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={key: value for key, value in environment().items() if key in KEPT},
        start_new_session=True,  # so that its own children end with it
    )
    try:
        async with asyncio.timeout(patience):
            said, complaint = await process.communicate(given)
    finally:
        await _end(process)
    return ProgramEnd(process.returncode or 0, said, complaint)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Also when we are cancelled: nothing that we started is left running."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
