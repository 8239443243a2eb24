"""The qualifier: decides what deserves work, when, and has it done."""

from gristmill.qualifier.conventions import (
    Contradiction,
    Convention,
    ConventionVersion,
    add_convention,
    change_convention,
    find_all_contradictions,
    find_contradictions_with,
    list_conventions,
    list_versions,
    load_convention,
    parse_convention,
    remove_convention,
)
from gristmill.qualifier.conventions.model import Fate
from gristmill.qualifier.decisions import load_moment
from gristmill.qualifier.explaining import Excerpt, Explanation, explain_item
from gristmill.qualifier.memory import delete_memory, load_memory, save_memory
from gristmill.qualifier.model import Item, ItemState, ItemText, Memory, Outcome, Route
from gristmill.qualifier.moving import move_item
from gristmill.qualifier.profiles import (
    Profile,
    find_identity,
    list_profiles,
    load_profiles,
    remove_profile,
    set_profile,
)
from gristmill.qualifier.replay import ReplayedOutcome, ReplayReport, ReplayWish, describe_report, replay
from gristmill.qualifier.trying import Trial, suggest_from, try_convention

__all__ = [
    "Contradiction",
    "Convention",
    "ConventionVersion",
    "Excerpt",
    "Explanation",
    "Fate",
    "Item",
    "ItemState",
    "ItemText",
    "Memory",
    "Outcome",
    "Profile",
    "ReplayReport",
    "ReplayWish",
    "ReplayedOutcome",
    "Route",
    "Trial",
    "add_convention",
    "change_convention",
    "delete_memory",
    "describe_report",
    "explain_item",
    "find_all_contradictions",
    "find_contradictions_with",
    "find_identity",
    "list_conventions",
    "list_profiles",
    "list_versions",
    "load_convention",
    "load_memory",
    "load_moment",
    "load_profiles",
    "move_item",
    "parse_convention",
    "remove_convention",
    "remove_profile",
    "replay",
    "save_memory",
    "set_profile",
    "suggest_from",
    "try_convention",
]
