"""What may be a hit: looked for by words and by meaning at a time, and scored by both."""

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from gristmill.db import Database, array, queries
from gristmill.ids import ScopeId
from gristmill.knowledge import lexicon, vectors
from gristmill.knowledge.question import QueryVector, Question
from gristmill.knowledge.snippets import Highlighter
from gristmill.knowledge.vectors import Filter, Model
from gristmill.scopes import Scope

if TYPE_CHECKING:
    from gristmill.knowledge.postings import Ranking

A = TypeVar("A")
B = TypeVar("B")
SQL = queries("gristmill.knowledge", "candidates.sql")

MANY = 50_000  # postings take so long to rank that the index would wait for us to pass the vector on


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """What is load_search_space from a scope."""

    scopes: Sequence[ScopeId]
    size: int  # in chunks
    languages: Sequence[str | None]
    model: Model | None  # of its vectors


async def load_search_space(db: Database, scope: Scope) -> SearchSpace:
    async with db.reading() as tx:
        row = await tx.one(SQL["search_space"], client=scope.client, project=scope.project)
    assert row is not None
    model = Model(row.model, row.name, row.dimensions, current=True) if row.model else None
    return SearchSpace(row.scopes, row.size, row.languages, model)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What may be a hit, with its scores."""

    highlighter: Highlighter  # of the words that were found
    best: float  # the BM25 that a chunk with all the words would come near to
    bm25: dict[int, float]  # of each of them; 0 for one that has none of the words
    similar: dict[int, float]
    scores: dict[int, float]  # of those that have one
    note: str | None

    def best_first(self) -> list[int]:
        """Best first."""
        return [chunk for _, chunk in sorted([(-score, chunk) for chunk, score in self.scores.items()])]

    def lexical_share(self, chunk: int) -> float:
        return self.bm25.get(chunk, 0.0) / self.best if self.best else 0.0


def fuse_scores(
    bm25: Mapping[int, float], best: float, similar: Mapping[int, float], alpha: float, floor: float
) -> dict[int, float]:
    """Both kinds of score are absolute: what does not match adds nothing, however few there are.

    What is merely nearest has none: something always is, and a question about nothing here finds nothing.
    """
    scores: dict[int, float] = {}
    for chunk, words in bm25.items():
        meaning = similar.get(chunk, 0.0)
        if words > 0:
            scores[chunk] = alpha * max(meaning, 0.0) + (1 - alpha) * words / best
        elif meaning >= floor:
            scores[chunk] = alpha * meaning
    return {chunk: score for chunk, score in scores.items() if score > 0}


async def find_candidates(
    db: Database, space: SearchSpace, question: Question, query: str, alpha: float, only: Filter, most: int
) -> Candidates:
    """The best by words and the best by meaning, and for each of them its score of the other kind.

    Both are looked for at a time, and each asks for the query's vector by itself: nothing of the database is held while
    an endpoint thinks.
    """
    question.start(space.model)
    by_words = _find_by_words(db, space, question, query, alpha, only, most)
    by_meaning = _find_by_meaning(db, space, question, only, most) if alpha else _find_nothing()
    words, meaning = await _await_both(by_words, by_meaning)
    similar = words.similar | meaning.similar
    others = [chunk for chunk in meaning.similar if chunk not in words.bm25]
    bm25, best = words.bm25 | words.ranking.scores_of(others), words.ranking.best
    scores = fuse_scores(bm25, best, similar, alpha if meaning.answer.vector else 0.0, meaning.answer.floor)
    return Candidates(words.highlighter, best, bm25, similar, scores, meaning.note)


async def _await_both(one: Awaitable[A], other: Coroutine[Any, Any, B]) -> tuple[A, B]:
    """At a time; when one fails, the other is called off."""
    beside = asyncio.create_task(other)
    try:
        return await one, await beside
    except BaseException:
        beside.cancel()
        await asyncio.gather(beside, return_exceptions=True)
        raise


@dataclass(frozen=True, slots=True)
class _WordMatches:
    """What is found by words, and how near the best of it is in meaning."""

    ranking: "Ranking"
    highlighter: Highlighter
    bm25: dict[int, float]
    similar: dict[int, float]


async def _find_by_words(
    db: Database, space: SearchSpace, question: Question, query: str, alpha: float, only: Filter, most: int
) -> _WordMatches:
    async with db.reading() as tx:
        found = await lexicon.look_up(tx, space.scopes, query, space.languages)
    if found.posting_count > MANY:
        await question.vector_of(space.model)  # then the index of vectors is at work meanwhile
    ranking = found.rank()
    highlighter = Highlighter(term for word in found.words for term in word.terms)
    if alpha == 1 and (await question.vector_of(space.model)).vector:
        return _WordMatches(ranking, highlighter, {}, {})
    best = await _best_passing(db, ranking, only, most)
    answer = await question.vector_of(space.model)
    if space.model is None or answer.vector is None:
        return _WordMatches(ranking, highlighter, ranking.scores_of(best), {})
    async with db.reading() as tx:
        near = await vectors.compute_cosines(tx, space.model, answer.vector, best)
    return _WordMatches(ranking, highlighter, ranking.scores_of(best), near)


@dataclass(frozen=True, slots=True)
class _MeaningMatches:
    """What is found by meaning, and what is not to be load_search_space that way."""

    answer: QueryVector
    similar: dict[int, float]
    note: str | None


async def _find_by_meaning(
    db: Database, space: SearchSpace, question: Question, only: Filter, most: int
) -> _MeaningMatches:
    answer = await question.vector_of(space.model)
    if space.model is None or answer.vector is None:
        return _MeaningMatches(answer, {}, answer.note)
    async with db.reading(beside=True) as tx:
        note = await vectors.describe_refill(tx, space.model)
        near = await vectors.find_nearest(tx, space.model, answer.vector, space.scopes, space.size, only, most)
    return _MeaningMatches(answer, near, note)


async def _find_nothing() -> _MeaningMatches:
    return _MeaningMatches(QueryVector(), {}, None)


async def _best_passing(db: Database, ranking: "Ranking", only: Filter, most: int) -> list[int]:
    """The best by words that pass the filter, however far down the list they stand."""
    if only.passes_all:
        return ranking.top(most)
    passing: list[int] = []
    skip, size = 0, most
    async with db.reading() as tx:
        while len(passing) < most and (some := ranking.top(size, skip)):
            rows = await tx.all(SQL["passing_chunks"], chunks=array(some), **only.params)
            kept = {row.id for row in rows}
            passing += [chunk for chunk in some if chunk in kept]
            skip, size = skip + size, size * 4
    return passing[:most]
