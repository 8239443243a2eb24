"""An issue, whatever tracker it comes from: written as a page, and told to the graph without an LLM."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gristmill.sources.git.index import find_keys
from gristmill.sources.model import Description
from gristmill.sources.moments import read_moment, show_moment
from gristmill.sources.values import read_name

MOST_NAMED = 200  # people, labels and mentions in the graph
MOST_CHANGES = 500  # that a page shows, the last ones
LONGEST_TEXT = 1_000_000  # characters that are looked through for links and mentions
LONGEST_TITLE = 300
REFERENCE = re.compile(
    r"(?<![\w/.-])([A-Za-z0-9_][\w.-]{0,99}(?:/[\w.-]{1,100}){1,20}[#!]\d{1,9})\b"
)  # group/project#1
MERGE_REQUEST = re.compile(r"(?<![\w/!.])!(\d{1,9})\b")
COMMIT = re.compile(r"(?<![\w/-])[0-9a-f]{40}(?![\w-])")


@dataclass(frozen=True)
class Person:
    """Somebody at a tracker; few trackers tell the address."""

    name: str
    address: str = ""


@dataclass(frozen=True)
class Comment:
    """What somebody said, as Markdown."""

    author: Person | None
    at: str
    text: str
    place: str = ""  # what it is about: a file and a line, a review


@dataclass(frozen=True)
class IssueChange:
    """What somebody did to an issue."""

    author: Person | None
    at: str
    what: str


@dataclass(frozen=True)
class Issue:
    """An issue, a pull request or a merge request."""

    key: str  # PROJ-1, owner/repository#1, group/project!1
    urn: str
    title: str
    project: str
    text: str = ""  # Markdown
    author: Person | None = None
    assignees: Sequence[Person] = ()
    labels: Sequence[str] = ()
    facts: Mapping[str, str] = field(default_factory=dict[str, str])  # what the head of its page says besides
    sections: Mapping[str, str] = field(default_factory=dict[str, str])  # texts under headings of their own
    comments: Sequence[Comment] = ()
    changes: Sequence[IssueChange] = ()
    relations: Sequence[tuple[str, str]] = ()  # how it belongs to other issues: BLOCKS PROJ-2
    commits: Sequence[str] = ()
    branches: Sequence[str] = ()
    created: str = ""
    updated: str = ""
    url: str = ""  # where people look at it


def describe_issue(issue: Issue) -> Description:
    page = write_page(issue).encode()
    return Description(
        urn=issue.urn,
        type="bugtracker",
        name=f"{issue.key}.md".replace("/", "-")[:200],
        text=_gather_text(issue),
        title=f"{issue.key}: {issue.title}"[:LONGEST_TITLE],
        reading="markdown",
        content=page,
        written_at=read_moment(issue.updated) or read_moment(issue.created),
        updated_at=read_moment(issue.updated),
        metadata={"issue": _describe_graph(issue), "url": issue.url},
    )


def _gather_text(issue: Issue) -> str:
    """All that people wrote."""
    said = [one.text for one in issue.comments]
    return "\n\n".join([issue.title, issue.text, *issue.sections.values(), *said])[:LONGEST_TEXT]


# --- the page


def write_page(issue: Issue) -> str:
    """A head, what it is about, and each comment under a heading that names its author and time."""
    blocks = [f"# {issue.key}: {issue.title}", "\n".join(_write_head(issue)), issue.text.strip()]
    blocks += [f"## {name}\n\n{text.strip()}" for name, text in issue.sections.items()]
    blocks += [_write_comment(one) for one in issue.comments]
    if issue.changes:
        blocks += ["## History", "\n".join(_write_change(one) for one in issue.changes[-MOST_CHANGES:])]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _write_head(issue: Issue) -> Iterator[str]:
    facts = {
        "Project": issue.project,
        **issue.facts,
        "Reporter": _show_person(issue.author),
        "Assignees": ", ".join(map(_show_person, issue.assignees)),
        "Labels": ", ".join(issue.labels),
        "Branches": " → ".join(issue.branches),
        "Created": show_moment(issue.created),
        "Updated": show_moment(issue.updated),
        "Related": ", ".join(f"{how.replace('_', ' ').lower()} {key}" for how, key in issue.relations),
    }
    for name, value in facts.items():
        if value:
            yield f"**{name}:** {' '.join(value.split())}  "


def _write_comment(comment: Comment) -> str:
    about = f" on {comment.place}" if comment.place else ""
    head = f"## {_show_person(comment.author) or 'Somebody'}, {show_moment(comment.at)}{about}"
    return f"{head}\n\n{comment.text.strip()}"


def _write_change(change: IssueChange) -> str:
    who = _show_person(change.author)
    return f"- {show_moment(change.at)}{f', {who}' if who else ''}: {' '.join(change.what.split())}"


def _show_person(person: Person | None) -> str:
    return person.name if person else ""


# --- the graph


def _describe_graph(issue: Issue) -> dict[str, Any]:
    """Everything that the graph of an issue is made of."""
    text = _gather_text(issue)
    mentions = [one for one in find_mentions(text, issue.key, issue.project) if one != issue.key]
    return {
        "key": issue.key,
        "title": issue.title[:200],
        "project": issue.project,
        "reporter": _name_people([issue.author]),
        "assignees": _name_people(issue.assignees),
        "commenters": _name_people([one.author for one in issue.comments]),
        "labels": list(dict.fromkeys(issue.labels))[:MOST_NAMED],
        "relations": [[how, key] for how, key in issue.relations][:MOST_NAMED],
        "mentions": mentions[:MOST_NAMED],
        "commits": list(dict.fromkeys([*issue.commits, *COMMIT.findall(text)]))[:MOST_NAMED],
        "branches": list(dict.fromkeys(issue.branches)),
    }


def _name_people(people: Sequence[Person | None]) -> list[list[str]]:
    found = dict.fromkeys((one.name, one.address) for one in people if one is not None)
    return [list(one) for one in found][:MOST_NAMED]


def find_mentions(text: str, key: str, project: str) -> list[str]:
    """The issues that a text names: PROJ-1 and group/project#1 as they are, #1 and !1 as those of its own project."""
    if "#" not in key and "!" not in key:  # at Jira, #1 is a number like any other
        return list(dict.fromkeys([one for one in find_keys(text, project) if "#" not in one]))
    found = [*find_keys(text, project), *REFERENCE.findall(text)]
    return list(dict.fromkeys([*found, *(f"{project}!{one}" for one in MERGE_REQUEST.findall(text))]))


def read_person(value: Any, *keys: str) -> Person | None:
    """Somebody, by the first of these fields that holds a name."""
    name = " ".join(read_name(value, *keys).split())
    return Person(name[:200], read_name(value, "emailAddress")) if name else None
