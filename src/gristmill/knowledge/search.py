"""Hybrid search: words by BM25 and meaning by vectors, fused by score, spread over sources."""

import asyncio
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from math import ceil
from typing import NamedTuple

from gristmill.db import Database, Tx, array, queries
from gristmill.errors import Refused
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge import vectors
from gristmill.knowledge.candidates import Candidates, CandidateSearch, find_candidates, load_search_space
from gristmill.knowledge.question import QueryEmbedder
from gristmill.knowledge.snippets import Snippet, snippet_of
from gristmill.knowledge.terms import fold
from gristmill.knowledge.vectors import Embedders, Filter
from gristmill.scopes import GLOBAL, Scope
from gristmill.settings import KnowledgeSettings

SQL = queries("gristmill.knowledge", "search.sql")

CANDIDATES = 100  # of each kind, at least
CANDIDATES_QUOTED = 500  # the same where the query quotes something, which the best candidates may lack
CHOICE = 3  # so many times the limit are looked at closely, so that there is a choice of sources …
SPARE = 20  # … and at least so many more than the limit
PER_DOCUMENT = 3  # hits of one document before other documents have their turn
ALIKE = 0.9  # a chunk that shares this part of its words with another one says nothing new
LONGEST_QUERY = 20_000  # characters
FAN = 50  # neighbours of a node, and chunks that name it, when the graph is followed
SIFT_FACTOR = 20  # so many times as many of these chunks are read where a filter drops most of them
FADE = 0.5  # the score of a chunk that the graph adds: this part of the last hit's, for each hop away
UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # characters that no text of PostgreSQL can hold
QUOTED = re.compile(r'"([^"]{2,})"|“([^”]{2,})”|„([^“”]{2,})[“”]')
DEFAULTS = KnowledgeSettings()


@dataclass(frozen=True, slots=True)
class Hit:
    """A chunk that answers a query, and why it stands where it stands."""

    score: float
    lexical: float  # BM25 as a share of what a chunk with all the words could reach
    bm25: float
    similarity: float | None  # cosine; None without a vector
    chunk: ChunkId
    document: DocumentId
    name: str
    title: str | None
    type: str | None
    urn: str
    part_of: str | None  # the name of the mail, mailbox or file that it lies in
    version: int
    client: str
    project: str
    page: int
    start: int
    stop: int
    kind: str
    language: str | None
    heading: str
    text: str
    snippet: Snippet
    record: int | None = None  # the id of the record that this is, if it is one
    columns: Mapping[str, str] | None = None  # of the record
    via: tuple[str, ...] = ()  # the nodes that led here, for what the graph added


class Hits(list[Hit]):
    """The hits, best first; `note` says what was missing."""

    note: str | None = None


async def search(
    db: Database,
    embedder: Embedders | None,
    query: str,
    scope: Scope | None = GLOBAL,
    *,
    alpha: float = 0.5,
    limit: int = 10,
    type: str | Sequence[str] | None = None,
    after: datetime | None = None,
    columns: Mapping[str, str] | None = None,
    expand: int = 0,
    per_document: int = PER_DOCUMENT,
    settings: KnowledgeSettings = DEFAULTS,
) -> Hits:
    """The chunks that fit best; alpha 0 is BM25 alone, 1 is vectors alone; `columns` are those of records.

    Without a scope everything is searched, of all clients: that is for the operator alone. Give the embedders of both
    models while one model replaces another: until all vectors are replaced, search compares those of the old model.
    `per_document` hits of one document come before other documents have their turn.
    """
    _check(query, alpha, limit, after, expand)
    hits = Hits()
    if not query.strip():
        return hits
    types = (type,) if isinstance(type, str) else tuple(type or ()) or None
    most = max(limit * CHOICE, limit + SPARE)
    request = CandidateSearch(
        query=query[:LONGEST_QUERY],
        alpha=alpha,
        only=Filter(types, after, columns or None),
        most=max(most, CANDIDATES_QUOTED if _find_phrases(query) else CANDIDATES),
        meaning_share=settings.meaning_share,
    )
    question = QueryEmbedder(vectors.available_embedders(embedder) if alpha else [], request.query)
    await asyncio.sleep(0)  # lets the model start before the database is asked: it takes longest
    space = await load_search_space(db, scope)
    candidates = await find_candidates(db, space, question, request)
    hits.note = candidates.note
    # `beside`: the connections that read the index of vectors go on with the details, and those that look up words
    # keep to words. Otherwise the next look-up would run on the core where the index was read (see Database.reading).
    async with db.reading(beside=True, seen_from=scope) as tx:
        best = await _choose_rows(tx, candidates, space.scopes, request.only, query, limit, most, per_document)
        hits += [_make_hit(row, candidates) for row in best]
        # all hits are asked, not only the first: a newer version stands before an older one that has the phrase
        if best and not any(_has_phrases(_find_phrases(query), row) for row in best):
            hits.note = " ".join(filter(None, [hits.note, "No hit has what is quoted, word for word."]))
        if expand and hits:
            client = scope.client if scope else ""  # aliases are a client's: all clients together have none
            hits += await _follow_graph(tx, hits, candidates, client, space.scopes, request.only, expand, limit)
    return hits


