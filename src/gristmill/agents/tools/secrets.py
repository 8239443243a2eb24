"""Finds secrets in texts: keys, tokens and passwords by the shapes that they have."""

import re
from collections.abc import Iterator
from typing import NamedTuple

SHAPES = {
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"),
    "a key of AWS": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a token of GitHub": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})\b"),
    "a token of GitLab": re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}"),
    "a token of Slack": re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    "a key of Google": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "a key of Stripe": re.compile(r"\b[sr]k_live_[0-9A-Za-z]{20,}"),
    "a signed token": re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    "a password in an address": re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:(?P<secret>[^\s/@]{4,})@"),
    "a password": re.compile(
        r"(?i)\b[\w.-]*(?:passw(?:or)?d|secret|api[_-]?key|access[_-]?token|auth[_-]?token)[\w.-]*['\"]?\s*[:=]\s*"
        r"(?P<quote>['\"])(?P<secret>[^'\"\s]{8,})(?P=quote)"
    ),
}
# placeholders that stand where a secret would
PLACEHOLDER = re.compile(
    r"(?i)^(?:\$|%|\{|<|env:|file:|os\.)|example|changeme|placeholder|dummy|redacted|your[_-]|^[x*.]+$|^(?:test|secret|password)\w*$"
)
SHOWN = 4  # characters of a secret


class FoundSecret(NamedTuple):
    """Where a secret stands, and what it is; the secret itself is told to nobody."""

    line: int
    kind: str
    hint: str


def find_secrets(text: str) -> Iterator[FoundSecret]:
    for number, line in enumerate(text.splitlines(), 1):
        for kind, shape in SHAPES.items():
            found = shape.search(line)
            if found is None:
                continue
            secret = found.groupdict().get("secret") or found[0]
            if not PLACEHOLDER.search(secret):
                yield FoundSecret(number, kind, f"{secret[:SHOWN]}… ({len(secret)} characters)")
                break


def hides_secret(text: str) -> str | None:
    """What kind of secret a text has in it, if any."""
    return next((one.kind for one in find_secrets(text)), None)
