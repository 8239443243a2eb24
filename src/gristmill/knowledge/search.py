"""Hybrid search: words by BM25 and meaning by vectors, fused by score, spread over sources."""

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from gristmill.db import Database, Row, Tx, array, queries
from gristmill.errors import GristmillError, Refused
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge import lexicon, vectors
from gristmill.knowledge.scopes import GLOBAL, Scope
from gristmill.knowledge.snippets import Marks, Snippet, snippet_of
from gristmill.knowledge.terms import fold
from gristmill.knowledge.vectors import Embedders, Filter, Model
from gristmill.models import Embedder, MiniLm

SQL = queries("gristmill.knowledge", "search.sql")

CANDIDATES = 100  # of each kind, at least
CHOICE = 3  # times the limit are looked at closely, so that there is a choice of sources …
SPARE = 20  # … and so many more than the limit at least
PER_DOCUMENT = 3  # hits of one document before others had their turn
ALIKE = 0.9  # of the words of two chunks in common: one says nothing that the other does not
LONGEST_QUERY = 20_000  # characters
NUMBER = 4  # bytes of one in a vector
PATIENCE = 10.0  # seconds for the query's vector
FAN = 50  # neighbours of a node, and chunks that name it, when the graph is followed …
SIFTED = 20  # … and so many times as many of these where a filter leaves only some
FADE = 0.5  # of the last hit's score, for each hop away
UNWRITABLE = re.compile("[\0\ud800-\udfff]")  # in no text of PostgreSQL
QUOTED = re.compile(r'"([^"]{2,})"|“([^”]{2,})”|„([^“”]{2,})[“”]')


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
    via: tuple[str, ...] = ()  # the nodes that led here, for what the graph added


class Hits(list[Hit]):
    """The hits, best first; `note` says what was missing."""

    note: str | None = None


async def search(
    db: Database, embedder: Embedders | None, query: str, scope: Scope = GLOBAL, *,
    alpha: float = 0.5, limit: int = 10, type: str | None = None, after: datetime | None = None, expand: int = 0,
) -> Hits:  # fmt: skip
    """The chunks that fit best; alpha 0 is BM25 alone, 1 is vectors alone.

    While another model is being filled, vectors are still those of the one before: give both embedders.
    """
    _check(query, alpha, limit, after, expand)
    embedders = vectors.at_hand(embedder)
    only = Filter(type, after)
    hits = Hits()
    if not query.strip():
        return hits
    question = _Question(embedders if alpha else [], query)
    most = max(limit * CHOICE, limit + SPARE)
    words = await _by_words(db, question, query, scope, only, max(most, CANDIDATES))
    # while nothing of the database is held: an endpoint takes its time
    answer = await question.answer(words.sight.model) if alpha else _Answer()
    async with db.reading() as tx:
        candidates = await _candidates(tx, words, answer, alpha, only)
        hits.note = candidates.note
        best = spread(await _looked_at(tx, candidates, words.sight.scopes, only, query, most), limit)
        hits += [_hit(row, candidates) for row in best]
        if expand and hits:
            hits += await _expanded(tx, hits, candidates, words.sight.scopes, only, expand, limit)
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


# --- candidates


@dataclass(frozen=True, slots=True)
class _Sight:
    """What is seen from a scope."""

    scopes: Sequence[ScopeId]
    languages: Sequence[str | None]
    model: Model | None  # of its vectors


@dataclass(frozen=True, slots=True)
class _Words:
    """What is found by words, and what the search by meaning has to know."""

    sight: _Sight
    found: lexicon.Found
    best: Sequence[int]
    most: int  # how many are wanted of each kind
    marks: Marks


async def _by_words(db: Database, question: "_Question", query: str, scope: Scope, only: Filter, most: int) -> _Words:
    async with db.reading() as tx:
        sight = await _seen(tx, scope)
        question.expect(sight.model)  # its vector is made while the words are looked up
        found = await lexicon.find(tx, sight.scopes, query[:LONGEST_QUERY], sight.languages)
        best = await _passing(tx, found, only, most)
    return _Words(sight, found, best, most, Marks(term for word in found.words for term in word.terms))