def _check(query: str, alpha: float, limit: int, after: datetime | None, expand: int) -> None:
    if not 0 <= alpha <= 1:
        raise Refused(f"alpha is {alpha:g}: it goes from 0 (words) to 1 (meaning).")
    if not 1 <= limit <= 1_000:
        raise Refused(f"The limit is {limit:,}: it goes from 1 to 1,000.")
    if not 0 <= expand <= 2:
        raise Refused(f"The graph can be followed over 0, 1 or 2 steps, not {expand}.")
    if after is not None and after.tzinfo is None:
        raise Refused("“after” needs a time zone, or nobody knows when it is.")
    if UNWRITABLE.search(query):
        raise Refused("The query holds a NUL or half a character: remove it.")


# --- hits


class ChunkRow(NamedTuple):
    """A chunk with its document, as the statement `details` selects it."""

    id: ChunkId
    document: DocumentId
    page: int
    start: int
    stop: int
    kind: str
    language: str | None
    heading: str
    text: str
    name: str
    title: str | None
    type: str | None
    urn: str
    part_of: str | None
    version: int
    client: str
    project: str
    record: int | None
    columns: dict[str, str] | None
    outdated: bool  # the same source has a newer version


async def _choose_rows(
    tx: Tx,
    candidates: Candidates,
    scopes: Sequence[ScopeId],
    only: Filter,
    query: str,
    limit: int,
    most: int,
    per_document: int,
) -> list[ChunkRow]:
    """The best candidates, spread over sources; chunks that lack a quoted phrase fall behind.

    A few more rows than are shown are mostly enough. The others are read in two cases: when the first rows repeat each
    other, and when one of them is outdated, because its newer version may be among the others.
    """
    phrases = _find_phrases(query)
    ranked = candidates.best_first()
    enough = limit + limit // 2
    rows, first, behind = list[ChunkRow](), list[ChunkRow](), list[ChunkRow]()
    for portion in [ranked] if phrases else [ranked[:enough], ranked[enough:most]]:
        rows += await _load_details(tx, portion, scopes, only)
        rows.sort(key=lambda row: not _has_phrases(phrases, row))
        first, behind = spread_over_sources(rows, limit, per_document)
        if len(first) == limit and not any(row.outdated for row in first):
            break
    return (first + behind)[:limit]


def _has_phrases(phrases: Iterable[str], row: ChunkRow) -> bool:
    return all(phrase in _fold_text(row.text) for phrase in phrases)


def _find_phrases(query: str) -> list[str]:
    return [_fold_text(next(filter(None, one))) for one in QUOTED.findall(query)]


def _fold_text(text: str) -> str:
    return " ".join(fold(word) for word in text.split())


async def _load_details(tx: Tx, chunks: Sequence[int], scopes: Sequence[ScopeId], only: Filter) -> list[ChunkRow]:
    """The rows of these chunks, in this order; without chunks that are gone, or that the reader may not see."""
    if not chunks:
        return []
    rows = await tx.all_binary(SQL["details"], ChunkRow, chunks=array(chunks), scopes=array(scopes), **only.params)
    found: dict[int, ChunkRow] = {row.id: row for row in rows}
    return [found[chunk] for chunk in chunks if chunk in found]


