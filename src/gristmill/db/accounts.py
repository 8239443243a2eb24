"""Which system user the embedded server runs as, what belongs to that user, and how to act as that user."""

import os
import pwd
import stat
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from gristmill.errors import Refused


@dataclass(frozen=True)
class SystemUser:
    """The system user the server runs as; PostgreSQL refuses root."""

    name: str
    uid: int
    gid: int


def account_of(cluster: Path) -> SystemUser | None:
    """The user to run the server as: None for the current user; root uses the owner of the data, or a system user."""
    holder = cluster.stat().st_uid if cluster.exists() else None
    if os.geteuid() != 0:
        if holder not in (None, os.geteuid()):
            raise Refused(
                f"The database in {cluster} belongs to the user {user_name(holder)}: "
                "run as that user or choose another folder with GRISTMILL_DATA."
            )
        return None
    if holder:
        return SystemUser(user_name(holder), holder, cluster.stat().st_gid)
    return system_account()


def user_name(uid: int | None) -> str:
    try:
        return pwd.getpwuid(-1 if uid is None else uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


def system_account() -> SystemUser:
    """The user `postgres` where Debian made it, else our own `gristmill`, else `nobody`."""
    found = account("postgres") or account("gristmill")
    if found is None:
        with suppress(OSError):  # a minimal system has no useradd
            shell = ("--shell", "/usr/sbin/nologin")
            run_as(None, ["useradd", "--system", "--user-group", "--no-create-home", *shell, "gristmill"])
        found = account("gristmill") or account("nobody")
    if found is None:
        raise Refused("PostgreSQL does not run as root: create a system user named gristmill, then try again.")
    return found


def account(name: str) -> SystemUser | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return SystemUser(name, entry.pw_uid, entry.pw_gid)


def refuse_unreachable(folder: Path, owner: SystemUser) -> None:
    standing = next(path for path in (folder, *folder.parents) if path.exists())
    if run_as(owner, ["test", "-x", standing]).returncode:
        raise Refused(
            f"Started by root, PostgreSQL runs as the user {owner.name}, who cannot enter {standing}: "
            "choose a folder that everybody may enter with GRISTMILL_DATA."
        )


def own_folder(folder: Path, owner: SystemUser | None) -> None:
    """Makes a folder that only its owner may enter; refuses one that somebody else put in its place."""
    uid = owner.uid if owner else os.geteuid()
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        if owner:
            os.chown(folder, owner.uid, owner.gid)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or found.st_mode & 0o077:
        raise Refused(f"{folder} must be a folder that only {user_name(uid)} may enter: remove it, then try again.")


def write_as(owner: SystemUser | None, path: Path, text: str) -> None:
    """Replaces a file by a new one: it is never half written, and no symlink is followed."""
    handle, draft = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w") as file:
        if owner:
            os.fchown(handle, owner.uid, owner.gid)
        file.write(text)
    Path(draft).replace(path)


def run_as(
    owner: SystemUser | None, command: list[str | Path], output: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, in a session of its own, so that Ctrl-C in our terminal does not reach it."""
    return subprocess.run(
        command,
        cwd="/",  # the other user may not be allowed into our current folder
        user=owner.uid if owner else None,
        group=owner.gid if owner else None,
        extra_groups=[] if owner else None,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT if output != subprocess.PIPE else subprocess.PIPE,
        start_new_session=True,
        text=True,
        check=False,
    )
