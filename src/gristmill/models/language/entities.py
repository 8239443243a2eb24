"""The result of an extraction: the entities that a passage names, and the relations between them."""

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Namespaces where a different case may be a different thing.
CASED = frozenset({"id", "url", "email", "amount", "iban", "file", "branch", "commit", "issue", "wiki", "meeting"})
LONGEST = 300  # characters of a key: an index cannot hold much longer ones


def make_entity_key(namespace: str, name: str) -> str:
    """`namespace::name`, the same for every spelling of a name; empty if no letter of the name is left."""
    namespace = "_".join(_clean_text(namespace).casefold().split())
    name = _clean_text(name)
    while name.casefold().startswith(f"{namespace}::"):  # Person::person::Jane
        name = name[len(namespace) + 2 :].strip()
    if namespace not in CASED:
        name = name.casefold()
    return _shorten_key(f"{namespace}::{name}") if namespace and name else ""


def _shorten_key(key: str) -> str:
    """The beginning of a long key and a digest of all of it: two long links may differ at their end only."""
    if len(key) <= LONGEST:
        return key
    # no ellipsis before the digest: NFKC would turn it into full stops, and the key of a key must be the same key
    return key[: LONGEST - 17].rstrip() + "~" + hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()[:16]


def _clean_text(text: str) -> str:
    text = unicodedata.normalize("NFKC", text)
    return " ".join("".join(" " if unicodedata.category(one)[0] == "C" else one for one in text).split())


@dataclass(frozen=True, slots=True)
class TextPassage:
    """A chunk of text and its place in the document; only the first chunk has the `context` of the document."""

    text: str
    heading: str = ""
    kind: str = "prose"
    language: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Entity:
    """A thing that a passage names, and how often."""

    key: str
    type: str
    name: str
    count: int = 1
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Relation:
    """A statement of a passage about two of its entities, given by their keys."""

    source: str
    type: str
    target: str
    properties: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Extraction:
    """Everything that one passage adds to the graph."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    silent: bool | None = None  # True: the LLM found nothing; None: no LLM was asked
    dropped: int = 0  # how many names and quotes of the LLM are not in the text


class ExtractionBuilder:
    """Collects entities and relations, each once; a relation is kept only if both of its entities are known."""

    def __init__(self, begin: Extraction | None = None) -> None:
        begin = begin or Extraction()
        self._entities = {one.key: one for one in begin.entities}
        self._relations = {(one.source, one.type, one.target): one for one in begin.relations}

    def add_entity(self, namespace: str, name: str, *, written: str | None = None, **properties: Any) -> str:
        """Add or count an entity; return its key, or an empty text if the name has none."""
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
    """Turn `worked for` into `WORKED_FOR`."""
    return re.sub(r"\W+", "_", _clean_text(text)).strip("_").upper()[:60] or "RELATED_TO"
