"""What a command asks of the local service, and what it is answered: JSON on a Unix socket."""

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

import msgspec

from gristmill.knowledge import Hit, Hits
from gristmill.scopes import Scope
from gristmill.settings import Settings

SEARCH = "/search"
ASK = "/ask"


@dataclass(frozen=True)
class SearchRequest:
    """A search with all its options; `target` says which database and model are meant."""

    target: str
    query: str
    client: str | None = None  # None: everything, of all clients
    project: str = ""
    alpha: float = 0.5
    limit: int = 10
    type: str | None = None
    after: datetime | None = None
    columns: dict[str, str] | None = None
    expand: int = 0

    @property
    def scope(self) -> Scope | None:
        return read_scope(self.client, self.project)


@dataclass(frozen=True)
class AskRequest:
    """A question; `conversation` is the number of one, or True for a new one."""

    target: str
    question: str
    client: str | None = None  # None: everything, of all clients
    project: str = ""
    conversation: int | bool | None = None

    @property
    def scope(self) -> Scope | None:
        return read_scope(self.client, self.project)


@dataclass(frozen=True)
class SearchAnswer:
    """The hits with all their fields."""

    hits: list[Hit]
    note: str | None = None


@dataclass(frozen=True)
class LocalRefusal:
    """The sentence for the person who asked."""

    refused: str


class NamedScope(TypedDict):
    """A scope in a request; no client is everything."""

    client: str | None
    project: str


def name_scope(scope: Scope | None) -> NamedScope:
    return {"client": None, "project": ""} if scope is None else {"client": scope.client, "project": scope.project}


def read_scope(client: str | None, project: str) -> Scope | None:
    return None if client is None else Scope(client, project)


def identify_target(settings: Settings) -> str:
    """A digest of the settings that decide what a search finds.

    A command with other settings of these may use the same data folder: the service must not answer it.
    """
    parts = (
        str(settings.data.resolve()),
        settings.database_url,
        settings.embedding.model_dump_json(),
        settings.knowledge.model_dump_json(),
        settings.llm.model_dump_json(),
        settings.ask.model_dump_json(),
        settings.row_security,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def encode_hits(hits: Hits) -> bytes:
    return msgspec.json.encode(SearchAnswer(hits, hits.note))


def decode_hits(body: bytes) -> Hits:
    answer = msgspec.json.decode(body, type=SearchAnswer)
    hits = Hits(answer.hits)
    hits.note = answer.note
    return hits
