"""Specialists: agents for one kind of work each, with the fewest tools that it needs and rules for its results."""

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
from gristmill.agents.specialists.model import Check, Specialist

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

__all__ = ["GENERAL", "SPECIALISTS", "TIERS", "Check", "Specialist"]
