"""What an issue or merge request of GitLab is to the indexer."""

from collections.abc import Iterator
from typing import Any

import orjson

from gristmill.errors import Permanent
from gristmill.sources.model import Description, Fetched
from gristmill.sources.tracker.attached import describe_file, is_file
from gristmill.sources.tracker.issue import Comment, Issue, IssueChange, Person, describe_issue, read_person
from gristmill.sources.values import read_name, read_text, read_texts, read_things


def describe_gitlab(item: Fetched) -> Description:
    if is_file(item.external):
        return describe_file(item, "gitlab")
    return describe_issue(read_gitlab(item.content, item.external))


def read_gitlab(content: bytes, external: str) -> Issue:
    whole: Any = orjson.loads(content)
    issue = whole["issue"]
    title = issue["title"]
    if not isinstance(title, str):
        raise Permanent("It has no title.")
    key = read_name(issue.get("references"), "full") or external  # a source may name its project by a number
    sign = "!" if "!" in key else "#"
    return Issue(
        key=key,
        urn=f"gitlab::{key}",
        title=title,
        project=key.rpartition(sign)[0],
        text=read_text(issue.get("description")),
        author=_read_person(issue.get("author")),
        assignees=[one for one in map(_read_person, read_things(issue.get("assignees"))) if one],
        labels=read_texts(issue.get("labels")),
        facts=_read_facts(issue, sign),
        comments=list(_read_comments(whole["notes"])),
        changes=sorted(_read_changes(whole), key=lambda one: one.at),
        commits=[one for one in (read_text(issue.get(f"{how}_commit_sha")) for how in ("merge", "squash")) if one],
        branches=[one for one in (read_text(issue.get(f"{end}_branch")) for end in ("source", "target")) if one],
        created=read_text(issue.get("created_at")),
        updated=read_text(issue.get("updated_at")),
        url=read_text(issue.get("web_url")),
    )


def _read_person(value: Any) -> Person | None:
    return read_person(value, "name", "username")


def _read_facts(issue: dict[str, Any], sign: str) -> dict[str, str]:
    return {
        "Type": "merge request" if sign == "!" else read_text(issue.get("issue_type")) or "issue",
        "Status": read_text(issue.get("state")),
        "Milestone": read_name(issue.get("milestone"), "title"),
        "Due": read_text(issue.get("due_date")),
        "Reviewers": ", ".join(read_name(one, "name", "username") for one in read_things(issue.get("reviewers"))),
    }


def _read_comments(notes: Any) -> Iterator[Comment]:
    for one in read_things(notes):
        if not one.get("system"):
            author, at = _read_person(one.get("author")), read_text(one.get("created_at"))
            yield Comment(author, at, read_text(one.get("body")), _read_place(one.get("position")))


def _read_place(position: Any) -> str:
    """The file and line of a remark in a review."""
    path = read_name(position, "new_path", "old_path")
    line = (position.get("new_line") or position.get("old_line")) if path else None
    return f"{path}:{line}" if line else path


def _read_changes(whole: dict[str, Any]) -> Iterator[IssueChange]:
    for one in read_things(whole["notes"]):
        if one.get("system"):
            yield IssueChange(
                _read_person(one.get("author")), read_text(one.get("created_at")), read_text(one.get("body"))
            )
    for one in read_things(whole["states"]):
        yield IssueChange(_read_person(one.get("user")), read_text(one.get("created_at")), read_text(one.get("state")))
    for one in read_things(whole["labels"]):
        how = "added" if one.get("action") == "add" else "removed"
        what = f"{how} the label {read_name(one.get('label'), 'name')}"
        yield IssueChange(_read_person(one.get("user")), read_text(one.get("created_at")), what)
