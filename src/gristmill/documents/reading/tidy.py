"""Makes text fit for keeping: no control characters, one kind of line end, whole characters."""

import re
import unicodedata
from typing import Any

CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f\u200b\u2060\ufeff\ufffe\uffff]")
SURROGATES = re.compile("[\ud800-\udfff]")
LINE_ENDS = re.compile("\r\n?|[\u2028\u2029\x85]")
LONGEST, MOST = 1_000, 200  # characters of a value, and values of a list
MARKS, JOINER = 30, "\u034f"  # as Unicode's stream-safe format has it
UNSAFE = re.compile(rf"[^\w\s\x00-\u02ff]{{{MARKS + 1},}}")  # among others, what may be nothing but accents
BLANK_LINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")


def tidy(text: str) -> str:
    """The same text without what a database or a reader would stumble over."""
    if _is_plain(text):  # most of what is tidied was tidied before
        return text
    text = LINE_ENDS.sub("\n", text)
    text = SURROGATES.sub("�", CONTROLS.sub("", text))
    return text if text.isascii() else unicodedata.normalize("NFC", UNSAFE.sub(_stream_safe, text))


def _is_plain(text: str) -> bool:
    """Whether nothing of it would change: it is ASCII that is printed, tabs and line ends."""
    return text.isascii() and text.replace("\n", "").replace("\t", "").isprintable()


def _stream_safe(found: re.Match[str]) -> str:
    """Without endless runs of accents, whose order takes the square of their number: a joiner divides them."""
    safe: list[str] = []
    marks = 0
    for char in found[0]:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks > MARKS:
            safe.append(JOINER)
            marks = 1
        safe.append(char)
    return "".join(safe)


def page(text: str) -> str:
    """A page's text: tidy, without blank margins or gaps of many lines."""
    return BLANK_LINES.sub("\n\n", tidy(text)).strip("\n").rstrip()


def to_line(text: str) -> str:
    """A title or a name: one line."""
    return " ".join(tidy(text).split())


def meta(values: dict[str, Any]) -> dict[str, Any]:
    """Without what is empty, fit for JSON in a database, and short: it is read with every unit of a document."""
    return {key: _value(value) for key, value in values.items() if value not in (None, "", [], {}, ())}


def _value(value: Any) -> Any:
    match value:
        case str():
            return tidy(value[:LONGEST]).strip()
        case list():
            return [_value(item) for item in value[:MOST]]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
