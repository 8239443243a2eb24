"""The lexicon: which chunk has which terms, and how well chunks fit the words of a query (BM25)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from math import log
from typing import TYPE_CHECKING, NamedTuple

from gristmill.db import Column, Database, Tx, array, queries
from gristmill.ids import ChunkId, ScopeId
from gristmill.knowledge.letters import FoldTerms, TidyTerms
from gristmill.knowledge.terms import QueryWord, query_words
from gristmill.queue import Done, Envelope, Unique

if TYPE_CHECKING:
    from gristmill.knowledge.postings import Postings, Ranking

SQL = queries("gristmill.knowledge", "lexicon.sql")

# --- searching

MOST_WORDS = 48  # of a query are used, the rarest ones: a page pasted into the search box has hundreds
LOOKED_UP = 2_000  # words of a query are looked up, the first ones, to find the rarest
UBIQUITOUS = 0.2  # a word that this share of all chunks have says little, and has the longest postings …
ENOUGH = 1_000  # … if there are at least so many chunks


@dataclass(frozen=True, slots=True)
class WordLookup:
    """The words of a query that tell chunks apart, and their postings."""

    words: list[QueryWord]
    book: "_TermStatistics"

    @property
    def posting_count(self) -> int:
        """How many postings there are to rank."""
        return sum(len(part) for parts in self._postings_by_term().values() for part in parts)

    def rank(self) -> "Ranking":
        """Every chunk that has one of the words, scored by BM25."""
        from gristmill.knowledge import postings  # noqa: PLC0415 numpy takes a tenth of a second to load: only a process that searches needs it

        joined = {term: postings.join_postings(parts) for term, parts in self._postings_by_term().items()}
        of_words = [([joined[term] for term in word.terms if term in joined], word.times) for word in self.words]
        return postings.rank_chunks(postings.Corpus(self.book.size, self.book.length), of_words, self.book.gone)

    def _postings_by_term(self) -> "dict[str, list[Postings]]":
        """The postings of these words only; those of other words may have been read with them."""
        terms = {term for word in self.words for term in word.terms}
        return {term: parts for term, parts in self.book.lists.items() if term in terms}


async def look_up(tx: Tx, scopes: Sequence[ScopeId], query: str, spoken: Iterable[str | None]) -> WordLookup:
    """Looks up the words of a query, in the forms that they have in these languages."""
    asked = query_words(query, spoken)[:LOOKED_UP]
    book = await _read_terms(tx, scopes, asked, *((UBIQUITOUS, ENOUGH) if len(asked) <= MOST_WORDS else (0, 0)))
    words = _choose_words(book, asked)
    if any(book.unread & word.terms for word in words):
        book = await _read_terms(tx, scopes, words)
    return WordLookup(words, book)


async def count_chunks(
    tx: Tx, scopes: Sequence[ScopeId], words: Sequence[QueryWord]
) -> tuple[dict[frozenset[str], int], int]:
    """How many chunks have each of these words, by its terms, and how many chunks there are; no posting is read."""
    book = await _read_terms(tx, scopes, words, share=0)
    return {word.terms: book.frequency(word) for word in words}, book.size


@dataclass(slots=True)
class _TermStatistics:
    """What the lexicon says of some terms, all read at one moment."""

    size: int  # in chunks
    length: int  # of all of them, in words
    gone: list[int]  # deleted chunks that may still be in a segment
    frequencies: Counter[str]  # how many chunks have a term
    lists: "dict[str, list[Postings]]"
    unread: set[str]  # terms that so many chunks have that their postings were not read

    def frequency(self, word: QueryWord) -> int:
        return max(self.frequencies[term] for term in word.terms)


class _TermRow(NamedTuple):
    """A term of a segment, or of all fresh chunks, or (without a term) the corpus itself."""

    term: str | None
    chunks: int
    length: int | None
    data: bytes | None
    ids: list[int] | None
    lengths: list[int] | None
    counts: list[int] | None


async def _read_terms(
    tx: Tx, scopes: Sequence[ScopeId], words: Iterable[QueryWord], share: float = 1, few: int = 0
) -> _TermStatistics:
    """Reads the statistics of these words, and the postings of those that are rare enough.

    Rare enough is a word that at most this share of all chunks have, or at most `few` chunks.
    """
    from gristmill.knowledge import postings  # noqa: PLC0415 as above

    terms = sorted({term for word in words for term in word.terms})
    asked = {"scopes": array(scopes), "terms": terms, "share": share, "few": few, "posting": postings.SIZE}
    rows = await tx.all_binary(SQL["read_terms"], _TermRow, **asked)
    (corpus,) = (row for row in rows if row.term is None)
    book = _TermStatistics(corpus.chunks, corpus.length or 0, corpus.ids or [], Counter(), {}, set())
    for row in rows:
        if row.term is None:
            continue
        book.frequencies[row.term] += row.chunks
        if row.ids and row.lengths and row.counts:
            book.lists.setdefault(row.term, []).append(postings.make_postings(row.ids, row.lengths, row.counts))
        elif row.data:
            book.lists.setdefault(row.term, []).append(postings.read_postings(row.data))
        else:
            book.unread.add(row.term)
    return book


def _choose_words(book: _TermStatistics, asked: Sequence[QueryWord]) -> list[QueryWord]:
    """The words that occur and tell chunks apart; words that are everywhere only if the query has no others."""
    occurring = sorted(filter(book.frequency, asked), key=book.frequency)
    most = UBIQUITOUS * book.size if book.size >= ENOUGH else book.size
    telling = [word for word in occurring if book.frequency(word) <= most]
    return (telling or ([] if len(occurring) < len(asked) else occurring))[:MOST_WORDS]


# --- gathering

FEW = 256  # so many fresh chunks are searched one by one without loss of time
MANY = 4_096  # fresh chunks gathered at a time: this bounds the memory
TIER = 4  # segments of like size that are merged: each posting is rewritten a few times, each term read in few places
ROTTEN = 0.05  # the share of deleted chunks at which a segment is rewritten without them …
PATIENCE = timedelta(days=1)  # … and the age of a deletion at which that happens in any case
PORTION = 5_000  # terms read at a time


def fold_letter(scope: ScopeId) -> Envelope:
    """The letter that has the terms of this scope folded; several such letters become one task.

    Terms that are written while the task runs may come too late for it, and no second task is sent. They wait for the
    next letter, or for the hourly `tidy_terms`.
    """
    return Envelope(FoldTerms(scope), unique=Unique(f"fold:{scope}"), scope=scope)


def fold_letters_after(chunk: ChunkId, scope: ScopeId) -> list[Envelope]:
    """The letters to send after the terms of a chunk: every 256th asks for a fold, so that nobody has to count."""
    return [fold_letter(scope)] if chunk % FEW == 0 else []


class _SegmentSize(NamedTuple):
    """A segment and the number of its chunks."""

    id: int
    size: int


class _GoneChunk(NamedTuple):
    """A deleted chunk; overdue if its terms should be gone by now."""

    chunk: int
    overdue: bool


class _Posting(NamedTuple):
    """The chunks that have a term, packed."""

    term: str
    data: bytes


async def tidy_terms(_: TidyTerms, *, db: Database) -> Done:
    """Asks for a fold of every scope with enough fresh chunks, or with a deleted one, which may be overdue."""
    async with db.transaction() as tx:
        scopes = await tx.values(SQL["untidy_scopes"], Column[ScopeId], few=FEW)
    return Done(then=[fold_letter(scope) for scope in scopes])


async def fold_terms(task: FoldTerms, *, db: Database) -> Done:
    """Gathers fresh terms into segments, and drops the terms of deleted chunks.

    Every step is a transaction that leaves the same terms in fewer places. So a fold may be killed at any point:
    nothing is lost or counted twice, and the next fold goes on.
    """
    while await _gather_fresh(db, task.scope):
        pass
    while await _merge_segments(db, task.scope):
        pass
    while await _purge_segment(db, task.scope):
        pass
    return Done()


class _FreshRow(NamedTuple):
    chunk: int
    language: str | None
    length: int
    terms: dict[str, int]


async def _gather_fresh(db: Database, scope: ScopeId) -> bool:
    """Makes a segment of fresh terms; returns whether there may be enough for another."""
    from gristmill.knowledge import postings  # noqa: PLC0415 as above

    async with db.transaction() as tx:
        await tx.one(SQL["lock_scope"], scope=scope)
        if await tx.only_value(SQL["count_fresh"], int, scope=scope, most=FEW) < FEW:
            return False
        rows = await tx.all(SQL["take_fresh"], _FreshRow, scope=scope, most=MANY)
        if not rows:
            return False
        rows.sort(key=lambda row: row.chunk)
        segment = await tx.only_value(
            SQL["make_segment"],
            int,
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
    """Makes one segment of several; returns whether there was something to merge."""
    async with db.transaction() as tx:
        await tx.one(SQL["lock_scope"], scope=scope)
        alike = segments_to_merge(await tx.all(SQL["segments"], _SegmentSize, scope=scope))
        if not alike:
            return False
        into = await tx.only_value(SQL["merge_segments"], int, segments=alike)
        await tx.execute(SQL["merge_postings"], into=into, segments=alike)
        await tx.execute(SQL["drop_segments"], segments=alike)
        return True


def segments_to_merge(sizes: Sequence[tuple[int, int]]) -> list[int]:
    """Chooses the segments (id, size) to merge: all up to the largest tier that is full."""
    tiers: dict[int, list[int]] = {}
    for segment, size in sizes:
        tiers.setdefault(int(log(max(size, FEW) / FEW, TIER)), []).append(segment)
    full = max((tier for tier, segments in tiers.items() if len(segments) >= TIER), default=None)
    return [] if full is None else [one for tier, segments in tiers.items() if tier <= full for one in segments]


class _Segment(NamedTuple):
    id: int
    size: int
    length: int
    languages: list[str]
    chunks: bytes  # their ids


async def _purge_segment(db: Database, scope: ScopeId) -> bool:
    """Rewrites one segment without its deleted chunks; returns whether there was one that needed it."""
    from gristmill.knowledge import postings  # noqa: PLC0415 as above

    async with db.transaction() as tx:
        await tx.one(SQL["lock_scope"], scope=scope)
        gone = await tx.all(SQL["gone_chunks"], _GoneChunk, scope=scope, patience=PATIENCE)
        if not gone:
            return False
        lost = {row.chunk for row in gone}
        overdue = {row.chunk for row in gone if row.overdue}
        standing: set[int] = set()
        for segment in await tx.all(SQL["segment_chunks"], _Segment, scope=scope):
            chunks = postings.read_ids(segment.chunks).tolist()
            rotten = lost.intersection(chunks)
            if rotten and (len(rotten) >= ROTTEN * segment.size or rotten & overdue):
                await _rewrite_segment(tx, scope, segment, rotten)
                return True
            standing |= rotten
        await tx.execute(SQL["forget_gone"], scope=scope, chunks=sorted(lost - standing))
        return False


async def _rewrite_segment(tx: Tx, scope: ScopeId, segment: _Segment, rotten: set[int]) -> None:
    from gristmill.knowledge import postings  # noqa: PLC0415 as above

    left = [chunk for chunk in postings.read_ids(segment.chunks).tolist() if chunk not in rotten]
    if left:
        into = await tx.only_value(
            SQL["make_segment"],
            int,
            scope=scope,
            size=len(left),
            length=segment.length * len(left) // segment.size,
            languages=segment.languages,
            chunks=postings.write_ids(left),
        )
        after = ""
        while rows := await tx.all(SQL["postings_portion"], _Posting, segment=segment.id, after=after, most=PORTION):
            kept = ((row.term, postings.drop_chunks(row.data, sorted(rotten))) for row in rows)
            await tx.copy(SQL["copy_postings"], _copy_rows(into, scope, kept))
            after = rows[-1].term
    await tx.execute(SQL["drop_segments"], segments=[segment.id])


def _copy_rows(segment: int, scope: ScopeId, terms: Iterable[tuple[str, bytes]]) -> Iterator[bytes]:
    """Rows of postings as COPY reads them, a thousand terms at a time."""
    for some in in_batches(terms):
        yield b"".join(
            b"%d\t%s\t%d\t\\\\x%s\n" % (segment, term.replace("\\", "\\\\").encode(), scope, data.hex().encode())
            for term, data in some
            if data
        )


def in_batches(terms: Iterable[tuple[str, bytes]], size: int = 1_000) -> Iterator[list[tuple[str, bytes]]]:
    """The same terms, in lists of this size."""
    rest = iter(terms)
    while some := list(islice(rest, size)):
        yield some
