"""How an action answers, for the pages of web: rooms take the same names from the door of serving."""

from gristmill.serving import answer_action, is_partial, remember, stay_here

__all__ = ["answer_action", "is_partial", "remember", "stay_here"]
