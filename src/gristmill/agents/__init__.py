"""Agents: what was asked for is done in several steps, once, and only when allowed."""

from gristmill.agents.effects import EffectRow, answer_question, list_effects, load_effect
from gristmill.agents.policy import Policy, drop_policy, find_policy, load_policy, set_policy
from gristmill.agents.runs import (
    Question,
    Run,
    RunState,
    Started,
    list_questions,
    list_runs,
    load_question,
    load_run,
    start_run,
)
from gristmill.agents.stopping import end_run

__all__ = [
    "EffectRow",
    "Policy",
    "Question",
    "Run",
    "RunState",
    "Started",
    "answer_question",
    "drop_policy",
    "end_run",
    "find_policy",
    "list_effects",
    "list_questions",
    "list_runs",
    "load_effect",
    "load_policy",
    "load_question",
    "load_run",
    "set_policy",
    "start_run",
]
