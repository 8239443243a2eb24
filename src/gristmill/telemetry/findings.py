"""Something that a person should know of: what a rule of an alarm found."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from gristmill.ids import ScopeId
from gristmill.telemetry.checks import Check

Level = Literal["warning", "critical"]
MACHINE = ScopeId(1)  # what concerns the machines, and so everybody


@dataclass(frozen=True)
class Finding:
    """One thing that is not as it should be.

    `rule` and `subject` together name it: “queue-depth”, “ocr”. It is told when it has been so for `lasting`. The
    rule need not know since when: as long as `mark` stays the same, it is so without a break. A number that grows with
    every finished task, taken as mark, says “nothing was finished meanwhile”.
    """

    rule: str
    subject: str
    sentence: str
    advice: str = ""
    level: Level = "warning"
    scope: ScopeId = MACHINE
    lasting: timedelta = timedelta(0)
    mark: str = ""
    quiet: bool = False  # shown in the console, but sent to nobody


def find_by_check(rule: str, check: Check) -> list[Finding]:
    """What the doctor would warn of, as a finding."""
    if check.verdict == "ok":
        return []
    level: Level = "critical" if check.verdict == "fail" else "warning"
    return [Finding(rule, check.name, check.sentence, check.advice, level)]
