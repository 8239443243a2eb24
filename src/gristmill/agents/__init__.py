"""Agents: questions are answered with citations; what was asked for is done in steps, once, and only when allowed."""

from gristmill.agents.ask.answering import Answerer, Past
from gristmill.agents.ask.model import Answer, Citation, Draft, Ended, Event, Found, Passage, Said, Sentence
from gristmill.agents.ask.service import AskService
from gristmill.agents.ask.streams import ask_in_conversation, stream_answer
from gristmill.agents.ask.talking import Speaker, Talker
from gristmill.agents.effects import EffectRow, answer_question, list_effects, list_newest_effects, load_effect
from gristmill.agents.mcp.stdio import serve_stdio
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
    "Answer",
    "Answerer",
    "AskService",
    "Citation",
    "Draft",
    "EffectRow",
    "Ended",
    "Event",
    "Found",
    "Passage",
    "Past",
    "Policy",
    "Question",
    "Run",
    "RunState",
    "Said",
    "Sentence",
    "Speaker",
    "Started",
    "Talker",
    "answer_question",
    "ask_in_conversation",
    "drop_policy",
    "end_run",
    "find_policy",
    "list_effects",
    "list_newest_effects",
    "list_questions",
    "list_runs",
    "load_effect",
    "load_policy",
    "load_question",
    "load_run",
    "serve_stdio",
    "set_policy",
    "start_run",
    "stream_answer",
]
