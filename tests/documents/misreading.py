"""Reads pages in a child process, and does with bad ones what bad ones do to parsers."""

import os
import signal
from pathlib import Path

from gristmill.documents.desk import Read, read_and_split
from gristmill.documents.reading import Limits


def misread(how: str, mark: str, path: str, type_: str, number: int, limits: Limits, title: str, longest: int) -> Read:
    if "Ben Holt" in Path(path).read_text():
        misbehave(how, Path(mark))
    return read_and_split(path, type_, number, limits, title, longest)


def misbehave(how: str, mark: Path) -> None:
    match how:
        case "hangs":
            signal.pause()
        case "eats memory":
            hoard = [os.urandom(1 << 20) for _ in range(4096)]
            assert hoard
        case "dies once" if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            pass
