"""Reads pages in a child process, and does with bad ones what bad ones do to parsers."""

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from gristmill.documents.desk import Sheet, read_pages
from gristmill.documents.reading import Limits


def misread(how: str, mark: str, sheets: Sequence[Sheet], limits: Limits) -> None:
    for sheet in sheets:
        if "Ben Holt" in Path(sheet.path).read_text():
            misbehave(how, Path(mark))
        read_pages([sheet], limits)
        if how == "is slow":
            return


def misbehave(how: str, mark: Path) -> None:
    match how:
        case "is slow":
            time.sleep(0.2)
        case "hangs":
            signal.pause()
        case "eats memory":
            hoard = [bytes(1 << 20) for _ in range(4096)]
            assert hoard
        case "dies once" if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        case _:
            pass
