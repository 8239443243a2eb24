"""Why a task waits, for people: the sentence with a link in each noun, and what would let the task go."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote

from markupsafe import Markup

from gristmill.queue import Why
from gristmill.serving import Caller

PIECES = re.compile(
    r"\btask (?P<task>\d+)"
    r"|\((?P<failing>\d+(?:, \d+)*)(?P<rest>, …)?\)"
    r"|(?P<moment>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?[+-]\d\d:\d\d)"
    r"|(?P<command>gristmill (?:worker --queues|queue resume) \S+)"
    r"|behind (?P<others>(?:more than )?[\d,]+ others?)"
    r"|(?P<limit>[\d,]+ starts within \S+)"
)


@dataclass(frozen=True)
class Lever:
    """Something that would help: a button that changes something, a link, a dialog, or a command for the terminal."""

    kind: Literal["post", "link", "dialog", "command"]
    label: str
    target: str
    icon: str = "play"
    values: Mapping[str, str] = field(default_factory=dict[str, str])


def link_reason(why: Why, *, operator: bool) -> Markup:
    """The sentence with links: to tasks, to the line, to the limit, to the queue; times in the reader's own zone."""
    queue = why.facts.get("queue")
    drawn, at = Markup(""), 0
    for match in PIECES.finditer(why.sentence):
        drawn += link_queue(why.sentence[at : match.start()], queue, operator=operator)
        drawn += draw_piece(match, queue, operator=operator)
        at = match.end()
    return drawn + link_queue(why.sentence[at:], queue, operator=operator)


def draw_piece(match: re.Match[str], queue: str | None, *, operator: bool) -> Markup:
    text, name = match[0], queue or ""
    if task := match["task"]:
        return Markup('<a href="/tasks/{}">{}</a>').format(task, text)
    if failing := match["failing"]:
        links = Markup(", ").join(Markup('<a href="/tasks/{0}">{0}</a>').format(one) for one in failing.split(", "))
        return Markup("({}{})").format(links, match["rest"] or "")
    if moment := match["moment"]:
        exact = moment.replace(" ", "T", 1)
        return Markup('<time datetime="{}" data-local title="{}">{}</time>').format(exact, moment, moment[11:19])
    if command := match["command"]:
        return Markup("<code>{}</code>").format(command)
    if others := match["others"]:
        return Markup('behind <a href="/tasks?queue={}&amp;status=pending">{}</a>').format(quote(name), others)
    if operator:
        return Markup('<a href="/queues/{}/settings" data-dialog="Limits of {}">{}</a>').format(quote(name), name, text)
    return Markup("{}").format(text)


def link_queue(text: str, queue: str | None, *, operator: bool) -> Markup:
    """The name of the queue as a link, where it stands as a word of its own."""
    if not queue or not operator:
        return Markup("{}").format(text)
    pieces = re.split(rf"(?<![\w.-]){re.escape(queue)}(?![\w-]|\.\w)", text)
    link = Markup('<a href="/queues/{}">{}</a>').format(quote(queue), queue)
    return link.join(pieces)


def find_levers(why: Why, caller: Caller) -> Sequence[Lever]:
    """What this caller can do about it, the most helpful first."""
    facts, operates = why.facts, caller.is_operator and caller.has_role("admin")
    levers = [*_queue_levers(why)] if operates else []
    if caller.has_role("manager"):
        levers += _task_levers(why)
    levers += _links(why)
    if why.state in ("no worker", "suspect") and not facts.get("workers"):
        levers.append(Lever("command", "Start a worker", f"gristmill worker --queues {facts.get('queue')}"))
    return levers


def _queue_levers(why: Why) -> list[Lever]:
    queue = quote(str(why.facts.get("queue", "")))
    match why.state:
        case "paused":
            return [Lever("post", "Resume the queue", f"/queues/{queue}/resume", "play")]
        case "rate-limited":
            return [Lever("dialog", "Raise the rate", f"/queues/{queue}/settings", "edit")]
        case "at its limit":
            return [Lever("dialog", "Let more run at once", f"/queues/{queue}/settings", "edit")]
        case "breaker open":
            return [Lever("dialog", "Change the breaker", f"/queues/{queue}/settings", "edit")]
        case _:
            return []


def _task_levers(why: Why) -> list[Lever]:
    task, facts = f"/tasks/{why.id}", why.facts
    is_group = "queue" not in facts
    match why.state:
        case "dead":
            return [Lever("post", "Retry what failed" if is_group else "Retry", f"{task}/retry", "retry")]
        case "cancelled":
            return [Lever("post", "Run it after all", f"{task}/retry", "retry")]
        case "done" | "skipped" if not is_group:
            return [Lever("post", "Run it again", f"{task}/retry", "retry", {"again": "1"})]
        case "queued" | "rate-limited" | "at its limit" | "breaker open" | "paused" | "no worker":
            return [
                Lever("post", "Move it first", f"{task}/first", "first"),
                Lever("post", "Somebody waits for it", f"{task}/foreground", "up"),
                Lever("post", "Cancel", f"{task}/cancel", "cancelled"),
            ]
        case "done" | "skipped" | "completed":
            return []
        case _:
            return [Lever("post", "Cancel all" if is_group else "Cancel", f"{task}/cancel", "cancelled")]


def _links(why: Why) -> list[Lever]:
    facts: Mapping[str, Any] = why.facts
    levers: list[Lever] = []
    if why.state == "blocked" and facts.get("after"):
        levers.append(Lever("link", "Look at what it waits for", f"/tasks/{facts['after']}", "right"))
    if why.state == "in series" and facts.get("head"):
        levers.append(Lever("link", "Look at the one before", f"/tasks/{facts['head']}", "right"))
    if why.state == "dead" and facts.get("fingerprint"):
        levers.append(Lever("link", "All with this error", f"/dead?cluster={quote(facts['fingerprint'])}", "dead"))
    if why.state == "breaker open":
        levers.append(Lever("link", "Look at its errors", f"/dead?queue={quote(str(facts.get('queue')))}", "dead"))
    return levers
