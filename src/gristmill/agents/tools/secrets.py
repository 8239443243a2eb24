"""Finds secrets in texts: keys, tokens and passwords by the shapes that they have."""

import re
from collections.abc import Iterator
from typing import NamedTuple

# Each shape begins with characters of its own, and what may follow them in many ways is short: no text can make a shape
# look at the same part again and again.
SHAPES = {
    "a private key": re.compile(r"-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----"),
    "a key of AWS": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a token of GitHub": re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})\b"),
    "a token of GitLab": re.compile(r"\bglpat-[A-Za-z0-9_-]{20,}"),
    "a token of Slack": re.compile(r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    "a key of Google": re.compile(r"\bAIza[0-9A-Za-z_-]{35}\b"),
    "a key of Stripe": re.compile(r"\b[sr]k_live_[0-9A-Za-z]{20,}"),
    "a signed token": re.compile(r"(?<=[A-Za-z0-9_-]{10}\.)(?P<secret>eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})"),
    "a password in an address": re.compile(r"(?<=[a-z0-9+.-])://[^\s/:@]+:(?P<secret>[^\s/@]{4,})@"),
    "a password": re.compile(
        r"(?i)(?:passw(?:or)?d|secret|api[_-]?key|access[_-]?token|auth[_-]?token)(?>[\w.-]{0,100})['\"]?"
        r"(?>\s{0,100})[:=]\s{0,100}(?P<quote>['\"])(?P<secret>[^'\"\s]{8,})(?P=quote)"
    ),
}
# placeholders that stand where a secret would
PLACEHOLDER = re.compile(
    r"(?i)^(?:\$|%|\{|<|env:|file:|os\.)|example|changeme|placeholder|dummy|redacted|your[_-]|^[x*.]+$|^(?:test|secret|password)\w*$"
)
SHOWN = 4  # characters of a secret
WINDOW = 20_000  # characters of a line that are looked at at once: nothing else can run meanwhile
OVERLAP = 5_000  # of two windows: a secret up to this length stands in one of them as a whole


class FoundSecret(NamedTuple):
    """Where a secret stands, and what it is; the secret itself is told to nobody."""

    line: int
    kind: str
    hint: str


def find_secrets(text: str) -> Iterator[FoundSecret]:
    for number, line in enumerate(text.splitlines(), 1):
        found = next(_find_in_line(line), None)
        if found is not None:
            kind, secret = found
            yield FoundSecret(number, kind, f"{secret[:SHOWN]}… ({len(secret)} characters)")


def _find_in_line(line: str) -> Iterator[tuple[str, str]]:
    """The secrets of a line, with what they are."""
    for kind, shape in SHAPES.items():
        for start in range(0, max(1, len(line) - OVERLAP), WINDOW - OVERLAP):
            for found in shape.finditer(line, start, start + WINDOW):
                secret = found.groupdict().get("secret") or found[0]
                if not PLACEHOLDER.search(secret):
                    yield kind, secret


def hides_secret(text: str) -> str | None:
    """What kind of secret a text has in it, if any."""
    return next((one.kind for one in find_secrets(text)), None)
