"""Serving: what a room needs to answer over HTTP: who calls, what the caller may do, how lists and errors look."""

from gristmill.serving.answering import answer_action, is_partial, remember, stay_here
from gristmill.serving.caller import ROLES, Administrator, Caller, Manager, Role, Viewer, require
from gristmill.serving.listing import Cursor, Listing, read_cursor, write_cursor
from gristmill.serving.parts import FILES_OF, MenuEntry, WebPart, take_files
from gristmill.serving.problems import Problem, describe_problem
from gristmill.serving.services import Render, Services, services_of
from gristmill.serving.streaming import answer_events, keep_alive, write_event

__all__ = [
    "FILES_OF",
    "ROLES",
    "Administrator",
    "Caller",
    "Cursor",
    "Listing",
    "Manager",
    "MenuEntry",
    "Problem",
    "Render",
    "Role",
    "Services",
    "Viewer",
    "WebPart",
    "answer_action",
    "answer_events",
    "describe_problem",
    "is_partial",
    "keep_alive",
    "read_cursor",
    "remember",
    "require",
    "services_of",
    "stay_here",
    "take_files",
    "write_cursor",
    "write_event",
]
