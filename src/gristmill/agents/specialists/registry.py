"""All specialists by their names and tiers, and the general agent."""

from collections.abc import Iterable

from gristmill.agents.specialists import (
    administrative,
    calendar,
    code_review,
    coding,
    communication,
    devops,
    documentation,
    email,
    financial,
    general,
    git,
    issue_tracker,
    learning,
    legal,
    personal,
    project_management,
    research,
    security,
    test,
    wiki,
)
from gristmill.agents.specialists.model import Specialist
from gristmill.errors import Refused

TIERS: dict[str, tuple[Specialist, ...]] = {
    "core": (coding.SPECIALIST, git.SPECIALIST, code_review.SPECIALIST, test.SPECIALIST, research.SPECIALIST),
    "devops_and_projects": (
        issue_tracker.SPECIALIST,
        wiki.SPECIALIST,
        documentation.SPECIALIST,
        devops.SPECIALIST,
        project_management.SPECIALIST,
        security.SPECIALIST,
    ),
    "communication": (
        communication.SPECIALIST,
        email.SPECIALIST,
        calendar.SPECIALIST,
        administrative.SPECIALIST,
    ),
    "business": (legal.SPECIALIST, financial.SPECIALIST, personal.SPECIALIST, learning.SPECIALIST),
}
SPECIALISTS: dict[str, Specialist] = {one.name: one for tier in TIERS.values() for one in tier}
GENERAL = general.SPECIALIST


def check_agents(names: Iterable[str]) -> None:
    """Refused, if one of these is no agent."""
    for name in names:
        if name not in SPECIALISTS and name != GENERAL.name:
            raise Refused(f"There is no agent “{name[:80]}”: choose one of general, {', '.join(SPECIALISTS)}.")
