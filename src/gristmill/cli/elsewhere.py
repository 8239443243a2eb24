"""Which server a command talks to: the database of this machine, or a `gristmill up` elsewhere.

`--server URL` says so for one command, GRISTMILL_SERVER for all; GRISTMILL_KEY is the key for it.
"""

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import ClassVar

from gristmill.cli.output import Misused
from gristmill.errors import Refused
from gristmill.settings import load

# commands that a server elsewhere can answer; the others are for the machine itself
REMOTE = {
    "add": (),
    "search": (),
    "ask": (),
    "documents": (),
    "document": ("show", "text", "retry", "reindex", "rm"),
    "run": (),
    "runs": (),
    "queue": ("list",),
    "task": ("list", "show", "why", "retry", "cancel"),
}


class Elsewhere:
    """The server that the command line names; None: the server of the settings, if they name one."""

    server: ClassVar[str | None] = None


def take_server(words: Sequence[str]) -> list[str]:
    """The command line without `--server URL`, which is kept; refused before a command that no server can answer."""
    kept: list[str] = []
    left = iter(words)
    for word in left:
        name, given, value = word.partition("=")
        if name != "--server":
            kept.append(word)
            continue
        Elsewhere.server = value if given else next(left, "")
        if not Elsewhere.server.startswith(("http://", "https://")):
            raise Misused("Write --server with the address of a gristmill up: --server http://mill.example.org:6455.")
    if _names_server():
        refuse_local(kept)
    return kept


def _names_server() -> bool:
    """Whether a server is named. Wrong settings are no error here: the command reports them, the doctor as a check."""
    try:
        return find_server() is not None
    except Refused:
        return False


def find_server() -> str | None:
    return Elsewhere.server or load().server


def refuse_local(words: Sequence[str]) -> None:
    named = [word for word in words if not word.startswith("-")]
    if not named or "--help" in words or "-h" in words:
        return
    within = REMOTE.get(named[0])
    if within is None or (within and len(named) > 1 and named[1] not in within):
        meant = " ".join(named[: 2 if within else 1])
        raise Refused(
            f"gristmill {meant} works only on the machine of the server: run it there, without --server and "
            "GRISTMILL_SERVER."
        )


def is_elsewhere() -> bool:
    """Whether this command is for a server elsewhere."""
    return find_server() is not None


def remote() -> ModuleType:
    """The commands over HTTP; loaded when they are needed, since they bring the client."""
    return importlib.import_module("gristmill.cli.remote")
