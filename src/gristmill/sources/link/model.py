"""Links: addresses that were found in documents, where they were found, and what was decided."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NewType

from gristmill.ids import DocumentId, ScopeId

LinkId = NewType("LinkId", int)
Verdict = Literal["skip", "blocked", "safe", "unsafe", "uncertain"]
State = Literal["waiting", "queued", "indexed", "failed", "refused"]
Effect = Literal["allow", "deny"]
STATES: tuple[State, ...] = ("waiting", "queued", "indexed", "failed", "refused")
AFTER: dict[Verdict, State] = {
    "skip": "indexed",
    "blocked": "refused",
    "safe": "queued",
    "unsafe": "refused",
    "uncertain": "waiting",
}


@dataclass(frozen=True)
class FoundLink:
    """An address in a text: `url` is its canonical spelling, `label` the text that people click on."""

    url: str
    label: str
    context: str  # the text around, the address included
    leading: str = ""  # the words right before it, on its line


@dataclass(frozen=True)
class LinkRule:
    """What somebody decided for a domain with its subdomains, or for a part of it."""

    id: int
    effect: Effect
    domain: str
    path: str  # a beginning of the path; empty: all of the domain
    nearness: int = 0  # 0 of everybody, 1 of the client, 2 of the project

    @property
    def pattern(self) -> str:
        return self.domain + self.path


@dataclass(frozen=True)
class LinkDecision:
    """A verdict with its reason in one sentence."""

    verdict: Verdict
    reason: str
    rule: int | None = None

    @property
    def state(self) -> State:
        return AFTER[self.verdict]


@dataclass(frozen=True)
class Link:
    """A link as people see it."""

    id: LinkId
    client: str
    project: str
    url: str
    host: str
    verdict: Verdict
    reason: str
    state: State
    decided_by: str | None
    decided_at: datetime
    label: str
    context: str
    places: int
    document: DocumentId | None
    task: int | None
    fetched_at: datetime | None
    error: str | None
    first_at: datetime


@dataclass(frozen=True)
class LinkPlace:
    """Where a link was found: the edge `found_in`."""

    urn: str
    document: DocumentId | None
    name: str | None
    label: str
    context: str
    at: datetime


@dataclass(frozen=True)
class Fetchable:
    """What the fetcher needs to know of a link."""

    id: LinkId
    scope: ScopeId
    client: str
    project: str
    url: str
    hash: bytes
    etag: str | None
    last_modified: str | None
