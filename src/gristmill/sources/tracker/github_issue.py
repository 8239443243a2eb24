"""What an issue or pull request of GitHub is to the indexer."""

from collections.abc import Iterator
from typing import Any

import orjson

from gristmill.errors import Permanent
from gristmill.sources.model import Description, Fetched
from gristmill.sources.tracker.attached import describe_file, is_file
from gristmill.sources.tracker.issue import Comment, Issue, IssueChange, Person, describe_issue, read_person
from gristmill.sources.values import read_name, read_text, read_thing, read_things

NAMED = {  # what an event changed: the words for it, and where its name stands
    "labeled": ("added the label", "label", "name"),
    "unlabeled": ("removed the label", "label", "name"),
    "assigned": ("assigned", "assignee", "login"),
    "unassigned": ("unassigned", "assignee", "login"),
    "milestoned": ("added to the milestone", "milestone", "title"),
    "demilestoned": ("removed from the milestone", "milestone", "title"),
    "review_requested": ("asked for a review by", "requested_reviewer", "login"),
}
PLAIN = frozenset({"closed", "reopened", "merged", "locked", "unlocked", "converted_to_draft", "ready_for_review"})


def describe_github(item: Fetched) -> Description:
    if is_file(item.external):
        return describe_file(item, "github")
    return describe_issue(read_github(item.content, item.external))


def read_github(content: bytes, key: str) -> Issue:
    whole: Any = orjson.loads(content)
    issue, pull = whole["issue"], whole["pull"]
    title = issue["title"]
    if not isinstance(title, str):
        raise Permanent("It has no title.")
    timeline = read_things(whole["timeline"])
    return Issue(
        key=key,
        urn=f"github::{key}",
        title=title,
        project=key.rpartition("#")[0],
        text=read_text(issue.get("body")),
        author=_read_person(issue.get("user")),
        assignees=[one for one in map(_read_person, read_things(issue.get("assignees"))) if one],
        labels=[read_name(one, "name") for one in read_things(issue.get("labels"))],
        facts=_read_facts(issue),
        comments=sorted([*_read_comments(timeline), *_read_remarks(whole["comments"])], key=lambda one: one.at),
        changes=list(_read_changes(timeline)),
        relations=list(_read_relations(timeline)),
        commits=list(_read_commits(timeline, pull)),
        branches=[name for name in (read_name(pull.get(end), "ref") for end in ("head", "base")) if name],
        created=read_text(issue.get("created_at")),
        updated=read_text(issue.get("updated_at")),
        url=read_text(issue.get("html_url")),
    )


def _read_person(value: Any) -> Person | None:
    return read_person(value, "login", "name")


def _read_facts(issue: dict[str, Any]) -> dict[str, str]:
    request = read_thing(issue.get("pull_request"))
    state = "merged" if request.get("merged_at") else read_text(issue.get("state"))
    reason = read_text(issue.get("state_reason"))
    return {
        "Type": "pull request" if request else "issue",
        "Status": f"{state} ({reason.replace('_', ' ')})" if reason and state == "closed" else state,
        "Milestone": read_name(issue.get("milestone"), "title"),
    }


def _read_comments(timeline: list[dict[str, Any]]) -> Iterator[Comment]:
    for one in timeline:
        author, text = _read_person(one.get("user")) or _read_person(one.get("actor")), read_text(one.get("body"))
        if one.get("event") == "commented":
            yield Comment(author, read_text(one.get("created_at")), text)
        elif one.get("event") == "reviewed" and text.strip():
            state = read_text(one.get("state")).replace("_", " ").lower()
            yield Comment(author, read_text(one.get("submitted_at")), text, f"a review ({state})")


def _read_remarks(comments: Any) -> Iterator[Comment]:
    """What reviewers said about lines of files."""
    for one in read_things(comments):
        line = one.get("line") or one.get("original_line")
        place = read_text(one.get("path")) + (f":{line}" if line else "")
        author = _read_person(one.get("user"))
        yield Comment(author, read_text(one.get("created_at")), read_text(one.get("body")), place)


def _read_changes(timeline: list[dict[str, Any]]) -> Iterator[IssueChange]:
    for one in timeline:
        author, at = _read_person(one.get("actor")), read_text(one.get("created_at"))
        event = read_text(one.get("event"))
        if event in PLAIN:
            yield IssueChange(author, at, event.replace("_", " "))
        elif event in NAMED:
            words, thing, name = NAMED[event]
            yield IssueChange(author, at, f"{words} {read_name(one.get(thing), name)}")
        elif event == "renamed":
            before, after = (read_name(one.get("rename"), end) for end in ("from", "to"))
            yield IssueChange(author, at, f"renamed: {before} → {after}")
        elif event == "reviewed" and read_text(one.get("state")) != "commented":
            state = read_text(one.get("state")).replace("_", " ").lower()
            yield IssueChange(_read_person(one.get("user")), read_text(one.get("submitted_at")), f"review: {state}")


def _read_relations(timeline: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    for one in timeline:
        if one.get("event") == "cross-referenced":
            issue = read_thing(read_thing(one.get("source")).get("issue"))
            if repository := read_name(issue.get("repository"), "full_name"):
                yield "MENTIONED_IN", f"{repository}#{issue.get('number')}"


def _read_commits(timeline: list[dict[str, Any]], pull: dict[str, Any]) -> Iterator[str]:
    for one in timeline:
        name = "sha" if one.get("event") == "committed" else "commit_id"
        if found := read_text(one.get(name)):
            yield found
    if pull.get("merged") and (found := read_text(pull.get("merge_commit_sha"))):
        yield found
