"""The candidates for hits: searched by words and by meaning at the same time, and scored by both."""

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from gristmill.db import Database, array, queries
from gristmill.ids import ScopeId
from gristmill.knowledge import lexicon, vectors
from gristmill.knowledge.question import QueryEmbedder, QueryVector
from gristmill.knowledge.snippets import Highlighter
from gristmill.knowledge.vectors import Filter, Model
from gristmill.scopes import Scope

if TYPE_CHECKING:
    from gristmill.knowledge.postings import Ranking

A = TypeVar("A")
B = TypeVar("B")
SQL = queries("gristmill.knowledge", "candidates.sql")

# Ranking so many postings blocks the event loop for so long that the vector of the query is sent to the database first.
MANY = 50_000


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What a search from one scope works on; from None everything is seen."""

    seen_from: Scope | None
    scopes: Sequence[ScopeId]
    size: int  # in chunks
    languages: Sequence[str | None]
    model: Model | None  # of its vectors


@dataclass(frozen=True, slots=True)
class CandidateSearch:
    """What is searched for, and how."""

    query: str
    alpha: float  # 0 is words alone, 1 is meaning alone
    only: Filter
    most: int  # candidates of each kind
    meaning_share: float  # see cut_weak


class _SpaceRow(NamedTuple):
    scopes: Sequence[ScopeId]
    model: int | None
    name: str
    dimensions: int
    size: int
    languages: Sequence[str | None]


async def load_search_space(db: Database, scope: Scope | None) -> SearchSpace:
    named = {"client": scope.client, "project": scope.project} if scope else {"client": None, "project": None}
    async with db.reading(seen_from=scope) as tx:
        row = await tx.one(SQL["search_space"], _SpaceRow, **named)
    assert row is not None
    model = Model(row.model, row.name, row.dimensions, current=True) if row.model else None
    return SearchSpace(scope, row.scopes, row.size, row.languages, model)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Chunks that may become hits, with their scores."""

    highlighter: Highlighter  # of the words that were found
    best: float  # the BM25 that a chunk with all the words would come near to
    bm25: dict[int, float]  # of every candidate; 0 for one that has none of the words
    similar: dict[int, float]  # the cosine, by chunk
    scores: dict[int, float]  # only of chunks that may be shown
    note: str | None

    def best_first(self) -> list[int]:
        return [chunk for _, chunk in sorted([(-score, chunk) for chunk, score in self.scores.items()])]

    def lexical_share(self, chunk: int) -> float:
        """The BM25 of a chunk as a share of the best that is possible."""
        return self.bm25.get(chunk, 0.0) / self.best if self.best else 0.0


def fuse_scores(
    bm25: Mapping[int, float], best: float, similar: Mapping[int, float], alpha: float, floor: float
) -> dict[int, float]:
    """One score for each chunk, from its words and its meaning; only scores above 0 are returned.

    Both parts are absolute, not ranks: a part that does not match adds nothing, however few candidates there are. A
    chunk without any of the words needs a cosine of at least `floor`. Some chunk is always the nearest, and a question
    about something that is not here must find nothing.
    """
    scores: dict[int, float] = {}
    for chunk, words in bm25.items():
        meaning = similar.get(chunk, 0.0)
        if words > 0:
            scores[chunk] = alpha * max(meaning, 0.0) + (1 - alpha) * words / best
        elif meaning >= floor:
            scores[chunk] = alpha * meaning
    return {chunk: score for chunk, score in scores.items() if score > 0}


def cut_weak(
    scores: Mapping[int, float], bm25: Mapping[int, float], similar: Mapping[int, float], share: float
) -> dict[int, float]:
    """The scores of the chunks for which there is evidence beside that of the best one.

    A word in common is evidence. A chunk without one must reach this share of the best cosine: behind one right hit,
    the next neighbours in meaning are mostly unrelated.
    """
    needed = share * max((similar[chunk] for chunk in scores if chunk in similar), default=0.0)
    return {
        chunk: score for chunk, score in scores.items() if bm25.get(chunk, 0.0) > 0 or similar.get(chunk, 0.0) >= needed
    }


