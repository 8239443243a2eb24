"""The letters of agents: carry a run on, and tidy up behind runs."""

from dataclasses import dataclass
from typing import ClassVar

from gristmill.ids import RunId

SERIAL_KEY = "run"  # serial keys hold within a scope: one run at a time in a project, many across
BACKGROUND_KEY = "run in background"  # its own line: a background run that waits for silence blocks no other


@dataclass(frozen=True)
class RunAgent:
    """Carry a run on, from its beginning or from where it stopped."""

    kind: ClassVar[str] = "agents.run"
    run: RunId


@dataclass(frozen=True)
class TidyRuns:
    """Settle runs whose task ended without them, ask about effects that nobody settled, remove old workspaces."""

    kind: ClassVar[str] = "agents.tidy"