def _make_hit(row: ChunkRow, candidates: Candidates) -> Hit:
    return Hit(
        score=round(candidates.scores.get(row.id, 0.0), 4),
        lexical=round(candidates.lexical_share(row.id), 4),
        bm25=round(candidates.bm25.get(row.id, 0.0), 4),
        similarity=candidates.similar.get(row.id),
        chunk=row.id,
        document=row.document,
        name=row.name,
        title=row.title,
        type=row.type,
        urn=row.urn,
        part_of=row.part_of,
        version=row.version,
        client=row.client,
        project=row.project,
        page=row.page,
        start=row.start,
        stop=row.stop,
        kind=row.kind,
        language=row.language,
        heading=row.heading,
        text=row.text,
        snippet=snippet_of(row.text, row.language, candidates.highlighter),
        record=row.record,
        columns=row.columns,
    )


def spread_over_sources(
    best: Sequence[ChunkRow], limit: int, per_document: int = PER_DOCUMENT
) -> tuple[list[ChunkRow], list[ChunkRow]]:
    """The rows to show first, at most `limit`, and those that fall behind them.

    Behind fall older versions, texts that repeat another, and further chunks of a document that is shown often enough.
    """
    newest: dict[tuple[str, str, str], int] = {}
    for row in best:
        source = (row.client, row.project, row.urn)
        newest[source] = max(newest.get(source, 0), row.version)
    shown: Counter[tuple[DocumentId, int]] = Counter()
    shown_texts = _ShownTexts()
    first, behind = list[ChunkRow](), list[ChunkRow]()
    for row in best:
        old = row.version < newest[row.client, row.project, row.urn]
        # each row of a table speaks for itself, though all of them hang on one document
        own = row.document, row.record or 0
        if old or shown[own] >= per_document or shown_texts.repeats(row.text):
            behind.append(row)
            continue
        shown[own] += 1
        first.append(row)
        if len(first) == limit:
            break
    return first, behind


class _ShownTexts:
    """The texts that are shown, as sets of words."""

    def __init__(self) -> None:
        self._texts: list[frozenset[str]] = []

    def repeats(self, text: str) -> bool:
        """Whether an alike text is shown already; if not, this text counts as shown from now on.

        Two alike texts differ in few words. So a text that lacks more than a few of the first words of this one cannot
        be alike. That test of a quarter of the words tells most texts apart, in a third of the time.
        """
        read = text.lower().split()
        words, first = frozenset(read), frozenset(read[: len(read) // 4 + 1])
        least, most = ceil(ALIKE * len(words)), len(words) / ALIKE
        shared = len(first) - (len(words) - least)
        for other in self._texts:
            if least <= len(other) <= most and len(first & other) >= shared:
                common = len(words & other)
                if common >= ALIKE * (len(words) + len(other) - common):
                    return True
        self._texts.append(words)
        return False


# --- the graph


class _GraphRow(NamedTuple):
    """A chunk that the graph leads to: over how many hops, and by which nodes."""

    chunk: ChunkId
    hops: int
    keys: list[str]


async def _follow_graph(
    tx: Tx,
    hits: Sequence[Hit],
    candidates: Candidates,
    client: str,
    scopes: Sequence[ScopeId],
    only: Filter,
    hops: int,
    most: int,
) -> list[Hit]:
    """Chunks that name neighbours of the nodes that the hits name; at most `most`, and each scored below every hit."""
    rows = await tx.all(
        SQL["expand"],
        _GraphRow,
        chunks=[hit.chunk for hit in hits],
        client=client,
        scopes=scopes,
        hops=hops,
        fan=FAN,
        naming=FAN if only.passes_all else FAN * SIFT_FACTOR,
        most=most,
        **only.params,
    )
    led = {row.chunk: row for row in rows}
    added = await _load_details(tx, list(led), scopes, only)
    last = hits[-1].score
    return [
        replace(
            _make_hit(row, candidates), score=round(last * FADE ** led[row.id].hops, 4), via=tuple(led[row.id].keys)
        )
        for row in added
    ]
