"""The Unix socket of the local service: where it lies, who may use it, and how a long path is reached."""

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from gristmill.settings import Settings

LONGEST = 100  # bytes of a path; the system takes 108, some take fewer


def socket_in(settings: Settings) -> Path:
    return settings.data / "local.sock"


@contextmanager
def shorten(path: Path) -> Generator[str]:
    """A name of this path that is short enough for a socket: by way of its folder, which is open meanwhile."""
    if len(os.fsencode(path)) <= LONGEST:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def bind_socket(path: Path) -> socket.socket:
    """A socket that only its owner may use, bound and not yet listening: until then nobody can connect.

    The umask would do the same, but it belongs to the whole process: files of other threads would get the wrong rights.
    """
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with shorten(path) as name:
            listening.bind(name)
            os.chmod(name, 0o600)
    except OSError:
        listening.close()
        raise
    return listening


def is_own_socket(path: Path) -> bool:
    """Whether a socket of this user lies there: nobody else may answer for us."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return found.st_uid == os.geteuid()