async def _seen(tx: Tx, scope: Scope) -> _Sight:
    row = await tx.one(SQL["sight"], client=scope.client, project=scope.project)
    assert row is not None
    model = Model(row.model, row.name, row.dimensions, current=True) if row.model else None
    return _Sight(row.scopes, row.languages, model)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What may be a hit, with both of its scores."""

    marks: Marks  # of the words that were found
    best: float  # the BM25 that a chunk with all the words would come near to
    bm25: dict[int, float]
    similar: dict[int, float]
    alpha: float  # as asked, or 0 where there are no vectors
    note: str | None
    floor: float = 0.0  # the least cosine of a chunk that has none of the words

    def scored(self) -> list[int]:
        """Best first. Both kinds of score are absolute: what does not match adds nothing, however few there are."""
        scores = {chunk: self.score(chunk) for chunk in self.bm25.keys() | self.similar.keys()}
        return sorted((chunk for chunk in scores if scores[chunk] > 0), key=lambda chunk: (-scores[chunk], chunk))

    def score(self, chunk: int) -> float:
        """0 for what is merely nearest: something always is, and a question about nothing here finds nothing."""
        words, meaning = self.bm25.get(chunk, 0.0), self.similar.get(chunk, 0.0)
        if words > 0:
            return self.alpha * max(meaning, 0.0) + (1 - self.alpha) * words / self.best
        return self.alpha * meaning if meaning >= self.floor else 0.0

    def lexical(self, chunk: int) -> float:
        return self.bm25.get(chunk, 0.0) / self.best if self.best else 0.0


async def _candidates(tx: Tx, words: _Words, answer: "_Answer", alpha: float, only: Filter) -> Candidates:
    """The best by words, the best by meaning, and for each of them its score of the other kind."""
    found, model = words.found, words.sight.model
    if model is None or answer.vector is None:
        return Candidates(words.marks, found.ranking.best, _bm25(found, words.best), {}, 0.0, answer.note)
    note = await vectors.unseen(tx, model)
    by_words: Sequence[int] = words.best if alpha < 1 else ()
    similar = await vectors.near(tx, model, answer.vector, words.sight.scopes, found.size, only, words.most, by_words)
    bm25 = _bm25(found, list(similar.keys() | set(by_words)))
    return Candidates(words.marks, found.ranking.best, bm25, similar, alpha, note, answer.floor)


def _bm25(found: lexicon.Found, chunks: Sequence[int]) -> dict[int, float]:
    return dict(zip(chunks, found.ranking.of(chunks), strict=True))


async def _passing(tx: Tx, found: lexicon.Found, only: Filter, most: int) -> list[int]:
    """The best by words that pass the filter, however far down the list they stand."""
    if only.passes_all:
        return found.ranking.top(most)
    passing: list[int] = []
    skip, size = 0, most
    while len(passing) < most and (some := found.ranking.top(size, skip)):
        rows = await tx.all(SQL["passing"], chunks=array(some), type=only.type, after=only.after)
        kept = {row.id for row in rows}
        passing += [chunk for chunk in some if chunk in kept]
        skip, size = skip + size, size * 4
    return passing[:most]


@dataclass(frozen=True, slots=True)
class _Answer:
    """The vector of a query, or why there is none."""

    vector: bytes | None = None
    note: str | None = None
    floor: float = 0.0  # the least cosine that means anything to the model


class _Question:
    """Asks for the vector of a query, by whichever of the embedders at hand made those of the chunks.

    The house's own model begins before the database says which one it wants: a vector takes as long as looking up the
    words. It is not called off when nobody waits any longer: that would end the process which has the model in memory.
    """

    def __init__(self, embedders: Sequence[Embedder], query: str) -> None:
        self._embedders, self._query = embedders, query[:LONGEST_QUERY]
        self._asked: tuple[str, asyncio.Task[_Answer]] | None = None  # which model, and its answer
        if {one.name for one in embedders} == {MiniLm.name}:
            self._ask(embedders[0])

    def expect(self, model: Model | None) -> None:
        """Begins, if an embedder of this model is at hand and it has not begun."""
        fitting = next((one for one in self._embedders if model and one.name == model.name), None)
        if fitting and not self._asked:
            self._ask(fitting)

    async def answer(self, model: Model | None) -> _Answer:
        """By the embedder of this model, if it is at hand."""
        if model is None:
            return _Answer(note="No chunk has a vector yet: these hits are by words alone.")
        if self._asked and self._asked[0] == model.name:
            return _fitting(await asyncio.shield(self._asked[1]), model)
        given = ", ".join(dict.fromkeys(one.name for one in self._embedders)) or "none"
        note = f"The vectors are those of {model.name} and the embedder is {given}: these hits are by words alone."
        return _Answer(note=note)

    def _ask(self, embedder: Embedder) -> None:
        self._asked = embedder.name, asyncio.create_task(_answered(embedder, self._query))


def _fitting(answer: _Answer, model: Model) -> _Answer:
    """A model may have changed behind its name: its old vectors are being replaced, and new ones do not fit them."""
    if answer.vector is None or len(answer.vector) == model.dimensions * NUMBER:
        return answer
    made, kept = len(answer.vector) // NUMBER, model.dimensions
    changed = f"{model.name} makes vectors of {made:,} numbers now, and the old ones have {kept:,}"
    return _Answer(note=f"{changed}: until they are replaced, hits are by words alone.")


async def _answered(embedder: Embedder, query: str) -> _Answer:
    try:
        async with asyncio.timeout(PATIENCE):
            return _Answer(await embedder.question(query), floor=embedder.floor)
    except TimeoutError:
        return _Answer(note=f"The embedder {embedder.name} did not answer in time: these hits are by words alone.")
    except GristmillError as error:
        return _Answer(note=f"These hits are by words alone: {error}")


# --- hits


async def _looked_at(
    tx: Tx, candidates: Candidates, scopes: Sequence[ScopeId], only: Filter, query: str, most: int
) -> list[Row]:
    """The best candidates in full; those that lack a quoted phrase fall behind."""
    phrases = [_folded(next(filter(None, one))) for one in QUOTED.findall(query)]
    rows = await _details(tx, candidates.scored()[: most if not phrases else None], scopes, only)
    return sorted(rows, key=lambda row: not all(phrase in _folded(row.text) for phrase in phrases)) if phrases else rows


def _folded(text: str) -> str:
    return " ".join(fold(word) for word in text.split())


async def _details(tx: Tx, chunks: Sequence[int], scopes: Sequence[ScopeId], only: Filter) -> list[Row]:
    rows = await tx.all(SQL["details"], chunks=array(chunks), scopes=scopes, type=only.type, after=only.after)
    found = {row.id: row for row in rows}
    return [found[chunk] for chunk in chunks if chunk in found]


def _hit(row: Row, candidates: Candidates) -> Hit:
    return Hit(
        score=round(candidates.score(row.id), 4), lexical=round(candidates.lexical(row.id), 4),
        bm25=round(candidates.bm25.get(row.id, 0.0), 4), similarity=candidates.similar.get(row.id), chunk=row.id,
        document=row.document, name=row.name, title=row.title, type=row.type, urn=row.urn, version=row.version,
        client=row.client, project=row.project, page=row.page, start=row.start, stop=row.stop, kind=row.kind,
        language=row.language, heading=row.heading, text=row.text,
        snippet=snippet_of(row.text, row.language, candidates.marks),
    )  # fmt: skip


def spread(best: Sequence[Row], limit: int) -> list[Row]:
    """The best; what repeats another, an older version, or the fourth of one document come after all others."""
    newest: dict[tuple[str, str, str], int] = {}
    for row in best:
        source = (row.client, row.project, row.urn)
        newest[source] = max(newest.get(source, 0), row.version)
    shown: Counter[DocumentId] = Counter()
    texts: list[frozenset[str]] = []
    first, behind = list[Row](), list[Row]()
    for row in best:
        words = frozenset(row.text.lower().split())
        old = row.version < newest[row.client, row.project, row.urn]
        if old or shown[row.document] >= PER_DOCUMENT or any(_alike(words, other) for other in texts):
            behind.append(row)
            continue
        shown[row.document] += 1
        texts.append(words)
        first.append(row)
        if len(first) == limit:
            break
    return (first + behind)[:limit]


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    if min(len(one), len(other)) < ALIKE * max(len(one), len(other)):
        return False
    common = len(one & other)
    return common >= ALIKE * (len(one) + len(other) - common)


# --- the graph


async def _expanded(
    tx: Tx, hits: Sequence[Hit], candidates: Candidates, scopes: Sequence[ScopeId], only: Filter, hops: int, most: int
) -> list[Hit]:
    """What is related to what the hits name, at most as many again; it never overtakes a hit."""
    known = [hit.chunk for hit in hits]
    naming = FAN if only.passes_all else FAN * SIFTED
    rows = await tx.all(
        SQL["expand"], chunks=known, scopes=scopes, hops=hops, fan=FAN, naming=naming, most=most, type=only.type,
        after=only.after,
    )  # fmt: skip
    led = {row.chunk: row for row in rows}
    added = await _details(tx, list(led), scopes, only)
    last = hits[-1].score
    return [
        replace(_hit(row, candidates), score=round(last * FADE ** led[row.id].hops, 4), via=tuple(led[row.id].keys))
        for row in added
    ]
