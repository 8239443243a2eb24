"""Reads what providers sent, with care: a field that is missing or odd must not stop the rest."""

from typing import Any, cast


def read_text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def read_texts(value: Any) -> list[str]:
    return [one for one in cast(list[Any], value) if isinstance(one, str)] if isinstance(value, list) else []


def read_thing(value: Any) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def read_things(value: Any) -> list[dict[str, Any]]:
    return [one for one in cast(list[Any], value) if isinstance(one, dict)] if isinstance(value, list) else []


def read_name(value: Any, *keys: str) -> str:
    """The first of these fields of a thing that holds text."""
    return next((found for found in (read_text(read_thing(value).get(key)) for key in keys) if found), "")


def dig(value: Any, *path: str) -> Any:
    """The value at a path of keys within nested values; None if there is no such path."""
    for name in path:
        value = read_thing(value).get(name)
    return value


def dig_text(value: Any, *path: str) -> str:
    """… as text, also if it is a number."""
    found = dig(value, *path)
    return str(found) if isinstance(found, str | int) else ""
