"""The things that reading a file gives back: what the file is, its parts, the text of a page."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple

Type = Literal[
    "pdf", "image", "docx", "pptx", "xlsx", "html", "mail", "mailbox", "markdown", "text", "csv", "transcript"
]
Method = Literal["text", "ocr", "copied", "blank"]

SILENCES: dict[Method, str] = {"ocr": "nothing could be read in the picture", "blank": "the page is blank"}


@dataclass(frozen=True)
class Part:
    """A file within a file: an attachment, a message of a mailbox."""

    name: str
    data: bytes
    suffix: str  # of the container's URN: "attachment=2", "message=17"
    refusal: str = ""  # the reason, if its bytes could not be unpacked


class Shunned(NamedTuple):
    """A part at which a reading process died: it is not touched again."""

    place: int
    why: str


@dataclass(frozen=True)
class Bookmark:
    """How far a container was opened before."""

    parts: int = 0
    bytes: int = 0  # of these parts together
    missing: int = 0  # how many of these parts could not be unpacked
    shunned: Shunned | None = None  # the next part, if the process that unpacked it died

    def move_behind(self, parts: Iterable[Part]) -> "Bookmark":
        """The bookmark for the next portion, when these parts are known as well."""
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
    """What a file is, before any of its pages is read."""

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
    """One page in Markdown, and the method by which it was read."""

    text: str
    method: Method
    words: bytes = b""  # of a page that was read from its picture: where its words stand, as `places` packs them

    @property
    def silence(self) -> str | None:
        """The reason why the page has no text, or None if it has: a page must not be lost without a word."""
        return None if self.text.strip() else SILENCES.get(self.method, "there is no text on the page")

    def find_skip_reason(self, type: str | None) -> str | None:
        """Why reading this page counts as skipped; None if it was read."""
        if self.silence or self.method != "copied":
            return self.silence
        return f"{type} carries its text and needs no reading"


@dataclass(frozen=True)
class ReadAhead:
    """A small file that was opened and read as a whole before it is taken in: no task is needed for that."""

    seen: Inspection  # without parts
    pages: tuple[PageText, ...]
    keys: tuple[bytes, ...]  # of each page: what it was derived from
