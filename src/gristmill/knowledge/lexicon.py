"""The lexicon: which chunk has which terms, and how well chunks fit the words of a query (BM25)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby, islice
from math import log
from typing import TYPE_CHECKING

from gristmill.db import Database, Row, Tx, queries
from gristmill.ids import ChunkId, ScopeId
from gristmill.knowledge.terms import Wanted, wanted
from gristmill.queue import Done, Envelope, Unique, add_schedule
from gristmill.tasks import FoldTerms, TidyTerms

if TYPE_CHECKING:
    from gristmill.knowledge.postings import Postings, Ranking

SQL = queries("gristmill.knowledge", "lexicon.sql")

# --- searching

MOST_WORDS = 48  # of a query, the rarest: a page pasted into the search box has hundreds
LOOKED_UP = 2_000  # … of these first terms
UBIQUITOUS = 0.4  # a word that so many of the chunks have says nothing …
ENOUGH = 1_000  # … where there are enough chunks to say so


@dataclass(frozen=True, slots=True)
class Overview:
    """What can be seen from some scopes."""

    segments: list[int]
    size: int  # in chunks
    length: int  # of all of them, in words
    languages: list[str | None]
    fresh: int  # chunks in no segment yet
    gone: list[int]  # chunks that may still be in one


@dataclass(frozen=True, slots=True)
class Found:
    """Every chunk that has one of the words, scored, and the words that counted."""

    ranking: "Ranking"
    words: list[Wanted]


async def overview(tx: Tx, scopes: Sequence[ScopeId]) -> Overview:
    row = await tx.one(SQL["overview"], scopes=scopes)
    assert row is not None
    return Overview(row.segments, row.size, row.length, row.languages, row.fresh, row.gone)


async def find(tx: Tx, scopes: Sequence[ScopeId], query: str, seen: Overview) -> Found:
    """BM25 of all chunks in these scopes. Ask within one snapshot: a fold moves terms between two statements."""
    from gristmill.knowledge import postings  # noqa: PLC0415 numpy takes a tenth of a second: only for who searches

    lists: dict[str, list[Postings]] = {}
    asked = wanted(query, seen.languages)[:LOOKED_UP]
    fresh = await tx.all(SQL["fresh_postings"], scopes=scopes, terms=_terms(asked)) if asked and seen.fresh else []
    for term, rows in groupby(sorted(fresh), key=lambda row: row.term):
        lists[term] = [postings.made(*zip(*((row.chunk, row.length, row.count) for row in rows), strict=True))]
    words = await _telling(tx, seen, asked, Counter(row.term for row in fresh))
    for row in await tx.bare(SQL["postings"], segments=seen.segments, terms=_terms(words)) if words else ():
        lists.setdefault(row.term, []).append(postings.unpacked(row.data))
    joined = {term: postings.joined(parts) for term, parts in lists.items()}
    of_words = [([joined[term] for term in word.terms if term in joined], word.times) for word in words]
    return Found(postings.ranked(postings.Corpus(seen.size, seen.length), of_words, seen.gone), words)


async def _telling(tx: Tx, seen: Overview, asked: Sequence[Wanted], found: Counter[str]) -> list[Wanted]:
    """The words that occur and tell chunks apart; those that are everywhere only if nothing else was asked for."""
    rows = await tx.all(SQL["frequencies"], segments=seen.segments, terms=_terms(asked), size=9) if asked else []
    found.update({row.term: row.chunks for row in rows})
    frequencies = {word: max(found[term] for term in word.terms) for word in asked}
    occurring = sorted((word for word in asked if frequencies[word]), key=lambda word: frequencies[word])
    most = UBIQUITOUS * seen.size if seen.size >= ENOUGH else seen.size
    telling = [word for word in occurring if frequencies[word] <= most]
    return (telling or ([] if len(occurring) < len(asked) else occurring))[:MOST_WORDS]


def _terms(words: Iterable[Wanted]) -> list[str]:
    return sorted({term for word in words for term in word.terms})


# --- gathering

FEW = 256  # fresh chunks that are as well looked through one by one
MANY = 4_096  # fresh chunks gathered at a time: a bound for memory
TIER = 4  # segments of like size that become one: each posting is rewritten a few times, each term read in few places
ROTTEN = 0.05  # of a segment, when it is written anew without what is gone
PATIENCE = timedelta(days=1)  # … and when that happens at the latest
PORTION = 5_000  # terms read at a time
HOURLY = "17 * * * *"


def folding(scope: ScopeId) -> Envelope:
    """Has the terms of this scope put in order, once for all who ask until it is done.

    What comes while it runs may come too late for it, and nobody else is sent: that is left to the next one who asks,
    or to the hourly `tidy_terms`.
    """
    return Envelope(FoldTerms(scope), unique=Unique(f"fold:{scope}"))


def folding_after(chunk: ChunkId, scope: ScopeId) -> list[Envelope]:
    """What is sent when the terms of a chunk are written: one in so many asks for a fold, and nobody has to count."""
    return [folding(scope)] if chunk % FEW == 0 else []


async def tidy_hourly(tx: Tx) -> None:
    """Stated by every worker that can do it; once there, it stays as somebody has set it."""
    await add_schedule(tx, TidyTerms.kind, TidyTerms(), cron=HOURLY, replace=True)


async def tidy_terms(_: TidyTerms, *, db: Database) -> Done:
    """Asks for a fold of every scope that has enough fresh chunks, or any that are gone: some are overdue by now."""
    async with db.transaction() as tx:
        scopes = await tx.all(SQL["untidy"], few=FEW)
    return Done(then=[folding(row.id) for row in scopes])


async def fold_terms(task: FoldTerms, *, db: Database) -> Done:
    """Gathers fresh terms into segments, forgets those of chunks that are gone, and adds up what documents counted.

    Every step is a transaction that leaves the same terms in fewer places: killed at any point, nothing is lost or
    counted twice, and the next fold goes on.
    """
    while await _gather(db, task.scope):
        pass
    while await _merge(db, task.scope):
        pass
    while await _purge(db, task.scope):
        pass
    async with db.transaction() as tx:
        await tx.one(SQL["lock_scope"], scope=task.scope)
        await tx.execute(SQL["fold_tally"], scope=task.scope)
    return Done()


async def _gather(db: Database, scope: ScopeId) -> bool:
    """Makes a segment of fresh terms; whether there may be enough for another."""
    from gristmill.knowledge import postings  # noqa: PLC0415 as above

    async with db.transaction() as tx:
        await tx.one(SQL["lock_scope"], scope=scope)
        if await tx.value(SQL["count_fresh"], scope=scope, most=FEW) < FEW:
            return False
        rows = await tx.all(SQL["take_fresh"], scope=scope, most=MANY)
        if not rows:
            return False
        rows.sort(key=lambda row: row.chunk)
        segment = await tx.value(
            SQL["make_segment"], scope=scope, size=len(rows), length=sum(row.length for row in rows),
            languages=sorted({row.language for row in rows if row.language}),
            chunks=postings.ids_written(row.chunk for row in rows),
        )  # fmt: skip
        counted = [postings.Counted(row.chunk, row.length, row.terms) for row in rows]
        await tx.copy(SQL["copy_postings"], _copied(segment, postings.packed(counted)))
        return True


async def _merge(db: Database, scope: ScopeId) -> bool:
    """Makes one segment of several; whether there was something to do."""
    async with db.transaction() as tx:
        await tx.one(SQL["lock_scope"], scope=scope)
        alike = mergeable([(row.id, row.size) for row in await tx.all(SQL["segments"], scope=scope)])
        if not alike:
            return False
        into = await tx.value(SQL["merge_segments"], segments=alike)
        await tx.execute(SQL["merge_postings"], into=into, segments=alike)
        await tx.execute(SQL["drop_segments"], segments=alike)
        return True


def mergeable(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """Segments (id, size) to be made one: all up to the largest tier that is full."""
    tiers: dict[int, list[int]] = {}
    for segment, size in sizes:
        tiers.setdefault(int(log(max(size, FEW) / FEW, TIER)), []).append(segment)
    full = max((tier for tier, segments in tiers.items() if len(segments) >= TIER), default=None)
    return [] if full is None else [one for tier, segments in tiers.items() if tier <= full for one in segments]


async def _purge(db: Database, scope: ScopeId) -> bool:
    """Writes one segment anew without the chunks that are gone; whether there was one in need of it."""
    from gristmill.knowledge import postings  # noqa: PLC0415 as above

    async with db.transaction() as tx:
        await tx.one(SQL["lock_scope"], scope=scope)
        gone = await tx.all(SQL["gone_of"], scope=scope, patience=PATIENCE)
        if not gone:
            return False
        lost = {row.chunk for row in gone}
        overdue = {row.chunk for row in gone if row.overdue}
        standing: set[int] = set()
        for segment in await tx.all(SQL["segment_chunks"], scope=scope):
            chunks = postings.ids(segment.chunks).tolist()
            rotten = lost.intersection(chunks)
            if rotten and (len(rotten) >= ROTTEN * segment.size or rotten & overdue):
                await _rewrite(tx, scope, segment, rotten)
                return True
            standing |= rotten
        await tx.execute(SQL["forget_gone"], scope=scope, chunks=sorted(lost - standing))
        return False


async def _rewrite(tx: Tx, scope: ScopeId, segment: Row, rotten: set[int]) -> None:
    from gristmill.knowledge import postings  # noqa: PLC0415 as above

    left = [chunk for chunk in postings.ids(segment.chunks).tolist() if chunk not in rotten]
    if left:
        into = await tx.value(
            SQL["make_segment"], scope=scope, size=len(left), length=segment.length * len(left) // segment.size,
            languages=segment.languages, chunks=postings.ids_written(left),
        )  # fmt: skip
        after = ""
        while rows := await tx.all(SQL["portion"], segment=segment.id, after=after, most=PORTION):
            kept = ((row.term, postings.without(row.data, sorted(rotten))) for row in rows)
            await tx.copy(SQL["copy_postings"], _copied(into, kept))
            after = rows[-1].term
    await tx.execute(SQL["drop_segments"], segments=[segment.id])


def _copied(segment: int, terms: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """As COPY reads it, a thousand terms at a time."""
    for some in batched(terms):
        yield b"".join(
            b"%d\t%s\t\\\\x%s\n" % (segment, term.replace("\\", "\\\\").encode(), data.hex().encode())
            for term, data in some
            if data
        )


def batched(terms: Iterable[tuple[str, bytes]], size: int = 1_000) -> Iterator[list[tuple[str, bytes]]]:
    """The same, in lists."""
    rest = iter(terms)
    while some := list(islice(rest, size)):
        yield some
