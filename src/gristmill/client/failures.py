"""What can go wrong with a call, and whether it is worth another try.

GristmillClientError
├── ApiError       the server refused: `status`, and `sentence` says what is wrong and what to do
└── NotAnswering   the server cannot be reached, or did not answer in time
"""

import random
from collections.abc import Mapping
from typing import Any, cast

import msgspec

ATTEMPTS = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 60.0  # seconds
BUSY = (429, 503)


class GristmillClientError(Exception):
    """The base of both; the text is one sentence for a person."""


class ApiError(GristmillClientError):
    """The server refused a call."""

    def __init__(self, status: int, sentence: str, problem: Mapping[str, Any] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.problem = dict(problem or {})


class NotAnswering(GristmillClientError):
    """The server does not answer."""


def read_problem(status: int, body: bytes) -> ApiError:
    """The problem that an answer carries; whatever stands between us and the server may answer in another shape."""
    try:
        problem = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        problem = None
    if isinstance(problem, dict):
        known = cast(dict[str, Any], problem)
        return ApiError(status, str(known.get("detail") or known.get("title") or f"HTTP {status}"), known)
    return ApiError(status, f"The server answered with HTTP {status} and no reason.")


def choose_pause(attempt: int, retry_after: str | None) -> float:
    """Seconds until the next attempt: what the server says, else longer each time, and never the same for all."""
    if retry_after and retry_after.isdecimal():
        return min(float(retry_after), LONGEST_PAUSE)
    return min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE) * random.uniform(0.5, 1.0)
