"""A file that hangs on an issue: an item of its own, which comes with the issue and goes with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from gristmill.sources.http import Provider
from gristmill.sources.mail.account import refuse_large
from gristmill.sources.model import Description, Fetched, RawItem
from gristmill.sources.moments import read_moment

BESIDE = "/attachment/"  # between the id of an issue and that of its file


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
        """With its bytes; None if they are gone."""
        note: dict[str, object] = {name: value for name, value in vars(self).items() if name not in ("size", "place")}
        if self.size > max_bytes:
            large = refuse_large(external, self.size, max_bytes, note)
            return RawItem(external, b"", mark, note, large.refusal)
        content = await provider.download(self.place)
        return None if content is None else RawItem(external, content, mark, note)


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
        digest=sha256(item.content).digest(),
    )
