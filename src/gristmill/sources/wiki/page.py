"""What pages of Confluence, their files and comments are to the indexer, and what they tell to the graph."""

from typing import Any

import orjson

from gristmill.errors import Permanent
from gristmill.sources.model import Description, Fetched
from gristmill.sources.moments import read_moment, show_moment
from gristmill.sources.wiki.storage import convert_storage

LONGEST_TEXT = 1_000_000  # characters that are looked through for links
LONGEST_TITLE = 300
MOST_LABELS = 200
PAGE, ATTACHMENT = "page/", "attachment/"  # what the id of an item begins with
COMMENT, REMARK = "comment/", "remark/"  # below a page, and beside words of it


def describe_confluence(item: Fetched) -> Description:
    if item.external.startswith(ATTACHMENT):
        return _describe_file(item)
    return _describe_comment(item) if item.external.startswith((COMMENT, REMARK)) else _describe_page(item)


def _describe_page(item: Fetched) -> Description:
    page: Any = orjson.loads(item.content)
    if not isinstance(page["body"], str) or not isinstance(page["title"], str):
        raise Permanent("It has no title or no body.")
    text = convert_storage(page["body"])
    labels = [one for one in page["labels"] if isinstance(one, str)][:MOST_LABELS]
    body = _write_page(page, labels, text).encode()
    return Description(
        urn=f"confluence::{page['space']}::{page['id']}",
        type="wiki",
        name=f"{page['title']}.md".replace("/", "-")[:200],
        text=text[:LONGEST_TEXT],
        title=page["title"][:LONGEST_TITLE],
        reading="markdown",
        content=body,
        written_at=read_moment(page["modified"]),
        updated_at=read_moment(page["modified"]),
        metadata={"page": _describe_graph(page, labels), "url": page["url"]},
    )


def _write_page(page: dict[str, Any], labels: list[str], text: str) -> str:
    facts = {
        "Space": page["space"],
        "Author": page["author"],
        "Labels": ", ".join(labels),
        "Updated": ", ".join(filter(None, (show_moment(page["modified"]), page["editor"]))),
    }
    head = "\n".join(f"**{name}:** {value}  " for name, value in facts.items() if value)
    return f"# {page['title']}\n\n{head}\n\n{text}\n"


def _describe_graph(page: dict[str, Any], labels: list[str]) -> dict[str, Any]:
    """Everything that the graph of a page is made of."""
    names = ("id", "space", "parent", "parent_title", "author", "editor")
    return {name: page[name] for name in names} | {"title": page["title"][:200], "labels": labels}


def _describe_file(item: Fetched) -> Description:
    """A file is read as what it is; its note says which page it belongs to."""
    note = item.note
    return Description(
        urn=f"confluence::{note['space']}::{note['page']}::{item.external.removeprefix(ATTACHMENT)}",
        type="wiki",
        name=str(note["name"]).replace("/", "-")[:200] or "attachment",
        text="",
        written_at=read_moment(note["modified"]),
        updated_at=read_moment(note["modified"]),
        metadata={"attachment": dict(note)},
    )


def _describe_comment(item: Fetched) -> Description:
    """A comment is a document of its own: it comes, changes and goes while its page stays as it is."""
    said: Any = orjson.loads(item.content)
    if not isinstance(said["body"], str):
        raise Permanent("It has no body.")
    text = convert_storage(said["body"])
    body = _write_comment(said, text).encode()
    return Description(
        urn=f"confluence::{said['space']}::{said['page']}::{said['id']}",
        type="wiki",
        name=f"Comment on {said['page_title']}.md".replace("/", "-")[:200],
        text=text[:LONGEST_TEXT],
        title=f"Comment on {said['page_title']}"[:LONGEST_TITLE],
        reading="markdown",
        content=body,
        written_at=read_moment(said["modified"]),
        updated_at=read_moment(said["modified"]),
        metadata={"comment": {name: said[name] for name in ("id", "page", "page_title", "author")}, "url": said["url"]},
    )


def _write_comment(said: dict[str, Any], text: str) -> str:
    facts = {
        "Space": said["space"],
        "Author": said["author"],
        "Updated": show_moment(said["modified"]),
        "State": said["state"],
        "About": " ".join(said["about"].split()),
    }
    head = "\n".join(f"**{name}:** {value}  " for name, value in facts.items() if value)
    return f"# Comment on {said['page_title']}\n\n{head}\n\n{text}\n"
