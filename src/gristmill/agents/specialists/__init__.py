"""Specialists: agents for one kind of work each, with the fewest tools that it needs and rules for its results."""

from gristmill.agents.specialists.model import Check, Specialist
from gristmill.agents.specialists.registry import GENERAL, SPECIALISTS, TIERS, check_agents

__all__ = ["GENERAL", "SPECIALISTS", "TIERS", "Check", "Specialist", "check_agents"]
