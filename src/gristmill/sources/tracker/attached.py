"""A file that hangs on an issue: an item of its own, which comes with the issue and goes with it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from urllib.parse import unquote

from gristmill.sources.bringing import refuse_large
from gristmill.sources.http import Provider
from gristmill.sources.model import Description, Fetched, RawItem
from gristmill.sources.moments import read_moment

BESIDE = "/attachment/"  # between the id of an issue and that of its file
MOST_FILES = 100  # of the text of one issue
LINKED = "1"  # the mark of a file that a text links to: what lies under such an address never changes


@dataclass(frozen=True)
class IssueFile:
    """A file of an issue, as the tracker tells it."""

    id: str
    name: str
    issue: str  # the key
    project: str
    author: str = ""
    created: str = ""
    size: int = 0
    place: str = ""  # where its bytes are

    async def bring(self, provider: Provider, external: str, mark: str, max_bytes: int) -> RawItem | None:
        """The attachment with its bytes; None if they are gone."""
        note: dict[str, object] = {name: value for name, value in vars(self).items() if name not in ("size", "place")}
        if self.size > max_bytes:
            return refuse_large(external, self.size, max_bytes, note, mark)
        content = await provider.download(self.place)
        return None if content is None else RawItem(external, content, mark, note)


def find_linked(text: str, pattern: re.Pattern[str], external: str, project: str) -> dict[str, IssueFile]:
    """The files that were put into the text of an issue, by the ids that they have as items."""
    places = dict.fromkeys(found[0].rstrip(".,") for found in islice(pattern.finditer(text), MOST_FILES))
    files: dict[str, IssueFile] = {}
    for place in filter(stays_below, places):
        id_ = sha256(place.encode()).hexdigest()[:16]
        name = unquote(place.rpartition("/")[2])
        files[f"{external}{BESIDE}{id_}"] = IssueFile(id_, name, external, project, place=place)
    return files


def stays_below(place: str) -> bool:
    """Whether an address stays below the folder that it begins with.

    A stranger writes it, and we ask with our key: `/uploads/…/../../..` would lead to what only the key may see.
    """
    parts = [unquote(part) for part in place.split("/")]
    return bool(parts[-1]) and not any(part in (".", "..") or set(part) & {"/", "\\", "%"} for part in parts)


def is_file(external: str) -> bool:
    return BESIDE in external


def describe_file(item: Fetched, provider: str) -> Description:
    """A file is read as what it is; its note says which issue it belongs to."""
    note: Mapping[str, object] = item.note
    return Description(
        urn=f"{provider}::{note['issue']}::{note['id']}",
        type="bugtracker",
        name=str(note["name"]).replace("/", "-")[:200] or "attachment",
        text="",
        written_at=read_moment(note["created"]),
        metadata={"attachment": dict(note)},
    )
