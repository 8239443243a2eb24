"""Reads the settings from `GRISTMILL_*` and gristmill.toml, and refuses wrong ones with one sentence."""

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_settings import SettingsError

from gristmill.errors import Refused
from gristmill.settings.environment import environment
from gristmill.settings.explain import FILE, broken_json, complaint, names_of, strangers
from gristmill.settings.settings import Settings


def load() -> Settings:
    """The settings, or one sentence about the first that is wrong."""
    file = _file()
    try:
        return Settings()
    except SettingsError as wrong:
        raise Refused(_not_json(wrong)) from wrong
    except ValidationError as wrong:
        known = names_of(Settings)
        first = complaint(wrong.errors()[0], environment=environment(), file=file, known=known)
        raise Refused(first) from wrong


def unknown_names() -> list[str]:
    """A sentence for each `GRISTMILL_*` of the environment that sets nothing: a slip of the pen, most often."""
    return strangers(environment(), names_of(Settings))


def _file() -> dict[str, Any]:
    """What stands in gristmill.toml, if there is one."""
    path = Path(FILE)
    if path.exists() and not path.is_file():
        raise Refused(f"{path.resolve()} is not a file: move it away, or write your settings into a file of that name.")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as wrong:
        raise Refused(f"{FILE} cannot be read: {wrong}.") from wrong
    except OSError as wrong:
        raise Refused(f"{path.resolve()} cannot be read ({wrong.strerror}).") from wrong


def _not_json(wrong: SettingsError) -> str:
    """Tables and lists are JSON in the environment."""
    name = broken_json(Settings, environment()) or "of the environment"
    return f"The setting {name} is wrong: it is not JSON ({wrong.__cause__}). See docs/settings.md."
