"""Reads the settings from `GRISTMILL_*` and gristmill.toml, and refuses wrong ones with one sentence."""

import socket
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from gristmill.errors import Refused
from gristmill.settings.explain import (
    FILE,
    Sources,
    explain_error,
    explain_unknown_variables,
    find_broken_json,
    map_variables,
)
from gristmill.settings.settings import Settings
from gristmill.settings.variables import environment


def load() -> Settings:
    """Read the settings, or refuse with one sentence about the first that is wrong."""
    file = _read_file()
    try:
        return Settings()
    except SettingsError as wrong:
        raise Refused(_explain_broken_json(wrong)) from wrong
    except ValidationError as wrong:
        names = frozenset(name.upper() for name in environment())
        raise Refused(explain_error(wrong.errors()[0], Sources(names, file, map_variables(Settings)))) from wrong


def locate_file() -> str:
    """The machine and the path of the gristmill.toml that settings are read from here, whether or not there is one."""
    return f"{socket.gethostname()}:{Path(FILE).absolute()}"


def unknown_names() -> list[str]:
    """One sentence for each variable `GRISTMILL_*` that sets nothing; most often its name is misspelt."""
    return explain_unknown_variables(environment(), map_variables(Settings))


def _read_file() -> dict[str, Any]:
    """The content of gristmill.toml; empty if there is no such file."""
    path = Path(FILE)
    if path.exists() and not path.is_file():
        raise Refused(f"{path.resolve()} is not a file: move it away, or write your settings into a file of that name.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except UnicodeDecodeError as wrong:
        raise Refused(f"{path.resolve()} is not UTF-8 text: save it as UTF-8, or write it anew.") from wrong
    except tomllib.TOMLDecodeError as wrong:
        raise Refused(f"{FILE} cannot be read: {wrong}.") from wrong
    except OSError as wrong:
        raise Refused(f"{path.resolve()} cannot be read ({wrong.strerror}).") from wrong


def _explain_broken_json(wrong: SettingsError) -> str:
    """The sentence about a variable that must hold a table or a list as JSON, and does not."""
    name = find_broken_json(Settings, environment()) or "of the environment"
    return f"The setting {name} is wrong: it is not JSON ({wrong.__cause__}). See docs/settings.md."
