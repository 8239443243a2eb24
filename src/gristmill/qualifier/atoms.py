"""The atomic chunk of an item: its title, its key fields and a summary, under the key of its node in the graph."""

import re
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from gristmill.db import Database, Tx
from gristmill.documents import WholeText, load_progress, prepare_chunk, prepare_text, take_in
from gristmill.errors import Permanent, Transient, Unknown
from gristmill.ids import ChunkId, DocumentId, WorkItemId
from gristmill.knowledge import Embedders, Hit, chunks, graph, search_hybrid
from gristmill.models import TextFacts, quote_summary
from gristmill.qualifier.conventions.matching import find_main_amount
from gristmill.qualifier.letters import KeepAtom
from gristmill.qualifier.memory import remember_chunks
from gristmill.qualifier.model import WorkItem
from gristmill.qualifier.reading import ItemWording
from gristmill.qualifier.store import get_item
from gristmill.queue import Done, Skip, Snooze, TaskFilter, find_tasks
from gristmill.scopes import Scope

LARGE = 40_000  # characters from which a text that no document holds is divided by length alone
LONGEST_SUMMARY = 1_200
LONGEST_TITLE = 300
NEAR = 5  # chunks that are compared with a new one
SAME = 0.9  # the share of its words that another chunk must have to say the same
WAIT = timedelta(seconds=10)  # until the document of an item is looked at again
WORD = re.compile(r"\w{2,}")
FIELDS = re.compile(r"(?:from|written): ")  # how the paragraph of key fields begins
SHOWN_REFERENCES = 8


@dataclass(frozen=True)
class Atom:
    """The defining text of an item, and the key and type of its node."""

    node_key: str
    node_type: str
    text: str

    @property
    def plain_text(self) -> str:
        """Its text without the key fields: words that the item itself has."""
        return "\n".join(one for one in self.text.split("\n\n") if not FIELDS.match(one))


def make_node_key(item: WorkItem) -> str:
    """By the pattern of its kind: `email::<message-id>`, `confluence::<page>`, `jira::KEY`; a URN of sources has it."""
    if item.urn is None:
        return f"item::{item.id}"
    return item.urn if "::" in item.urn else f"document::{item.urn}"


def summarise_text(wording: ItemWording) -> str:
    """A few sentences of the new text."""
    spans = wording.new if wording.new is not None else [(0, len(wording.text))]
    fresh = "\n".join(wording.text[start:stop] for start, stop in spans)
    return quote_summary(fresh or wording.text)[:LONGEST_SUMMARY]


def make_atom(item: WorkItem, wording: ItemWording, facts: TextFacts, summary: str) -> Atom:
    """The chunk by rule: what the item is, from whom and when, the numbers in it, and what it says."""
    key = make_node_key(item)
    title = " ".join(wording.about.subject.split())[:LONGEST_TITLE] or item.title[:LONGEST_TITLE]
    fields = "; ".join(f"{name}: {value}" for name, value in list_key_fields(wording, facts))
    return Atom(key, key.partition("::")[0], "\n\n".join(filter(None, [title, fields, summary])))


def list_key_fields(wording: ItemWording, facts: TextFacts) -> Iterator[tuple[str, str]]:
    """What people ask of an item first."""
    about = wording.about
    if about.sender:
        yield "from", about.sender
    yield "written", f"{about.written_at:%Y-%m-%d}"
    for name in ("state", "assignee", "priority"):
        if value := about.fields.get(name):
            yield name, value
    if amount := find_main_amount(facts):
        yield "amount", f"{amount.value} {amount.currency}"
    if facts.payment and facts.payment.due:
        yield "due", facts.payment.due.isoformat()
    elif facts.deadline:
        yield "deadline", facts.deadline.day.isoformat()
    own = [one for one in facts.references if one.kind != "issue" or one.evidence.start < len(about.subject)]
    for one in own[:SHOWN_REFERENCES]:  # an issue that the text merely names is not what the item is
        yield one.kind, one.value


# --- keeping


async def keep_atom(letter: KeepAtom, *, db: Database, embedders: Embedders) -> Done | Skip | Snooze:
    """Put the atomic chunk of an item into the knowledge, unless a chunk there says the same; its node is linked."""
    async with db.reading() as tx:
        try:
            item = await get_item(tx, letter.item)
        except Unknown:
            return Skip("The item is gone.")
        if item.document is not None:
            document = await load_progress(tx, [item.document])
            if not document:
                return Skip("Its document is gone.")
            if not all(one.has_ended for one in document):
                return Snooze(WAIT, "its document is not searchable yet")
    scope = Scope(item.client, item.project)
    atom = Atom(letter.node_key, letter.node_type, letter.text)
    hits = await search_hybrid(db, embedders, atom.text, max_results=NEAR, scope=scope)
    if same := find_same(atom, hits, scope, item.document):
        return Done(partial(_link, item=item.id, scope=scope, atom=atom, found=[one.chunk for one in same]))
    whole = await prepare_atom(db, embedders, item, atom)
    large = await _prepare_large(db, embedders, item)
    return Done(partial(_write, item=item.id, scope=scope, atom=atom, texts=[whole, *large]))


