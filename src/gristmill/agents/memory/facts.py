"""Facts that agents write down: found as documents of their own, as long as the words that show them stand there."""

from dataclasses import dataclass

from gristmill.agents.ask.checking import check_sentence
from gristmill.agents.ask.model import Passage
from gristmill.agents.memory.sessions import SQL
from gristmill.agents.runs import Run
from gristmill.db import Database, Tx
from gristmill.documents import (
    Document,
    WholeText,
    find_written,
    load_documents,
    load_page,
    load_pages,
    prepare_text,
    remove,
    take_in,
)
from gristmill.errors import Refused, Unknown
from gristmill.ids import DocumentId, ScopeId
from gristmill.knowledge import Embedders, language_of
from gristmill.scopes import scope_id

FACT = "fact"  # the type of their documents
WRITTEN_BY_AGENTS = frozenset((FACT, "agent", "draft"))  # types of documents: what an agent wrote is no evidence
SHORTEST_QUOTE, LONGEST_QUOTE = 8, 2_000  # characters
PORTION = 500
PAGES = 50


@dataclass(frozen=True)
class FactEvidence:
    """Where the words stand that show a fact."""

    document: DocumentId
    page: int
    quote: str


@dataclass(frozen=True)
class _Fact:
    document: DocumentId
    evidence_scope: ScopeId
    evidence_urn: str
    quote: str
    seen_in: DocumentId


async def keep_fact(
    db: Database, embedders: Embedders, run: Run, urn: str, sentence: str, evidence: FactEvidence
) -> DocumentId:
    """Write a fact down with its evidence, whose words must stand there exactly; the same URN is the same fact."""
    async with db.reading(seen_from=run.place) as tx:
        shown_by = await _check_evidence(tx, evidence)
    _check_meaning(sentence, evidence)
    place = f"{shown_by.title or shown_by.name}, page {evidence.page}"
    text = f"{sentence.strip()}\n\n> {' '.join(evidence.quote.split())}\n\n{place} (document {shown_by.id})"
    title = f"Fact: {sentence.strip()[:120]}"
    prepared = await prepare_text(db, embedders, text, title)
    about = {"location": f"run {run.id}", "related": [shown_by.urn]}
    async with db.transaction() as tx:
        scope = await scope_id(tx, run.place)
        # what lies in a document of the same scope goes with it at once; anything else is looked after by `tidy_facts`
        container = shown_by.id if shown_by.scope == scope else None
        whole = WholeText(urn, title, text, prepared, run.place, FACT, metadata=about, container=container)
        taken = await take_in(tx, whole)
        if taken.document is None:
            raise Refused(taken.reason or "The fact cannot be taken in.")
        await tx.execute(
            SQL["add_fact"],
            document=taken.document,
            scope=scope,
            run=run.id,
            evidence_scope=shown_by.scope,
            evidence_urn=shown_by.urn,
            quote=evidence.quote,
            seen_in=shown_by.id,
        )
    return taken.document


async def _check_evidence(tx: Tx, evidence: FactEvidence) -> Document:
    if not SHORTEST_QUOTE <= len(evidence.quote.strip()) <= LONGEST_QUOTE:
        raise Refused(f"A quote that shows a fact has from {SHORTEST_QUOTE} to {LONGEST_QUOTE:,} characters.")
    found = (await load_documents(tx, [evidence.document])).get(evidence.document)
    if found is None:
        raise Unknown(f"There is no document {evidence.document}.")
    if found.type in WRITTEN_BY_AGENTS:
        raise Refused(f"Document {found.id} was written by an agent: it is no evidence. Quote what it was made of.")
    page = await load_page(tx, found.id, evidence.page)
    if evidence.quote not in page.text:
        raise Refused(f"These words do not stand on page {evidence.page} of document {found.id}: quote them exactly.")
    return found


def _check_meaning(sentence: str, evidence: FactEvidence) -> None:
    """Refuse a fact that its quote does not say, by the rules by which answers are checked."""
    language = language_of(evidence.quote)
    shown = Passage(
        number=1,
        document=evidence.document,
        name="",
        title=None,
        type=None,
        page=evidence.page,
        start=0,
        stop=len(evidence.quote),
        heading="",
        language=language,
        text=evidence.quote,
        score=1.0,
        chunks=(),
    )
    checked, _ = check_sentence(sentence, (1,), [shown], language=language)
    if checked.verdict != "supported":
        raise Refused(f"The quote does not show this. {checked.reason} Quote the words that say it.")


async def tidy_facts(db: Database) -> int:
    """Remove the facts whose words stand nowhere any more; how many these were."""
    removed, after = 0, 0
    while True:
        async with db.transaction() as tx:
            facts = await tx.all(SQL["list_facts"], _Fact, after=after, limit=PORTION)
            there = await load_documents(tx, [one.seen_in for one in facts])
            for fact in facts:
                if fact.seen_in not in there:
                    removed += await _look_again(tx, fact)
        if len(facts) < PORTION:
            return removed
        after = facts[-1].document


async def _look_again(tx: Tx, fact: _Fact) -> bool:
    """The version in which the words stood is gone: they may stand in the one after it."""
    newest = await find_written(tx, fact.evidence_scope, fact.evidence_urn)
    if newest is not None and await _stands_in(tx, newest.id, fact.quote):
        await tx.execute(SQL["note_seen"], document=fact.document, seen_in=newest.id)
        return False
    await remove(tx, [fact.document])
    return True


async def _stands_in(tx: Tx, document: DocumentId, quote: str) -> bool:
    after = 0
    while pages := await load_pages(tx, document, after=after, limit=PAGES):
        if any(quote in page.text for page in pages):
            return True
        after = pages[-1].number
    return False
