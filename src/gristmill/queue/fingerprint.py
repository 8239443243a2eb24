"""Gives errors that are the same but for their particulars the same name."""

import hashlib
import re

# order matters: an address contains numbers, a path may contain ids
PARTICULARS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[a-z][a-z0-9+.-]*://[^\s\"'<>]+", re.IGNORECASE), "<url>"),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "<mail>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"), "<time>"),
    (re.compile(r"(?<![\w<])(?:[A-Za-z]:)?(?:[\\/][\w.@~+ -]*[\w@~+-])+(?:\.\w+)?"), "<path>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<address>"),
    (re.compile(r"(?<!\w)(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}(?!\w)", re.IGNORECASE), "<address>"),
    (re.compile(r"\b[\w-]+(?:\.[\w-]+)+:\d+\b"), "<address>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"(?:(?<!\w)[-+])?\b\d+(?:[.,]\d+)*\b"), "<n>"),
    (re.compile(r"(?<=[A-Za-z_-])\d+"), "<n>"),
)


def normalise(error: str) -> str:
    """The first line of an error without ids, numbers, times, paths and addresses."""
    text = error.strip().splitlines()[0] if error.strip() else ""
    for pattern, name in PARTICULARS:
        text = pattern.sub(name, text)
    return re.sub(r"\s+", " ", text)[:300]


def fingerprint(error: str) -> str:
    """A short name for the cluster an error belongs to."""
    return hashlib.blake2s(normalise(error).encode(), digest_size=6).hexdigest()
