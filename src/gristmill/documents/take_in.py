"""The one way in: everything that becomes a document is taken in here, inside the transaction of the caller."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

import orjson

from gristmill.db import Tx
from gristmill.documents import blobs, store, written
from gristmill.documents.blobs import Staged
from gristmill.documents.model import Document
from gristmill.documents.progress import list_failures, load_progress
from gristmill.documents.reading import TYPES, Part, ReadAhead
from gristmill.documents.store import SQL, Latest, Version
from gristmill.documents.urgency import ORDINARY, Urgency
from gristmill.documents.written import Searchable
from gristmill.errors import Permanent, Refused, Unknown
from gristmill.ids import DocumentId, ScopeId
from gristmill.scopes import GLOBAL, Scope, scope_id

LONGEST_URN = 2_000  # bytes, since the parts of a document add their places to its URN …
LONGEST_PART_URN = 2_600  # … and an index takes 2,700
Source = tuple[ScopeId, str]  # the scope and the URN of a document
WRITTEN_NUL = re.compile(rb"(?<!\\)(?:\\\\)*\\u0000")  # in JSON; behind an escaped backslash it is plain text


@dataclass(frozen=True)
class Item:
    """Something that is read page by page: a file, a mail, a wiki page.

    What its source says of it stands above what its content says itself. Large content is staged before; bytes and
    text are kept in the caller's transaction.
    """

    urn: str  # where it comes from; a new version comes under the same one
    name: str
    content: Staged | bytes | str
    scope: Scope = GLOBAL
    type: str | None = None  # one that can be read (pdf, markdown, mail …); None: its content tells when it is opened
    title: str | None = None
    written_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    container: DocumentId | None = None  # the document that it lies in, and goes with
    urgency: Urgency = ORDINARY
    refusal: str = ""  # why its bytes could not be had: opening it fails with this sentence
    ahead: ReadAhead | None = None  # what somebody has read in its bytes already, if they are few


@dataclass(frozen=True)
class WholeText:
    """A text that is written down as a whole, and can be searched when the transaction is over."""

    urn: str
    title: str
    text: str
    chunks: Searchable  # of the text under this title, made before the transaction: `prepare_text`
    scope: Scope = GLOBAL
    type: str = "document"
    written_at: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    container: DocumentId | None = None  # the document that it was made of, and goes with


@dataclass(frozen=True)
class Note:
    """A single chunk that is added to the document with this URN; the same one is added once."""

    urn: str
    text: str
    chunks: Searchable  # one: `prepare_note`
    scope: Scope = GLOBAL
    type: str = "document"  # of the document, if this is its first note


@dataclass(frozen=True)
class Taken:
    """What became of an item; `failed` and `cancelled` mean that it is unchanged, and that so it had ended."""

    name: str
    urn: str
    document: DocumentId | None
    status: Literal["added", "changed", "unchanged", "failed", "cancelled", "refused"]
    reason: str | None = None


class _Container(NamedTuple):
    id: DocumentId
    scope: ScopeId
    client: str
    project: str
    version: int
    hash: bytes


async def take_in(tx: Tx, item: Item | WholeText | Note) -> Taken:
    """Decide whether an item is new, changed or unchanged, and write it down with all the work on it.

    It commits with the caller: a poller moves its cursor in the same transaction. An item that cannot be taken in is
    `refused` with a reason, and nothing is written.

    Its URN is locked until the transaction ends. Several items in one transaction go through `take_in_many`: two
    callers with the same items in another order would wait for each other, and the database would end one of them
    (`DeadlockDetected`, which workers retry and `plainly` tells as Transient).
    """
    (taken,) = await take_in_many(tx, [item])
    return taken


async def take_in_many(tx: Tx, items: Sequence[Item | WholeText | Note]) -> list[Taken]:
    """Take in several items, in their order; all URNs are locked before, in one order for all callers.

    However many files there are, they take a handful of statements together.
    """
    taken = [_refuse(item, reason) if (reason := find_refusal(item)) else None for item in items]
    wanted = {place: item for place, item in enumerate(items) if taken[place] is None}
    scopes = {scope: await scope_id(tx, scope) for scope in dict.fromkeys(item.scope for item in wanted.values())}
    sources = {place: (scopes[item.scope], item.urn) for place, item in wanted.items()}
    await store.lock_sources(tx, sources.values())
    for places in _divide_by_source(sources):
        files = {place: item for place in places if isinstance(item := wanted[place], Item)}
        for place, answer in (await _take_in_files(tx, files, sources)).items():
            taken[place] = answer
        for place in places:
            if not isinstance(item := wanted[place], Item):
                taken[place] = await _take_in_written(tx, item, scopes[item.scope])
    return [answer for answer in taken if answer is not None]


def _refuse(item: Item | WholeText | Note, reason: str) -> Taken:
    return Taken(_name_of(item), item.urn, None, "refused", reason)


def _name_of(item: Item | WholeText | Note) -> str:
    return item.name if isinstance(item, Item) else written.name_of(item)


def _divide_by_source(sources: Mapping[int, Source]) -> list[list[int]]:
    """The places of items in rounds: of several with one URN, each is compared with the one before it."""
    rounds: list[list[int]] = []
    seen: Counter[Source] = Counter()
    for place, source in sources.items():
        if seen[source] == len(rounds):
            rounds.append([])
        rounds[seen[source]].append(place)
        seen[source] += 1
    return rounds


async def _take_in_written(tx: Tx, item: WholeText | Note, own: ScopeId) -> Taken:
    name = written.name_of(item)
    last = await written.find_written(tx, own, item.urn)
    if last and last.from_file:
        return Taken(name, item.urn, None, "refused", _say_from_file(item.urn, last.id))
    if isinstance(item, WholeText):
        document, is_new = await written.put_text(tx, own, item, last)
    else:
        document, is_new = await written.put_note(tx, own, item, last)
    return Taken(name, item.urn, document, _status(last is not None, is_new))


def find_refusal(item: Item | WholeText | Note) -> str | None:
    """Why an item cannot be taken in, as far as one sees without the database."""
    if not item.urn.strip():
        return "A document needs a URN: where it comes from, for example confluence:4711."
    if field_ := _find_unwritable(item):
        return f"Its {field_} holds a character that cannot be kept: NUL, or one half of a surrogate pair."
    longest = LONGEST_PART_URN if isinstance(item, Item) and item.container is not None else LONGEST_URN
    if len(item.urn.encode()) > longest:
        return f"Its URN is longer than {longest:,} bytes."
    if isinstance(item, Note):
        return _refuse_text(item)
    if item.written_at is not None and item.written_at.utcoffset() is None:
        return "Its time of writing has no time zone: nobody knows which moment is meant."
    if not _is_json(item.metadata):
        return "Its metadata cannot be written as JSON without NUL characters."
    if isinstance(item, WholeText):
        return _refuse_text(item)
    if item.type is not None and item.type not in TYPES:
        return f"Nobody knows how to read a file of the type {item.type}."
    return None


def _refuse_text(item: WholeText | Note) -> str | None:
    if not item.text.strip() or "\0" in item.text:
        return f"The text of {item.urn} is empty or holds a NUL character: there is nothing to keep."
    return None


def _find_unwritable(item: Item | WholeText | Note) -> str | None:
    """Which of its texts the database cannot keep."""
    texts = {"URN": item.urn, "type": item.type, "title": getattr(item, "title", None)}
    if isinstance(item, Item):
        content = item.content if isinstance(item.content, str) else ""
        texts |= {"name": item.name, "content": content.replace("\0", ""), "refusal": item.refusal}  # bytes may be NUL
    else:
        texts["text"] = item.text.replace("\0", "")  # which has a sentence of its own
    if _is_writable("".join(filter(None, texts.values()))):  # all of them at once: nearly always
        return None
    return next((name for name, text in texts.items() if text and not _is_writable(text)), None)


def _is_writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text


def _is_json(metadata: Mapping[str, Any]) -> bool:
    try:
        written_down = orjson.dumps(dict(metadata))
    except (TypeError, ValueError):
        return False
    return WRITTEN_NUL.search(written_down) is None


@dataclass(frozen=True)
class _Arrived:
    """A file that is to be taken in, and what is known of its source."""

    item: Item
    scope: ScopeId
    content: Staged | bytes
    hash: bytes
    last: Latest | None


async def _take_in_files(tx: Tx, items: Mapping[int, Item], sources: Mapping[int, Source]) -> dict[int, Taken]:
    """What became of each of these, by its place; no two have the same source."""
    if not items:
        return {}
    latest = await store.load_latest(tx, [sources[place] for place in items])
    holders = await _load_containers(tx, items.values())
    taken: dict[int, Taken] = {}
    new: dict[int, _Arrived] = {}
    for place, item in items.items():
        content = _bytes_of(item.content)
        one = _Arrived(item, sources[place][0], content, blobs.hash_of(content), latest.get(sources[place]))
        known = (
            await _find_known(tx, one)
            if item.container is None
            else await _find_known_part(tx, one, holders.get(item.container))
        )
        if known is None:
            new[place] = one
        else:
            taken[place] = known
    await blobs.keep_bytes(tx, *(one.content for one in new.values()))
    ids = await store.create(tx, [_make_version(one) for one in new.values()])
    for (place, one), id_ in zip(new.items(), ids, strict=True):
        taken[place] = Taken(one.item.name, one.item.urn, id_, _status(one.last is not None, True))
    return taken


async def _load_containers(tx: Tx, items: Iterable[Item]) -> dict[DocumentId, _Container]:
    ids = {item.container for item in items if item.container is not None}
    if not ids:
        return {}
    return {row.id: row for row in await tx.all(SQL["find_containers"], _Container, ids=sorted(ids))}


async def _find_known(tx: Tx, one: _Arrived) -> Taken | None:
    """The answer if nothing would come out differently than it did; None if it is new or has changed."""
    if one.last is None or not _is_same(one.last, one.item, one.hash):
        return None
    if isinstance(one.content, Staged):
        await blobs.keep_bytes(tx, one.content)  # its pin is not needed any more
    return await _describe_known(tx, one.item, one.last)


async def _find_known_part(tx: Tx, one: _Arrived, holder: _Container | None) -> Taken | None:
    """The same for a part: it is ground again with its container, unless only the rest of the container has changed."""
    item, last = one.item, one.last
    if holder is None or Scope(holder.client, holder.project) != item.scope:
        reason = f"There is no document {item.container} that it could lie in."
        return Taken(item.name, item.urn, None, "refused", reason)
    if last and (last.container_version or 0) > holder.version:
        if isinstance(one.content, Staged):
            await blobs.release(tx, one.content)
        return Taken(item.name, item.urn, last.id, "unchanged", "a newer version of its container has a newer one")
    if last and _is_kept(last, item, one.hash, holder.hash) and await _goes_on(tx, last):
        await tx.execute(SQL["keep_part"], container=item.container, urn=item.urn, scope=holder.scope)
        if isinstance(one.content, Staged):
            await blobs.keep_bytes(tx, one.content)  # its pin is not needed any more
        return Taken(item.name, item.urn, last.id, "unchanged", f"its content is that of document {last.id}")
    return None


def _make_version(one: _Arrived) -> Version:
    item = one.item
    return Version(
        one.scope,
        item.urn,
        one.last.version + 1 if one.last else 1,
        one.hash,
        item.name,
        container=item.container,
        given=_describe_given(item),
        urgency=item.urgency,
        refusal=item.refusal,
        ahead=item.ahead,
    )


def _status(is_known: bool, is_new: bool) -> Literal["added", "changed", "unchanged"]:
    if not is_new:
        return "unchanged"
    return "changed" if is_known else "added"


def _bytes_of(content: Staged | bytes | str) -> Staged | bytes:
    return content.encode() if isinstance(content, str) else content


def _describe_given(item: Item) -> dict[str, Any]:
    """What the source says of an item, as it is kept with the document."""
    said = {
        "type": item.type,
        "title": item.title,
        "written_at": item.written_at.isoformat() if item.written_at else None,
        "metadata": dict(item.metadata) or None,
    }
    return {name: value for name, value in said.items() if value is not None}


def _is_same(last: Latest, item: Item, hash_: bytes) -> bool:
    """Whether nothing would come out differently: a title stands above every chunk, and the type says how to read."""
    given = last.given
    return last.hash == hash_ and last.has_bytes and (given.get("title"), given.get("type")) == (item.title, item.type)


def _is_kept(last: Latest, part: Item, hash_: bytes, container_hash: bytes) -> bool:
    """The same bytes in the same place of a container that has changed; one that has not is being made anew."""
    return not part.refusal and _is_same(last, part, hash_) and last.container_hash not in (None, container_hash)


async def _goes_on(tx: Tx, last: Latest) -> bool:
    """Whether it is whole or will be; a failed part is made anew with its container."""
    if last.completed_at is not None:
        return True
    (seen,) = await load_progress(tx, [last.id])
    return not seen.has_ended


async def _describe_known(tx: Tx, item: Item, last: Latest) -> Taken:
    """The answer for bytes that are known already.

    A person who adds a failed file again wants it to succeed. The same bytes would fail again; a retry may not.
    """
    given = _describe_given(item)
    if given != last.given:
        await tx.execute(SQL["describe"], id=last.id, given=orjson.dumps(given).decode())
    unchanged = Taken(item.name, item.urn, last.id, "unchanged", f"its content is that of document {last.id}")
    if last.completed_at is not None:
        return unchanged
    if died := await list_failures(tx, last.id, limit=1):
        retry = f"gristmill document retry {last.id} tries it again"
        return Taken(item.name, item.urn, last.id, "failed", f"{died[0].error.rstrip('.')}: {retry}")
    (seen,) = await load_progress(tx, [last.id])
    if seen.status == "cancelled":
        reason = f"document {last.id} was cancelled: {say_reindex(last.id)}"
        return Taken(item.name, item.urn, last.id, "cancelled", reason)
    return unchanged


def _say_from_file(urn: str, document: DocumentId) -> str:
    """A file's own document takes nothing: it would be lost with the next version, or that with this."""
    return f"{urn} was read from a file: write it down under a URN of its own, for example note:{document}."


