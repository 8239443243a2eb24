"""Effects: everything that a run changes, written down before it acts and settled after."""

from gristmill.agents.effects.answering import answer_question
from gristmill.agents.effects.deciding import Allow, Ask, RefuseEffect, Verdict
from gristmill.agents.effects.ledger import Begun, EffectFailed, Ledger
from gristmill.agents.effects.model import (
    EFFECT_STATES,
    Changes,
    Effect,
    EffectLine,
    EffectResult,
    EffectRow,
    EffectState,
    hash_call,
)
from gristmill.agents.effects.store import (
    list_delegation_calls,
    list_effect_lines,
    list_effects,
    list_newest_effects,
    load_effect,
    question_lost_effects,
    withdraw_effects,
)

__all__ = [
    "EFFECT_STATES",
    "Allow",
    "Ask",
    "Begun",
    "Changes",
    "Effect",
    "EffectFailed",
    "EffectLine",
    "EffectResult",
    "EffectRow",
    "EffectState",
    "Ledger",
    "RefuseEffect",
    "Verdict",
    "answer_question",
    "hash_call",
    "list_delegation_calls",
    "list_effect_lines",
    "list_effects",
    "list_newest_effects",
    "load_effect",
    "question_lost_effects",
    "withdraw_effects",
]
