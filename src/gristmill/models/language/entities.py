"""What is drawn from a passage of text: who and what it names, and how they belong together."""

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

CASED = frozenset({"id", "url", "mail", "amount", "iban"})  # here a different case may be a different thing
LONGEST = 300  # characters of a key: no index would hold much longer ones


def make_entity_key(namespace: str, name: str) -> str:
    """`namespace::name`, the same for every way of writing the same thing; empty if nothing is left of the name."""
    namespace = "_".join(_clean_text(namespace).casefold().split())
    name = _clean_text(name)
    while name.casefold().startswith(f"{namespace}::"):  # Person::person::Jane
        name = name[len(namespace) + 2 :].strip()
    if namespace not in CASED:
        name = name.casefold()
    return _shorten_key(f"{namespace}::{name}") if namespace and name else ""


def _shorten_key(key: str) -> str:
    """Its beginning and a digest of the whole: links to one place may share far more than an index can hold."""
    if len(key) <= LONGEST:
        return key
    # no ellipsis: NFKC makes full stops of it, and a key that is given again must stay what it is
    return key[: LONGEST - 17].rstrip() + "~" + hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:16]


def _clean_text(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    return " ".join("".join(" " if unicodedata.category(one)[0] == "C" else one for one in text).split())


@dataclass(frozen=True, slots=True)
class Passage:
    """A chunk of text and what is known of where it stands; `context` only for the first of its document."""

    text: str
    heading: str = ""
    kind: str = "prose"
    language: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Entity:
    """A node that a passage names, `count` times."""

    key: str
    type: str
    name: str
    count: int = 1
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Relation:
    """What a passage says of two of its entities, by their keys."""

    source: str
    type: str
    target: str
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Extraction:
    """All that one passage contributes to the graph."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    silent: bool | None = None  # the LLM that was asked found nothing; None: none was asked
    dropped: int = 0  # how much it told that does not stand in the text


class ExtractionBuilder:
    """Entities and relations as they are found, each once; a relation needs both of its ends."""

    def __init__(self, known: Extraction | None = None) -> None:
        known = known or Extraction()
        self._entities = {one.key: one for one in known.entities}
        self._relations = {(one.source, one.type, one.target): one for one in known.relations}

    def add_entity(self, namespace: str, name: str, *, written: str | None = None, **properties: Any) -> str:
        """The key of what was named; empty if it has none."""
        key = make_entity_key(namespace, name)
        if not key:
            return ""
        known = self._entities.get(key)
        if known is None:
            kept = {k: v for k, v in properties.items() if v}
            self._entities[key] = Entity(key, key.partition("::")[0], _clean_text(written or name), 1, kept)
        else:
            self._entities[key] = Entity(key, known.type, known.name, known.count + 1, known.properties)
        return key

    def add_relation(self, source: str, type: str, target: str, **properties: Any) -> None:
        if source != target and source in self._entities and target in self._entities:
            type = make_relation_type(type)
            self._relations.setdefault((source, type, target), Relation(source, type, target, properties))

    def are_related(self, one: str, other: str) -> bool:
        return any({one, other} == {source, target} for source, _, target in self._relations)

    def build(self) -> Extraction:
        return Extraction(tuple(self._entities.values()), tuple(self._relations.values()))


def make_relation_type(text: str) -> str:
    """SIGNED, WORKED_FOR: capitals and underscores."""
    return re.sub(r"\W+", "_", _clean_text(text)).strip("_").upper()[:60] or "RELATED_TO"
