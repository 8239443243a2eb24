"""The letters that links send themselves."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True)
class FetchLink:
    """Fetch a link that is safe, and hand what is there to documents."""

    kind: ClassVar[str] = "links.fetch"
    link: int


@dataclass(frozen=True)
class ReviewLinks:
    """A rule has changed: decide anew about the links of its domain, a portion at a time."""

    kind: ClassVar[str] = "links.review"
    scope: int
    domain: str
    after: int = 0
