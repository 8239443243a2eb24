"""Links: found in mails, issues and pages, decided about, and fetched only if they are safe."""

from gristmill.sources.link.converting import convert_apart
from gristmill.sources.link.extracting import extract_links
from gristmill.sources.link.model import STATES, Effect, FoundLink, Link, LinkDecision, LinkId, LinkPlace, State
from gristmill.sources.link.noting import LinkedDocument, NotedLinks, note_links
from gristmill.sources.link.rules import ShownRule, list_rules, read_pattern, remove_rule, set_rule
from gristmill.sources.link.store import (
    count_waiting_links,
    decide_one,
    explain_url,
    find_link,
    list_links,
    list_places,
    load_link,
    refresh_one,
)

__all__ = [
    "STATES",
    "Effect",
    "FoundLink",
    "Link",
    "LinkDecision",
    "LinkId",
    "LinkPlace",
    "LinkedDocument",
    "NotedLinks",
    "ShownRule",
    "State",
    "convert_apart",
    "count_waiting_links",
    "decide_one",
    "explain_url",
    "extract_links",
    "find_link",
    "list_links",
    "list_places",
    "list_rules",
    "load_link",
    "note_links",
    "read_pattern",
    "refresh_one",
    "remove_rule",
    "set_rule",
]
