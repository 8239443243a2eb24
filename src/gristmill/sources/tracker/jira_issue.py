"""What an issue of Jira is to the indexer, whether it comes from the Cloud or from a server of your own."""

import re
from collections.abc import Iterator
from typing import Any, cast

import orjson

from gristmill.errors import Permanent
from gristmill.sources.html import convert_html
from gristmill.sources.model import Description, Fetched
from gristmill.sources.tracker.adf import convert_adf
from gristmill.sources.tracker.attached import describe_file, is_file
from gristmill.sources.tracker.issue import Comment, Issue, IssueChange, Person, describe_issue, read_person
from gristmill.sources.values import read_name, read_text, read_texts, read_thing, read_things

FACTS = {
    "Type": "issuetype",
    "Status": "status",
    "Resolution": "resolution",
    "Priority": "priority",
}
SPRINT = re.compile(r"@[0-9a-f]+\[.*?\bname=([^,\]]{1,200})")
LONGEST_FACT = 200  # characters
MOST_VALUES = 100  # of one field
LISTED_FACTS = {"Components": "components", "Affected versions": "versions", "Fix versions": "fixVersions"}


def describe_jira(item: Fetched) -> Description:
    if is_file(item.external):
        return describe_file(item, "jira")
    return describe_issue(read_jira(item.content, str(item.note.get("url", ""))))


def read_jira(content: bytes, url: str = "") -> Issue:
    issue = read_thing(orjson.loads(content))
    fields, rendered, key = read_thing(issue.get("fields")), read_thing(issue.get("renderedFields")), issue["key"]
    if not isinstance(key, str) or not isinstance(fields["summary"], str):
        raise Permanent("It has no key or no summary.")
    own = _read_own_fields(issue, fields, rendered)
    return Issue(
        key=key,
        urn=f"jira::{key}",
        title=fields["summary"],
        project=read_name(fields.get("project"), "key") or key.rpartition("-")[0],
        text=_read_body(fields.get("description"), rendered.get("description")),
        author=_read_person(fields.get("reporter")) or _read_person(fields.get("creator")),
        assignees=[one for one in [_read_person(fields.get("assignee"))] if one],
        labels=read_texts(fields.get("labels")),
        facts=_read_facts(fields, rendered) | {name: text for name, text in own.items() if is_short(text)},
        sections={name: text for name, text in own.items() if not is_short(text)},
        comments=list(_read_comments(fields, rendered)),
        changes=list(_read_changes(issue.get("changelog"))),
        relations=list(_read_relations(fields)),
        created=read_text(fields.get("created")),
        updated=read_text(fields.get("updated")),
        url=url,
    )


def _read_person(value: Any) -> Person | None:
    return read_person(value, "displayName", "name", "accountId")


def _read_body(raw: Any, html: Any) -> str:
    """Markdown of a text: a server renders its own markup as HTML, the Cloud gives a tree."""
    if isinstance(html, str) and html.strip():
        return convert_html(html)
    return convert_adf(raw)


def _read_facts(fields: dict[str, Any], rendered: dict[str, Any]) -> dict[str, str]:
    facts = {title: read_name(fields.get(name), "name") for title, name in FACTS.items()}
    for title, name in LISTED_FACTS.items():
        facts[title] = ", ".join(read_name(one, "name") for one in read_things(fields.get(name)))
    facts["Due"] = read_text(fields.get("duedate"))
    facts["Environment"] = _read_body(fields.get("environment"), rendered.get("environment"))
    return facts


def _read_own_fields(issue: dict[str, Any], fields: dict[str, Any], rendered: dict[str, Any]) -> dict[str, str]:
    """What the fields say that people added to their Jira, by the names that they gave them."""
    names = read_thing(issue.get("names")).items()
    found = {read_text(name): read_own_value(fields.get(id_), rendered.get(id_)) for id_, name in names}
    return {name: text for name, text in found.items() if name and text}


def read_own_value(value: Any, html: Any = None) -> str:
    """A text, number, date, person or choice, or several of them; what nobody could read is left out."""
    if isinstance(html, str) and html.strip():
        return convert_html(html).strip()
    match value:
        case bool():
            return "yes" if value else "no"
        case int() | float():
            return f"{value:g}"
        case str():
            found = SPRINT.search(value)  # a server writes its sprints as Java shows them
            return found[1] if found else value.strip()
        case list():
            return ", ".join(filter(None, map(read_own_value, cast(list[Any], value)[:MOST_VALUES])))
        case dict():
            return _read_own_thing(cast(dict[str, Any], value))
        case _:
            return ""


def _read_own_thing(value: dict[str, Any]) -> str:
    if value.get("type") == "doc":
        return convert_adf(value).strip()
    name = read_name(value, "value", "displayName", "name", "title", "key")
    below = read_own_value(value.get("child")) if "child" in value else ""  # the second of two choices
    return f"{name} / {below}" if name and below else name


def is_short(text: str) -> bool:
    """Whether it stands in the head of a page; a longer text has a heading of its own."""
    return len(text) <= LONGEST_FACT and "\n" not in text


def _read_comments(fields: dict[str, Any], rendered: dict[str, Any]) -> Iterator[Comment]:
    shown = {one.get("id"): one.get("body") for one in _list(rendered.get("comment"), "comments")}
    for one in _list(fields.get("comment"), "comments"):
        html = one.get("renderedBody") or shown.get(one.get("id"))
        yield Comment(_read_person(one.get("author")), read_text(one.get("created")), _read_body(one.get("body"), html))


def _list(page: Any, key: str) -> list[dict[str, Any]]:
    return read_things(read_thing(page).get(key))


def _read_changes(log: Any) -> Iterator[IssueChange]:
    """In the order in which they happened; Jira tells the last one first."""
    histories = sorted(_list(log, "histories"), key=lambda one: read_text(one.get("created")))
    for one in histories:
        for item in read_things(one.get("items")):
            before, after = (read_text(item.get(name))[:200] or "–" for name in ("fromString", "toString"))
            what = f"{read_text(item.get('field'))}: {before} → {after}"
            yield IssueChange(_read_person(one.get("author")), read_text(one.get("created")), what)


def _read_relations(fields: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if parent := read_name(fields.get("parent"), "key"):
        yield "CHILD_OF", parent
    for one in read_things(fields.get("issuelinks")):
        for way, side in (("outward", "outwardIssue"), ("inward", "inwardIssue")):
            if other := read_name(one.get(side), "key"):
                yield read_name(one.get("type"), way) or "RELATED_TO", other
    for one in read_things(fields.get("subtasks")):
        if other := read_name(one, "key"):
            yield "PARENT_OF", other