def say_reindex(document: DocumentId) -> str:
    return f"gristmill document reindex {document} makes it anew"


async def add_again(tx: Tx, document: DocumentId) -> DocumentId:
    """A new version of a document from the same bytes; results that are kept are not computed again."""
    old = (await store.load_documents(tx, [document])).get(document)
    if old is None:
        raise _unknown(document)
    if not old.phases:
        raise Refused(f"Document {document} was not read from a file but written down: whoever did can do so again.")
    if old.container is not None and not old.size:
        raise Refused(f"Document {document} has no bytes: reindex document {old.container}, in which it lies.")
    last = await store.find_latest(tx, old.scope, old.urn)
    old = await store.reload_held(tx, old)
    if old is None or last is None:
        raise _unknown(document)
    if last.id != document:
        raise Refused(f"Document {document} has a newer version, which would be undone: reindex document {last.id}.")
    return await store.make_anew(tx, old, number=last.version + 1)


def _unknown(document: DocumentId) -> Unknown:
    return Unknown(f"There is no document {document}.", listed_by="gristmill documents")


async def add_parts(tx: Tx, parts: Sequence[tuple[Document, Part, Urgency]]) -> list[Taken]:
    """Take in parts of documents, attachments or mails of a mailbox, as documents of their own."""
    return await take_in_many(tx, [_make_part(*one) for one in parts])


def _make_part(container: Document, part: Part, urgency: Urgency) -> Item:
    item = Item(
        f"{container.urn}#{part.suffix}",
        part.name,
        part.data,
        Scope(container.client, container.project),
        container=container.id,
        urgency=urgency,
        refusal=part.refusal,
    )
    if reason := find_refusal(item):  # or it would be lost, and nobody would notice
        raise Permanent(reason)
    return item
