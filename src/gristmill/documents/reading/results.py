"""What reading gives back."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

Type = Literal["pdf", "image", "docx", "pptx", "xlsx", "html", "mail", "mailbox", "markdown", "text", "csv"]
Method = Literal["text", "ocr", "copied", "blank"]

SILENCES: dict[Method, str] = {"ocr": "nothing could be read in the picture", "blank": "the page is blank"}


@dataclass(frozen=True)
class Part:
    """A file within a file: an attachment, a message of a mailbox."""

    name: str
    data: bytes
    suffix: str  # of the container's URN: "attachment=2", "message=17"
    refusal: str = ""  # why its bytes could not be had, if so


class Shunned(NamedTuple):
    """A part that ended a reader, and is not touched again."""

    place: int
    why: str


@dataclass(frozen=True)
class Bookmark:
    """How far a container was opened before."""

    parts: int = 0
    bytes: int = 0  # that those have
    missing: int = 0  # of those: parts whose bytes could not be had
    shunned: Shunned | None = None  # the next one that ended who opened it

    def behind(self, parts: Iterable[Part]) -> "Bookmark":
        """Where it is opened further when these parts are known, too."""
        known = list(parts)
        return replace(
            self,
            parts=self.parts + len(known),
            bytes=self.bytes + sum(len(part.data) for part in known),
            missing=self.missing + sum(bool(part.refusal) for part in known),
        )


BEGINNING = Bookmark()


@dataclass(frozen=True)
class Inspection:
    """What a file is, before anybody reads it."""

    type: Type
    pages: int
    title: str
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    written_at: datetime | None = None
    parts: tuple[Part, ...] = ()
    scanned: bool = False  # its pages seem to be pictures, and take long to read
    more: bool = False  # there are more parts: ask again from behind these


@dataclass(frozen=True)
class PageText:
    """One page in Markdown, and how it was come by."""

    text: str
    method: Method

    @property
    def silence(self) -> str | None:
        """Why it says nothing, if it does: nobody should have to find out that a page was lost."""
        return None if self.text.strip() else SILENCES.get(self.method, "there is no text on the page")
