"""Writes texts and values so that PostgreSQL takes them, whatever a tool, a page or a model has put into them."""

import json
import re
from typing import Any

NUL = re.compile(r"(?<!\\)((?:\\\\)*)\\u0000")  # not the escaped backslash before a plain "u0000"
REPLACEMENT = "\ufffd"


def write_keepable(value: Any) -> str:
    """JSON in one spelling: the same value is always the same text."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    return NUL.sub(rf"\1{REPLACEMENT}", text.encode(errors="replace").decode())


def clean_text(text: str) -> str:
    """Text without NUL and without halves of characters."""
    return text.encode(errors="replace").decode().replace("\0", REPLACEMENT)
