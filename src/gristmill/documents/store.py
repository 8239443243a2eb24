"""Keeps documents: their rows, their groups of work, their pages."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple, Self

import orjson

from gristmill.db import Column, Tx, array, queries, text_array
from gristmill.documents.blobs import hold_bytes
from gristmill.documents.letters import FinishDocument, OpenDocument, SealPhase
from gristmill.documents.model import Document, PhaseGroup, owner_of
from gristmill.documents.phases.definition import Phase, list_phases, write_letter
from gristmill.documents.reading import Bookmark, Inspection, Method, PageText, ReadAhead
from gristmill.documents.urgency import ORDINARY, SCAN, Urgency, of_unit
from gristmill.errors import Refused
from gristmill.ids import DocumentId, ScopeId, TaskId
from gristmill.knowledge import Piece, chunks
from gristmill.queue import (
    SUBJECT,
    Branch,
    Follower,
    Leaf,
    Planted,
    Revived,
    Seed,
    Tree,
    plant_trees,
    retry_tasks,
    seal,
    send,
    send_many,
)
from gristmill.tasks import DocumentRead

SQL = queries("gristmill.documents", "documents.sql")
NOT_OPENED = TaskId(0)  # in place of the task that opens a document: it was read before it came
OPEN = "open"  # the opening, which comes before the phases, where a phase is asked for


@dataclass(frozen=True)
class Version:
    """A version of a source that is to be made and read."""

    scope: ScopeId
    urn: str
    number: int
    hash: bytes
    name: str
    container: DocumentId | None = None
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])  # type, title, time and metadata from its source
    urgency: Urgency = ORDINARY
    refusal: str = ""
    ahead: ReadAhead | None = None


@dataclass(frozen=True)
class Latest:
    """The newest version of a source, as `take_in` looks at it before it adds another."""

    scope: ScopeId
    urn: str
    id: DocumentId
    version: int
    hash: bytes
    completed_at: datetime | None
    given: Mapping[str, Any]
    has_bytes: bool
    container_version: int | None
    container_hash: bytes | None


async def create(tx: Tx, versions: Sequence[Version]) -> list[DocumentId]:
    """New versions of sources, and the work on them.

    The group of a version has the opening and one group per phase; a phase is sealed when the one before is completed,
    and the version is finished when all of them are. The letters that seal and finish belong to no group: they lock
    downwards. All of it is as urgent as the opening, which fails with the `refusal` if there is one. A version that was
    read ahead has no opening, its first phase is done, and the second one is sealed.
    """
    if not versions:
        return []
    ids = await tx.values(SQL["reserve_documents"], Column[DocumentId], n=len(versions))
    phases = await list_phases(tx)
    planted = await plant_trees(tx, _sow(ids, versions, phases))
    made = list(zip(ids, versions, planted, strict=True))
    await tx.add_rows(SQL["copy_documents"], SQL["insert_documents"], [_make_row(*one) for one in made])
    await tx.execute(
        SQL["add_phases"],
        documents=array(id_ for id_ in ids for _ in phases),
        scopes=array(version.scope for version in versions for _ in phases),
        ordinals=array([phase.ordinal for phase in phases] * len(ids)),
        tasks=array(group for tree in planted for group in tree.branches),
    )
    pages = [row for id_, version in zip(ids, versions, strict=True) for row in _make_pages(id_, version)]
    await tx.add_rows(SQL["copy_pages"], SQL["insert_pages"], pages)
    return ids


class _NewRow(NamedTuple):
    """A new row of `document`; in the order of `copy_documents`."""

    id: DocumentId
    scope: ScopeId
    urn: str
    version: int
    hash: bytes
    container: DocumentId | None
    name: str
    given: str
    type: str | None
    title: str | None
    written_at: datetime | str | None
    meta: str
    pages: int | None
    task: TaskId
    opening: TaskId


class _PageRow(NamedTuple):
    """A row of `page`; in the order of `copy_pages`."""

    document: DocumentId
    number: int
    scope: ScopeId
    method: str
    text: str
    key: bytes
    words: bytes | None


def _make_row(id_: DocumentId, version: Version, tree: Planted) -> _NewRow:
    """What its source says of a document is shown before it is opened, and stands above what its content says."""
    given, seen = version.given, version.ahead and version.ahead.seen
    return _NewRow(
        id_,
        version.scope,
        version.urn,
        version.number,
        version.hash,
        version.container,
        version.name,
        orjson.dumps(dict(given)).decode(),
        seen and seen.type,
        given.get("title", seen and seen.title),
        given.get("written_at", seen and seen.written_at),
        orjson.dumps({**(seen.meta if seen else {}), **given.get("metadata", {})}).decode(),
        seen and seen.pages,
        tree.root,
        tree.leaves[0] if tree.leaves else NOT_OPENED,
    )


def _make_pages(id_: DocumentId, version: Version) -> list[_PageRow]:
    if version.ahead is None:
        return []
    pages = zip(version.ahead.pages, version.ahead.keys, strict=True)
    return [
        _PageRow(id_, number, version.scope, page.method, page.text, key, page.words or None)
        for number, (page, key) in enumerate(pages, 1)
    ]


class _Plan(NamedTuple):
    """All that the work on a version depends on; many versions that come together are alike in it."""

    urgency: Urgency
    refusal: str
    read: tuple[str | None, ...] | None  # of a version that was read ahead: why each page counts as skipped, or None

    @classmethod
    def of(cls, version: Version) -> Self:
        ahead = version.ahead
        read = ahead and tuple([page.find_skip_reason(ahead.seen.type) for page in ahead.pages])
        return cls(version.urgency, version.refusal, read)


def _sow(ids: Sequence[DocumentId], versions: Sequence[Version], phases: Sequence[Phase]) -> list[Seed]:
    trees: dict[_Plan, Tree] = {}
    seeds: list[Seed] = []
    for id_, version in zip(ids, versions, strict=True):
        plan = _Plan.of(version)
        if plan not in trees:
            trees[plan] = _plan_work(plan, phases)
        seeds.append(Seed(trees[plan], id_, version.name, owner_of(id_), version.scope))
    return seeds


def _plan_work(plan: _Plan, phases: Sequence[Phase]) -> Tree:
    """All tasks about a version of a document, as far as they are known when it comes."""
    urgency, read, id_ = plan.urgency, plan.read, DocumentId(SUBJECT)
    place: dict[str, Any] = {"priority": urgency.priority, "foreground": urgency.foreground}
    branches = [Branch(phase.name) for phase in phases]
    if read is not None:
        skipped = [
            replace(_make_unit(urgency, phases[0].kind, number), outcome="skipped", reason=reason)
            for number, reason in enumerate(read, 1)
            if reason
        ]
        branches[0] = Branch(phases[0].name, skipped, sealed=True, done=len(read) - len(skipped))
        if len(phases) > 1:
            units = [_make_unit(urgency, phases[1].kind, page) for page in range(1, len(read) + 1)]
            branches[1] = Branch(phases[1].name, units, sealed=True)
    seals = [Follower(SealPhase(id_, phase.name), before, **place) for before, phase in enumerate(phases[1:])]
    if read is not None and seals:  # the phase behind the reading is sealed: only the qualifier must hear of it
        seals[:1] = [Follower(DocumentRead(id_), 0, **place)]
    openings = [Leaf(OpenDocument(id_, refusal=plan.refusal), **place)] if read is None else []
    end = Follower(FinishDocument(id_), **place)
    return Tree(openings, branches, [*seals, end], sealed=read is not None, **place)


def _make_unit(urgency: Urgency, kind: str, page: int) -> Leaf:
    own = of_unit(urgency, page)
    return Leaf(write_letter(kind, DocumentId(SUBJECT), page, None), own.priority, own.foreground)


class _DocumentRow(NamedTuple):
    """A row of `document`, with the groups of its phases as name, task and kind."""

    id: DocumentId
    scope: ScopeId
    client: str
    project: str
    urn: str
    version: int
    hash: bytes
    size: int
    container: DocumentId | None
    name: str
    type: str | None
    title: str | None
    meta: Mapping[str, Any]
    given: Mapping[str, Any]
    pages: int | None
    task: TaskId
    foreground: bool
    priority: int
    depth: int
    phases: list[tuple[str, TaskId, str]]


class _KeptPage(NamedTuple):
    """A page that was made of the input with this key."""

    key: bytes
    text: str
    method: Method
    words: bytes


class _TextOfPage(NamedTuple):
    """The text of one page."""

    document: DocumentId
    number: int
    text: str


async def load_documents(tx: Tx, ids: Iterable[DocumentId]) -> dict[DocumentId, Document]:
    """Those of them that (still) exist."""
    rows = await tx.all(SQL["documents"], _DocumentRow, ids=list(set(ids)))
    return {row.id: _document(row) for row in rows}


def _document(row: _DocumentRow) -> Document:
    fields: dict[str, Any] = row._asdict()
    fields["phases"] = {name: PhaseGroup(name, task, kind) for name, task, kind in row.phases}
    return Document(**fields)


async def save_inspection(tx: Tx, document: Document, seen: Inspection) -> None:
    """Write down the type, title and pages of a document; the pages are read next."""
    await tx.execute(
        SQL["save_inspection"],
        id=document.id,
        type=seen.type,
        title=seen.title,
        meta=orjson.dumps(seen.meta).decode(),
        written_at=seen.written_at,
        pages=seen.pages,
    )
    each = SCAN if seen.scanned else 1
    pages = range(1, seen.pages + 1)
    first = next(iter(document.phases.values()))
    await send_many(tx, [document.unit(first.name, page * each, page) for page in pages])
    await seal(tx, first.task)
    await seal(tx, document.task)


async def open_further(tx: Tx, document: Document, start: Bookmark) -> None:
    """A container is opened portion by portion."""
    letter = OpenDocument(document.id, offset=start.parts, unpacked=start.bytes, missing=start.missing)
    place: dict[str, Any] = {**asdict(document.urgency), "scope": document.scope}
    opening = await send(tx, letter, parent=document.task, owner=document.owner, **place)
    await tx.execute(SQL["set_opening"], id=document.id, opening=opening)


async def retry(tx: Tx, document: Document, phase: str | None = None) -> Revived:
    """Try the failed tasks of a document again: all, those of its opening (`open`), or those of one phase.

    A phase that is shown stands for the hidden ones before it, too: their failures are shown as its own.
    """
    if not document.phases:
        return Revived()
    if phase not in (None, OPEN):
        return await retry_tasks(tx, await _groups_of(tx, document, phase))
    ends = await tx.all(SQL["dead_ends"], _Id, owner=document.owner, kinds=[SealPhase.kind, FinishDocument.kind])
    again = await retry_tasks(tx, [document.task], kind=OpenDocument.kind if phase else None)
    mended = await retry_tasks(tx, [row.id for row in ends])
    return Revived(again.tasks + mended.tasks, again.refused + mended.refused)


class _Id(NamedTuple):
    id: TaskId


async def retry_unit(tx: Tx, document: Document, phase: str, page: int, ordinal: int | None = None) -> Revived:
    """Try one page, or one chunk of it, again in one phase; a page stands for all of its chunks."""
    groups = await _groups_of(tx, document, phase)
    kinds = [one.kind for one in document.phases.values() if one.task in groups]
    rows = await tx.all(SQL["unit_tasks"], _Id, owner=document.owner, kinds=kinds, page=page, ordinal=ordinal)
    if not rows:
        unit = f"page {page}" if ordinal is None else f"chunk {ordinal} of page {page}"
        raise Refused(
            f"In the phase {phase}, {unit} of document {document.id} has not failed: nothing is to be retried."
        )
    return await retry_tasks(tx, [row.id for row in rows])


async def _groups_of(tx: Tx, document: Document, phase: str) -> list[TaskId]:
    """The group of a phase, and those of the hidden phases before it."""
    if phase not in document.phases:
        raise Refused(f"A phase is one of {', '.join([OPEN, *document.phases])}.")
    shown = {one.name: one.shown for one in await list_phases(tx)}
    groups: list[TaskId] = []
    for own in document.phases.values():
        groups.append(own.task)
        if own.name == phase:
            break
        if shown[own.name]:
            groups.clear()
    return groups


async def find_pages(tx: Tx, keys: Sequence[bytes]) -> dict[bytes, PageText]:
    """The pages that were made of the same input by the same means, whichever document they were for."""
    rows = await tx.all(SQL["find_pages"], _KeptPage, keys=list(set(keys)))
    return {row.key: PageText(row.text, row.method, row.words) for row in rows}


async def load_texts(tx: Tx, pages: Sequence[tuple[DocumentId, int]]) -> dict[tuple[DocumentId, int], str]:
    """The texts of these pages, by document and number."""
    rows = await tx.all(
        SQL["load_texts"], _TextOfPage, documents=[one[0] for one in pages], numbers=[one[1] for one in pages]
    )
    return {(row.document, row.number): row.text for row in rows}


async def save_page(tx: Tx, document: Document, number: int, page: PageText, key: bytes) -> None:
    await tx.add(
        SQL["save_page"],
        document=document.id,
        number=number,
        scope=document.scope,
        method=page.method,
        text=page.text,
        key=key,
        words=page.words,
    )


class _DividedRow(NamedTuple):
    """A chunk of a page with this key. Of a page without chunks, all but the key is None."""

    key: bytes
    start: int | None
    stop: int
    kind: chunks.Kind
    language: str | None
    heading: str
    text: str
    tokens: int
    hash: bytes


async def find_divided(tx: Tx, keys: Sequence[bytes]) -> dict[bytes, list[Piece]]:
    """The chunks that the same text fell into by the same means, on whichever page it stands."""
    found: dict[bytes, list[Piece]] = {}
    for row in await tx.all(SQL["find_divided"], _DividedRow, keys=list(set(keys))):
        pieces = found.setdefault(row.key, [])
        if row.start is not None:
            pieces.append(
                Piece(row.start, row.stop, row.kind, row.language, row.heading, row.text, row.tokens, row.hash)
            )
    return found


async def save_chunks(tx: Tx, document: Document, number: int, pieces: Sequence[Piece], key: bytes) -> None:
    await chunks.save(tx, document.scope, document.id, number, pieces)
    await tx.execute(SQL["set_divided"], document=document.id, number=number, key=key)


async def lock_sources(tx: Tx, sources: Iterable[tuple[ScopeId, str]]) -> None:
    """Keep others from adding versions of these sources, or removing them by their URNs, until the transaction ends.

    In one order for all callers. A lock that this transaction holds already costs nothing.
    """
    wanted = sorted(set(sources))
    scopes, urns = [scope for scope, _ in wanted], [urn for _, urn in wanted]
    await tx.all(SQL["lock_sources"], scopes=array(scopes), urns=text_array(urns))


async def lock_source(tx: Tx, scope: ScopeId, urn: str) -> None:
    await lock_sources(tx, [(scope, urn)])


async def load_latest(tx: Tx, sources: Sequence[tuple[ScopeId, str]]) -> dict[tuple[ScopeId, str], Latest]:
    """The newest versions of these sources, as far as they have any."""
    scopes, urns = [scope for scope, _ in sources], [urn for _, urn in sources]
    rows = await tx.all(SQL["latest"], Latest, scopes=array(scopes), urns=text_array(urns))
    return {(row.scope, row.urn): row for row in rows}


async def find_latest(tx: Tx, scope: ScopeId, urn: str) -> Latest | None:
    """The newest version of a source; nobody else can add one until the transaction ends."""
    await lock_source(tx, scope, urn)
    return (await load_latest(tx, [(scope, urn)])).get((scope, urn))


async def reload_held(tx: Tx, document: Document) -> Document | None:
    """The document as it is now; its bytes and its container are kept from being removed. None if it is gone."""
    await hold_bytes(tx, document.hash)
    await tx.all(SQL["hold_document"], id=document.container)
    return (await load_documents(tx, [document.id])).get(document.id)


async def make_anew(tx: Tx, document: Document, *, number: int, urgency: Urgency = ORDINARY) -> DocumentId:
    """Another version of the same source from the same bytes."""
    version = Version(
        document.scope,
        document.urn,
        number,
        document.hash,
        document.name,
        container=document.container,
        given=document.given,
        urgency=urgency,
    )
    (made,) = await create(tx, [version])
    return made


async def mend_parts(tx: Tx, container: Document) -> None:
    """A whole container is made anew if a part that it was to keep was removed before it could be handed over."""
    if await tx.value(SQL["settle_parts"], id=container.id, scope=container.scope):
        return
    last = await find_latest(tx, container.scope, container.urn)
    if last is not None and last.id == container.id:  # or a newer version has it, or will have
        await make_anew(tx, container, number=container.version + 1, urgency=container.urgency)


async def was_cancelled(tx: Tx, document: Document) -> bool:
    """Whether some of it was, so that it will never be whole."""
    groups = [document.task, *(phase.task for phase in document.phases.values())]
    return await tx.only_value(SQL["was_cancelled"], bool, groups=groups)


async def complete(tx: Tx, document: DocumentId) -> Sequence[DocumentId]:
    """This version is whole: the older ones that it takes the place of, without parts that are still needed."""
    if await tx.one(SQL["complete"], id=document) is None:
        return ()
    older = await tx.values(SQL["older_versions"], Column[DocumentId], id=document)
    if older:
        await tx.execute(SQL["hand_over"], id=document, older=older)
    return older
