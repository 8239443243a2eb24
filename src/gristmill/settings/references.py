"""Secrets that settings name but do not hold: `env:NAME` is a variable of the environment, `file:/path` a file."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from gristmill.errors import Refused
from gristmill.settings.variables import environment

LARGEST = 64 * 1024  # bytes of a file that holds a secret


def _check_reference(text: str) -> str:
    if not re.fullmatch(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+", text):
        raise ValueError("it is a secret and must not stand here: write env:NAME or file:/path, where it is kept")
    return text


Reference = Annotated[str, AfterValidator(_check_reference)]


class NoSecret(Refused):
    """Nothing is kept at the place that a reference names."""

    def __init__(self, reference: Reference) -> None:
        super().__init__(f"There is no secret at {reference}: set it there.")
        self.reference = reference


def read_reference(reference: Reference) -> str:
    """The secret itself, read when it is needed: a changed one counts at once. Errors name its place alone."""
    place, _, name = reference.partition(":")
    found = environment().get(name, "") if place == "env" else _read_file(Path(name))
    if not found.strip():
        raise NoSecret(reference)
    return found.strip()


def _read_file(path: Path) -> str:
    try:
        with path.expanduser().open(encoding="utf-8") as file:
            return file.read(LARGEST)
    except (OSError, UnicodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Refused(f"The secret in file:{path} cannot be read: {reason}.") from None
