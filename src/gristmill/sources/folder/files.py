"""Which files a path means: itself, all in a folder, or all that a pattern matches; hidden ones are left out."""

import os
from collections.abc import Iterator
from glob import glob, has_magic
from pathlib import Path

from gristmill.errors import Refused


def check_folder(folder: str) -> Path:
    """The folder of this name. An empty name is refused: it comes from a variable that is not set."""
    if not folder or not os.path.isdir(folder):
        raise Refused(f"There is no folder {folder or 'without a name'}.")
    return Path(folder)


def files_in(given: str) -> list[Path]:
    """The files that a person means by a path or a pattern.

    Some of them cannot be added: a pipe, a link to nowhere, a folder that is closed to this user. They are among the
    files all the same, so that the person is told why they were refused.
    """
    if not given.strip():
        raise Refused("An empty name is no file or folder: perhaps a variable is not set.")
    path = os.path.expanduser(given)
    if os.path.exists(path):
        return _files_meant_by(path)
    if has_magic(given):
        found = [file for match in sorted(glob(path, recursive=True)) for file in _files_meant_by(match)]
        if found:
            return found
        raise Refused(f"Nothing matches {given}.")
    try:
        os.stat(path)
    except FileNotFoundError:
        raise Refused(f"There is no file or folder {given}.") from None
    except OSError as error:
        raise Refused(f"{given} cannot be read: {error.strerror}.") from None
    return _files_meant_by(path)  # it appeared after the first look


def files_at(path: Path) -> list[Path]:
    """The file at this very path, or all files in the folder there; a link to a folder is not followed."""
    if os.path.isdir(path) and not os.path.islink(path):  # unlike Path.is_dir, these do not raise in a closed folder
        return sorted(_walk_visible(str(path)))
    return [path] if os.path.lexists(path) else []


def find_closed_folders(folder: Path) -> list[Path]:
    """The folders within this one, hidden ones too, that this user may not look into."""
    closed: list[OSError] = []
    for _ in os.walk(folder, onerror=closed.append):
        pass
    return [Path(error.filename) for error in closed if isinstance(error, PermissionError)]


def _files_meant_by(path: str) -> list[Path]:
    """If a person names a link, the file or folder that it leads to is meant."""
    if os.path.isdir(path):
        return sorted(_walk_visible(path))
    return [Path(os.path.realpath(path) if os.path.isfile(path) else path)]


def _walk_visible(folder: str) -> Iterator[Path]:
    closed: list[OSError] = []
    for at, folders, files in os.walk(folder, onerror=closed.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        links = [name for name in folders if os.path.islink(os.path.join(at, name))]
        yield from (Path(at, name) for name in [*files, *links] if not name.startswith("."))
    yield from (Path(error.filename) for error in closed)
