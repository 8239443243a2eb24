"""What reading gives back."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Type = Literal["pdf", "image", "docx", "pptx", "xlsx", "html", "mail", "mailbox", "markdown", "text", "csv"]
Method = Literal["text", "ocr", "copied", "blank"]

SILENCES: dict[Method, str] = {"ocr": "nothing could be read in the picture", "blank": "the page is blank"}


@dataclass(frozen=True)
class Part:
    """A file within a file: an attachment, a message of a mailbox."""

    name: str
    data: bytes
    suffix: str  # of the container's URN: "attachment=2", "message=17"


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
    more: bool = False  # there are more parts: ask again with offset + len(parts)


@dataclass(frozen=True)
class PageText:
    """One page in Markdown, and how it was come by."""

    text: str
    method: Method

    @property
    def silence(self) -> str | None:
        """Why it says nothing, if it does: nobody should have to find out that a page was lost."""
        return None if self.text.strip() else SILENCES.get(self.method, "there is no text on the page")
