"""The one way in: everything that becomes a document is taken in here, inside the transaction of the caller."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

import orjson

from gristmill.db import Tx
from gristmill.documents import blobs, store, written
from gristmill.documents.blobs import Staged
from gristmill.documents.model import Document
from gristmill.documents.progress import list_failures, load_progress
from gristmill.documents.reading import TYPES, Part
from gristmill.documents.store import SQL, Latest, Version
from gristmill.documents.urgency import ORDINARY, Urgency
from gristmill.documents.written import Searchable
from gristmill.errors import Permanent, Refused, Unknown
from gristmill.ids import DocumentId, ScopeId
from gristmill.scopes import GLOBAL, Scope, scope_id

LONGEST_URN = 2_000  # bytes, since the parts of a document add their places to its URN …
LONGEST_PART_URN = 2_600  # … and an index takes 2,700
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
    name = item.name if isinstance(item, Item) else written.name_of(item)
    if reason := find_refusal(item):
        return Taken(name, item.urn, None, "refused", reason)
    if isinstance(item, Item):
        return await (_take_in_file(tx, item) if item.container is None else _take_in_part(tx, item, item.container))
    own = await scope_id(tx, item.scope)
    await store.lock_source(tx, own, item.urn)
    last = await written.find_written(tx, own, item.urn)
    if last and last.from_file:
        return Taken(name, item.urn, None, "refused", _say_from_file(item.urn, last.id))
    if isinstance(item, WholeText):
        document, is_new = await written.put_text(tx, own, item, last)
    else:
        document, is_new = await written.put_note(tx, own, item, last)
    return Taken(name, item.urn, document, _status(last is not None, is_new))


async def take_in_many(tx: Tx, items: Sequence[Item | WholeText | Note]) -> list[Taken]:
    """Take in several items, in their order; all URNs are locked before, in one order for all callers."""
    sources = {(item.scope.client, item.scope.project, item.urn) for item in items if not find_refusal(item)}
    for client, project, urn in sorted(sources):
        await store.lock_source(tx, await scope_id(tx, Scope(client, project)), urn)
    return [await take_in(tx, item) for item in items]


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


async def _take_in_file(tx: Tx, item: Item) -> Taken:
    own = await scope_id(tx, item.scope)
    last = await store.find_latest(tx, own, item.urn)
    content = _bytes_of(item.content)
    hash_ = _hash_of(content)
    if last is not None and _is_same(last, item, hash_):
        if isinstance(content, Staged):
            await blobs.keep_bytes(tx, content)  # its pin is not needed any more
        return await _describe_known(tx, item, last)
    return await _add_version(tx, item, own, content, last)


async def _take_in_part(tx: Tx, item: Item, container: DocumentId) -> Taken:
    """A part is ground again with its container, unless only the rest of the container has changed."""
    holder = await tx.one(SQL["find_container"], _Container, id=container)
    if holder is None or Scope(holder.client, holder.project) != item.scope:
        return Taken(item.name, item.urn, None, "refused", f"There is no document {container} that it could lie in.")
    content = _bytes_of(item.content)
    last = await store.find_latest(tx, holder.scope, item.urn)
    if last and (last.container_version or 0) > holder.version:
        if isinstance(content, Staged):
            await blobs.release(tx, content)
        return Taken(item.name, item.urn, last.id, "unchanged", "a newer version of its container has a newer one")
    if last and _is_kept(last, item, _hash_of(content), holder.hash) and await _goes_on(tx, last):
        await tx.execute(SQL["keep_part"], container=container, urn=item.urn, scope=holder.scope)
        if isinstance(content, Staged):
            await blobs.keep_bytes(tx, content)  # its pin is not needed any more
        return Taken(item.name, item.urn, last.id, "unchanged", f"its content is that of document {last.id}")
    return await _add_version(tx, item, holder.scope, content, last)


async def _add_version(tx: Tx, item: Item, scope: ScopeId, content: Staged | bytes, last: Latest | None) -> Taken:
    await blobs.keep_bytes(tx, content)
    version = Version(
        scope,
        item.urn,
        last.version + 1 if last else 1,
        _hash_of(content),
        item.name,
        container=item.container,
        given=_given_by(item),
        urgency=item.urgency,
        refusal=item.refusal,
    )
    return Taken(item.name, item.urn, await store.create(tx, version), _status(last is not None, True))


def _status(is_known: bool, is_new: bool) -> Literal["added", "changed", "unchanged"]:
    if not is_new:
        return "unchanged"
    return "changed" if is_known else "added"


def _bytes_of(content: Staged | bytes | str) -> Staged | bytes:
    return content.encode() if isinstance(content, str) else content


def _hash_of(content: Staged | bytes) -> bytes:
    return content.hash if isinstance(content, Staged) else blobs.hash_of(content)


def _given_by(item: Item) -> dict[str, Any]:
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
    given = _given_by(item)
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
    return Unknown(f"There is no document {document}: gristmill documents lists them.")


async def add_part(tx: Tx, container: Document, part: Part, urgency: Urgency = ORDINARY) -> Taken:
    """Take in a part of a document, an attachment or a mail of a mailbox, as a document of its own."""
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
    return await take_in(tx, item)
