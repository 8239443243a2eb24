"""Agents: questions are answered with citations; what was asked for is done in steps, once, and only when allowed."""

from gristmill.agents.ask.answering import Answerer, Past
from gristmill.agents.ask.excerpts import choose_excerpt
from gristmill.agents.ask.model import (
    KEPT_VERDICTS,
    AnswerEnded,
    CheckedAnswer,
    CheckedSentence,
    Citation,
    Draft,
    Event,
    Passage,
    PassagesFound,
    SentenceSaid,
)
from gristmill.agents.ask.service import AskService
from gristmill.agents.ask.streams import ask_in_conversation, stream_answer
from gristmill.agents.ask.talking import Speaker, Talker
from gristmill.agents.checkpoints import CheckpointSize
from gristmill.agents.delegation.model import AgentCapability
from gristmill.agents.delegation.registry import list_capabilities
from gristmill.agents.delegation.store import AgentMetrics, Delegation, list_agent_metrics, list_delegations
from gristmill.agents.effects import (
    EffectLine,
    EffectRow,
    answer_question,
    list_effects,
    list_newest_effects,
    load_effect,
)
from gristmill.agents.mcp.stdio import serve_stdio
from gristmill.agents.memory import (
    ProcedureNode,
    ProcedureStep,
    SessionEntry,
    forget_entry,
    forget_scope,
    list_entries,
    list_procedures,
    load_procedure,
    read_step,
    remove_procedure,
    state_procedure,
)
from gristmill.agents.picture import draw_run
from gristmill.agents.policy import Policy, drop_policy, find_policy, load_policy, set_policy
from gristmill.agents.runs import (
    Question,
    Run,
    RunState,
    RunWish,
    StepLine,
    WantedRuns,
    is_waiting,
    list_questions,
    list_runs,
    list_step_lines,
    load_question,
    load_run,
    start_run,
)
from gristmill.agents.showing import list_facts
from gristmill.agents.specialists import SPECIALISTS, check_agents
from gristmill.agents.starting import begin_run, has_run_worker
from gristmill.agents.step_tree import nest_steps
from gristmill.agents.stopping import end_run
from gristmill.agents.watching import RunNews, RunView, load_view, watch_run

__all__ = [
    "KEPT_VERDICTS",
    "SPECIALISTS",
    "AgentCapability",
    "AgentMetrics",
    "AnswerEnded",
    "Answerer",
    "AskService",
    "CheckedAnswer",
    "CheckedSentence",
    "CheckpointSize",
    "Citation",
    "Delegation",
    "Draft",
    "EffectLine",
    "EffectRow",
    "Event",
    "Passage",
    "PassagesFound",
    "Past",
    "Policy",
    "ProcedureNode",
    "ProcedureStep",
    "Question",
    "Run",
    "RunNews",
    "RunState",
    "RunView",
    "RunWish",
    "SentenceSaid",
    "SessionEntry",
    "Speaker",
    "StepLine",
    "Talker",
    "WantedRuns",
    "answer_question",
    "ask_in_conversation",
    "begin_run",
    "check_agents",
    "choose_excerpt",
    "draw_run",
    "drop_policy",
    "end_run",
    "find_policy",
    "forget_entry",
    "forget_scope",
    "has_run_worker",
    "is_waiting",
    "list_agent_metrics",
    "list_capabilities",
    "list_delegations",
    "list_effects",
    "list_entries",
    "list_facts",
    "list_newest_effects",
    "list_procedures",
    "list_questions",
    "list_runs",
    "list_step_lines",
    "load_effect",
    "load_policy",
    "load_procedure",
    "load_question",
    "load_run",
    "load_view",
    "nest_steps",
    "read_step",
    "remove_procedure",
    "serve_stdio",
    "set_policy",
    "start_run",
    "state_procedure",
    "stream_answer",
    "watch_run",
]
