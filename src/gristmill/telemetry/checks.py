"""One thing that the doctor looked at, and what it means."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """A judgement in one sentence; `advice` says what to do about it."""

    name: str
    verdict: Verdict
    sentence: str
    advice: str = ""