async def find_candidates(
    db: Database, space: SearchSpace, question: QueryEmbedder, request: CandidateSearch
) -> Candidates:
    """The best by words and the best by meaning, and for each of them its score of the other kind.

    Both searches run at the same time, and each waits for the query's vector by itself: no connection to the database
    is held while an endpoint computes that vector.
    """
    question.start(space.model)
    by_words = _find_by_words(db, space, question, request)
    by_meaning = _find_by_meaning(db, space, question, request) if request.alpha else _find_nothing()
    words, meaning = await _await_both(by_words, by_meaning)
    similar = words.similar | meaning.similar
    others = [chunk for chunk in meaning.similar if chunk not in words.bm25]
    bm25, best = words.bm25 | words.ranking.scores_of(others), words.ranking.best
    alpha = request.alpha if meaning.asked.vector else 0.0
    scores = fuse_scores(bm25, best, similar, alpha, meaning.asked.floor)
    scores = cut_weak(scores, bm25, similar, request.meaning_share)
    return Candidates(words.highlighter, best, bm25, similar, scores, meaning.note)


async def _await_both(one: Awaitable[A], other: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """Runs both at the same time; when one fails, the other is cancelled."""
    second = asyncio.create_task(other)
    try:
        return await one, await second
    except BaseException:
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        raise


@dataclass(frozen=True, slots=True)
class _WordMatches:
    """Chunks that were found by words, and the cosines of the best of them."""

    ranking: "Ranking"
    highlighter: Highlighter
    bm25: dict[int, float]
    similar: dict[int, float]


async def _find_by_words(
    db: Database, space: SearchSpace, question: QueryEmbedder, request: CandidateSearch
) -> _WordMatches:
    async with db.reading(seen_from=space.seen_from) as tx:
        found = await lexicon.look_up(tx, space.scopes, request.query, space.languages)
    if found.posting_count > MANY:
        await question.vector_of(space.model)  # then the index of vectors works while we rank
    ranking = found.rank()
    highlighter = Highlighter(term for word in found.words for term in word.terms)
    if request.alpha == 1 and (await question.vector_of(space.model)).vector:
        return _WordMatches(ranking, highlighter, {}, {})
    best = await _best_passing(db, space, ranking, request.only, request.most)
    asked = await question.vector_of(space.model)
    if space.model is None or asked.vector is None:
        return _WordMatches(ranking, highlighter, ranking.scores_of(best), {})
    async with db.reading(seen_from=space.seen_from) as tx:
        near = await vectors.compute_cosines(tx, space.model, asked.vector, best)
    return _WordMatches(ranking, highlighter, ranking.scores_of(best), near)


@dataclass(frozen=True, slots=True)
class _MeaningMatches:
    """Chunks that were found by meaning, and a note on chunks that cannot be found that way."""

    asked: QueryVector
    similar: dict[int, float]
    note: str | None


async def _find_by_meaning(
    db: Database, space: SearchSpace, question: QueryEmbedder, request: CandidateSearch
) -> _MeaningMatches:
    asked = await question.vector_of(space.model)
    if space.model is None or asked.vector is None:
        return _MeaningMatches(asked, {}, asked.note)
    async with db.reading(beside=True, seen_from=space.seen_from) as tx:
        note = await vectors.describe_refill(tx, space.model)
        near = await vectors.find_nearest(
            tx, space.model, asked.vector, space.scopes, space.size, request.only, request.most
        )
    return _MeaningMatches(asked, near, note)


async def _find_nothing() -> _MeaningMatches:
    return _MeaningMatches(QueryVector(), {}, None)


async def _best_passing(db: Database, space: SearchSpace, ranking: "Ranking", only: Filter, most: int) -> list[int]:
    """The best by words that pass the filter, however far down the ranking they stand."""
    if only.passes_all:
        return ranking.top(most)
    passing: list[int] = []
    skip, size = 0, most
    async with db.reading(seen_from=space.seen_from) as tx:
        while len(passing) < most and (some := ranking.top(size, skip)):
            kept = set(await tx.values(SQL["passing_chunks"], int, chunks=array(some), **only.params))
            passing += [chunk for chunk in some if chunk in kept]
            skip, size = skip + size, size * 4
    return passing[:most]
