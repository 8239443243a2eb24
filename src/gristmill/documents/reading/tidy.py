"""Makes text fit for keeping: no control characters, one kind of line end, whole characters."""

import re
import unicodedata
from typing import Any

CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u200b\u2060\ufeff\ufffe\uffff]")
SURROGATES = re.compile("[\ud800-\udfff]")
LINE_ENDS = re.compile("\r\n?|[\u2028\u2029\x85]")
BLANK_LINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")


def tidy(text: str) -> str:
    """The same text without what a database or a reader would stumble over."""
    text = LINE_ENDS.sub("\n", text)
    text = SURROGATES.sub("�", CONTROLS.sub("", text))
    return unicodedata.normalize("NFC", text)


def page(text: str) -> str:
    """A page's text: tidy, without blank margins or gaps of many lines."""
    return BLANK_LINES.sub("\n\n", tidy(text)).strip("\n").rstrip()


def line(text: str) -> str:
    """A title or a name: one line."""
    return " ".join(tidy(text).split())


def meta(values: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty, and fit for JSON in a database."""
    return {key: _value(value) for key, value in values.items() if value not in (None, "", [], {}, ())}


def _value(value: Any) -> Any:
    match value:
        case str():
            return tidy(value).strip()
        case list():
            return [_value(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
