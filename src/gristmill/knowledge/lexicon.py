"""The lexicon: which chunk has which terms, and how well chunks fit the words of a query (BM25)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from math import log
from typing import TYPE_CHECKING

from gristmill.db import Database, Row, Tx, array, queries
from gristmill.ids import ChunkId, ScopeId
from gristmill.knowledge.letters import FoldTerms, TidyTerms
from gristmill.knowledge.terms import QueryWord, query_words
from gristmill.queue import Done, Envelope, Unique

if TYPE_CHECKING:
    from gristmill.knowledge.postings import Postings, Ranking

SQL = queries("gristmill.knowledge", "lexicon.sql")

# --- searching

MOST_WORDS = 48  # of a query, the rarest: a page pasted into the search box has hundreds
LOOKED_UP = 2_000  # … of these first terms
UBIQUITOUS = 0.2  # a word that so many of the chunks have says little, and has the longest postings …
ENOUGH = 1_000  # … where there are enough chunks to say so


@dataclass(frozen=True, slots=True)
class WordLookup:
    """The words of a query that tell chunks apart, and what the lexicon says of them."""

    words: list[QueryWord]
    book: "_TermStatistics"

    @property
    def posting_count(self) -> int:
        """How many there are to rank."""
        return sum(len(part) for parts in self._postings_by_term().values() for part in parts)

    def rank(self) -> "Ranking":
        """Every chunk that has one of the words, scored by BM25."""
        from gristmill.knowledge import postings  # noqa: PLC0415 numpy takes a tenth of a second: only for who searches

        joined = {term: postings.join_postings(parts) for term, parts in self._postings_by_term().items()}
        of_words = [([joined[term] for term in word.terms if term in joined], word.times) for word in self.words]
        return postings.rank_chunks(postings.Corpus(self.book.size, self.book.length), of_words, self.book.gone)

    def _postings_by_term(self) -> "dict[str, list[Postings]]":
        """Those of its words; others may have been read with them."""
        terms = {term for word in self.words for term in word.terms}
        return {term: parts for term, parts in self.book.lists.items() if term in terms}


async def look_up(tx: Tx, scopes: Sequence[ScopeId], query: str, spoken: Iterable[str | None]) -> WordLookup:
    """By the forms that the words of the query have in these languages."""
    asked = query_words(query, spoken)[:LOOKED_UP]
    book = await _read_terms(tx, scopes, asked, *((UBIQUITOUS, ENOUGH) if len(asked) <= MOST_WORDS else (0, 0)))
    words = _choose_words(book, asked)
    if any(book.unread & word.terms for word in words):
        book = await _read_terms(tx, scopes, words)
    return WordLookup(words, book)


@dataclass(slots=True)
class _TermStatistics:
    """What was found in the lexicon, all of one moment."""

    size: int  # in chunks
    length: int  # of all of them, in words
    gone: list[int]  # chunks that may still be in a segment
    frequencies: Counter[str]  # how many chunks have a term
    lists: "dict[str, list[Postings]]"
    unread: set[str]  # terms of so many chunks that their postings were left where they are

    def frequency(self, word: QueryWord) -> int:
        return max(self.frequencies[term] for term in word.terms)


async def _read_terms(
    tx: Tx, scopes: Sequence[ScopeId], words: Iterable[QueryWord], share: float = 1, few: int = 0
) -> _TermStatistics:
    """These words, with the postings of those that no more than a share of all chunks have, or few."""
    from gristmill.knowledge import postings  # noqa: PLC0415 as above

    terms = sorted({term for word in words for term in word.terms})
    asked = {"scopes": array(scopes), "terms": terms, "share": share, "few": few, "posting": postings.SIZE}
    rows = await tx.bare(SQL["read_terms"], **asked)
    (corpus,) = (row for row in rows if row.term is None)
    book = _TermStatistics(corpus.chunks, corpus.length, corpus.ids, Counter(), {}, set())
    for row in rows:
        if row is corpus:
            continue
        book.frequencies[row.term] += row.chunks
        if row.ids:
            book.lists.setdefault(row.term, []).append(postings.make_postings(row.ids, row.lengths, row.counts))
        elif row.data:
            book.lists.setdefault(row.term, []).append(postings.read_postings(row.data))
        else:
            book.unread.add(row.term)
    return book


def _choose_words(book: _TermStatistics, asked: Sequence[QueryWord]) -> list[QueryWord]:
    """The words that occur and tell chunks apart; those that are everywhere only if nothing else was asked for."""
    occurring = sorted(filter(book.frequency, asked), key=book.frequency)
    most = UBIQUITOUS * book.size if book.size >= ENOUGH else book.size
    telling = [word for word in occurring if book.frequency(word) <= most]
    return (telling or ([] if len(occurring) < len(asked) else occurring))[:MOST_WORDS]


# --- gathering

FEW = 256  # fresh chunks that are as well looked through one by one
MANY = 4_096  # fresh chunks gathered at a time: a bound for memory
TIER = 4  # segments of like size that become one: each posting is rewritten a few times, each term read in few places
ROTTEN = 0.05  # of a segment, when it is written anew without what is gone
PATIENCE = timedelta(days=1)  # … and when that happens at the latest
PORTION = 5_000  # terms read at a time


def fold_letter(scope: ScopeId) -> Envelope:
    """Has the terms of this scope put in order, once for all who ask until it is done.

    What comes while it runs may come too late for it, and nobody else is sent: that is left to the next one who asks,
    or to the hourly `tidy_terms`.
    """
    return Envelope(FoldTerms(scope), unique=Unique(f"fold:{scope}"), scope=scope)


def fold_letters_after(chunk: ChunkId, scope: ScopeId) -> list[Envelope]:
    """What is sent when the terms of a chunk are written: one in so many asks for a fold, and nobody has to count."""
    return [fold_letter(scope)] if chunk % FEW == 0 else []


async def tidy_terms(_: TidyTerms, *, db: Database) -> Done:
    """Asks for a fold of every scope that has enough fresh chunks, or any that are gone: some are overdue by now."""
    async with db.transaction() as tx:
        scopes = await tx.all(SQL["untidy_scopes"], few=FEW)
    return Done(then=[fold_letter(row.id) for row in scopes])


async def fold_terms(task: FoldTerms, *, db: Database) -> Done:
    """Gathers fresh terms into segments, forgets those of chunks that are gone, and adds up what documents counted.

    Every step is a transaction that leaves the same terms in fewer places: killed at any point, nothing is lost or
    counted twice, and the next fold goes on.
    """
    while await _gather_fresh(db, task.scope):
        pass
    while await _merge_segments(db, task.scope):
        pass
    while await _purge_segment(db, task.scope):
        pass
    async with db.transaction() as tx:
        await tx.one(SQL["lock_scope"], scope=task.scope)
        await tx.execute(SQL["fold_tally"], scope=task.scope)
    return Done()


async def _gather_fresh(db: Database, scope: ScopeId) -> bool:
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
            SQL["make_segment"],
            scope=scope,
            size=len(rows),
            length=sum(row.length for row in rows),
            languages=sorted({row.language for row in rows if row.language}),
            chunks=postings.write_ids(row.chunk for row in rows),
        )
        counted = [postings.ChunkTerms(row.chunk, row.length, row.terms) for row in rows]
        await tx.copy(SQL["copy_postings"], _copy_rows(segment, scope, postings.pack_terms(counted)))
        return True


async def _merge_segments(db: Database, scope: ScopeId) -> bool:
    """Makes one segment of several; whether there was something to do."""
    async with db.transaction() as tx:
        await tx.one(SQL["lock_scope"], scope=scope)
        alike = segments_to_merge([(row.id, row.size) for row in await tx.all(SQL["segments"], scope=scope)])
        if not alike:
            return False
        into = await tx.value(SQL["merge_segments"], segments=alike)
        await tx.execute(SQL["merge_postings"], into=into, segments=alike)
        await tx.execute(SQL["drop_segments"], segments=alike)
        return True


def segments_to_merge(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """Segments (id, size) to be made one: all up to the largest tier that is full."""
    tiers: dict[int, list[int]] = {}
    for segment, size in sizes:
        tiers.setdefault(int(log(max(size, FEW) / FEW, TIER)), []).append(segment)
    full = max((tier for tier, segments in tiers.items() if len(segments) >= TIER), default=None)
    return [] if full is None else [one for tier, segments in tiers.items() if tier <= full for one in segments]


async def _purge_segment(db: Database, scope: ScopeId) -> bool:
    """Writes one segment anew without the chunks that are gone; whether there was one in need of it."""
    from gristmill.knowledge import postings  # noqa: PLC0415 as above

    async with db.transaction() as tx:
        await tx.one(SQL["lock_scope"], scope=scope)
        gone = await tx.all(SQL["gone_chunks"], scope=scope, patience=PATIENCE)
        if not gone:
            return False
        lost = {row.chunk for row in gone}
        overdue = {row.chunk for row in gone if row.overdue}
        standing: set[int] = set()
        for segment in await tx.all(SQL["segment_chunks"], scope=scope):
            chunks = postings.read_ids(segment.chunks).tolist()
            rotten = lost.intersection(chunks)
            if rotten and (len(rotten) >= ROTTEN * segment.size or rotten & overdue):
                await _rewrite_segment(tx, scope, segment, rotten)
                return True
            standing |= rotten
        await tx.execute(SQL["forget_gone"], scope=scope, chunks=sorted(lost - standing))
        return False


async def _rewrite_segment(tx: Tx, scope: ScopeId, segment: Row, rotten: set[int]) -> None:
    from gristmill.knowledge import postings  # noqa: PLC0415 as above

    left = [chunk for chunk in postings.read_ids(segment.chunks).tolist() if chunk not in rotten]
    if left:
        into = await tx.value(
            SQL["make_segment"],
            scope=scope,
            size=len(left),
            length=segment.length * len(left) // segment.size,
            languages=segment.languages,
            chunks=postings.write_ids(left),
        )
        after = ""
        while rows := await tx.all(SQL["postings_portion"], segment=segment.id, after=after, most=PORTION):
            kept = ((row.term, postings.drop_chunks(row.data, sorted(rotten))) for row in rows)
            await tx.copy(SQL["copy_postings"], _copy_rows(into, scope, kept))
            after = rows[-1].term
    await tx.execute(SQL["drop_segments"], segments=[segment.id])


def _copy_rows(segment: int, scope: ScopeId, terms: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """As COPY reads it, a thousand terms at a time."""
    for some in in_batches(terms):
        yield b"".join(
            b"%d\t%s\t%d\t\\\\x%s\n" % (segment, term.replace("\\", "\\\\").encode(), scope, data.hex().encode())
            for term, data in some
            if data
        )


def in_batches(terms: Iterable[tuple[str, bytes]], size: int = 1_000) -> Iterator[list[tuple[str, bytes]]]:
    """The same, in lists."""
    rest = iter(terms)
    while some := list(islice(rest, size)):
        yield some