async def has_unkept_atoms(tx: Tx) -> bool:
    """Whether an item is decided whose text and node are still to be kept."""
    for status in ("pending", "processing"):
        if (await find_tasks(tx, TaskFilter(kind=KeepAtom.kind, status=status), limit=1)).tasks:
            return True
    return False


def find_same(atom: Atom, hits: Sequence[Hit], scope: Scope, document: DocumentId | None = None) -> list[Hit]:
    """Chunks of the same scope that say the same: the item's own document, or another chunk with nearly all its words.

    A mail is its own best description. A note beside it would be found instead of it, or twice.
    """
    own = [one for one in hits if one.document == document and _has_words(atom.plain_text, one.text)]
    if own:
        return own[:1]
    together = [one for one in hits if one.document == document]
    if together and _has_words(atom.plain_text, " ".join(one.text for one in together)):
        return together
    found = (one for one in hits if (one.client, one.project) == (scope.client, scope.project))
    return [one for one in found if _has_words(atom.text, one.text)][:1]


def _has_words(wanted: str, text: str) -> bool:
    words = set(WORD.findall(wanted.casefold()))
    return bool(words) and len(words & set(WORD.findall(text.casefold()))) >= SAME * len(words)


async def prepare_atom(db: Database, embedders: Embedders, item: WorkItem, atom: Atom) -> WholeText:
    """One chunk as a text of its own, which lies in the item's document and goes with it."""
    scope, own = Scope(item.client, item.project), make_node_key(item)
    urn = f"atom:{own}" if atom.node_key == own else f"atom:{own}#{atom.node_key}"
    note = await prepare_chunk(db, embedders, urn, atom.text, knowledge_type=item.type, scope=scope)
    return WholeText(
        note.urn, item.title, note.text, note.chunks, scope, item.type, item.written_at, container=item.document
    )


async def _prepare_large(db: Database, embedders: Embedders, item: WorkItem) -> list[WholeText]:
    """A long text that came without a document is divided by its length; all others have been read page by page."""
    if item.document is not None or len(item.text or "") < LARGE:
        return []
    prepared = await prepare_text(db, embedders, item.text or "", item.title)
    scope = Scope(item.client, item.project)
    return [WholeText(f"item:{item.id}", item.title, item.text or "", prepared, scope, item.type, item.written_at)]


async def _write(tx: Tx, *, item: WorkItemId, scope: Scope, atom: Atom, texts: Sequence[WholeText]) -> None:
    await check_presence(tx, item)
    found = [chunk for text in texts for chunk in await put_text(tx, text)]
    await _link(tx, item=item, scope=scope, atom=atom, found=found)


async def put_text(tx: Tx, text: WholeText) -> list[ChunkId]:
    """Keep a text; its chunks."""
    taken = await take_in(tx, text)
    if taken.document is None:
        raise Permanent(taken.reason or "It cannot be taken in.")
    places = [(taken.document, 1, n) for n in range(len(text.chunks.pieces))]
    return [one.id for one in await chunks.load(tx, places) if one is not None]


async def check_presence(tx: Tx, item: WorkItemId) -> None:
    """Transient if it or its document went meanwhile: the next attempt finds that there is nothing to do."""
    try:
        found = await get_item(tx, item)
    except Unknown as error:
        raise Transient("The item went while its words were kept.") from error
    if found.document is not None and not await load_progress(tx, [found.document]):
        raise Transient("The document of the item went while its words were kept.")


@contextmanager
def without_gone_chunks() -> Generator[None]:
    """Transient where a chunk went with its document since it was found: the next attempt finds others, or none."""
    try:
        yield
    except Unknown as error:
        raise Transient(f"A chunk went while it was linked: {error}") from error


async def _link(tx: Tx, *, item: WorkItemId, scope: Scope, atom: Atom, found: Sequence[ChunkId]) -> None:
    await check_presence(tx, item)
    with without_gone_chunks():
        key = await graph.create_node_with_rag_links(tx, scope, atom.node_key, atom.node_type, {}, found)
    await remember_chunks(tx, item, [key], found)
