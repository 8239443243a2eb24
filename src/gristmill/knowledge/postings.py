"""Postings in the form in which the database keeps them, and BM25 over them; numpy counts, because they are many."""

import ctypes
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# The chunk (48 bits in two parts), its length in words (at most 65,535), and the count of the term in it (at most 255).
POSTING = np.dtype([("low", "<u4"), ("high", "<u2"), ("length", "<u2"), ("count", "u1")])
IDS = np.dtype("<i8")
SIZE = POSTING.itemsize
K1, B = 0.9, 0.4  # the usual values of measurements with Lucene; b is small because chunks are of like length
SAMPLED = 16  # one of so many scores is in the sample that gives a bound for the best
GENEROUS = 4  # so many times as many scores as are wanted lie above that bound
DENSE = 4_000_000  # ids within such a range are added up by their place in an array, others by sorting

KEPT = 32 * 2**20  # bytes of freed memory that stay with the process
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # options of glibc's mallopt

Ids = NDArray[np.int64]
Scores = NDArray[np.float32]
Postings = NDArray[np.void]


def keep_freed_memory() -> None:
    """Keeps freed memory in the process.

    Postings come and go by the megabyte, and memory that was returned to the system comes back page by page: two thirds
    of the time of a ranking were spent on that.
    """
    with suppress(OSError, AttributeError):  # only glibc has these options
        for which in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD):
            ctypes.CDLL(None).mallopt(which, KEPT)


keep_freed_memory()


class ChunkTerms(NamedTuple):
    """The terms of one chunk."""

    chunk: int
    length: int
    terms: Mapping[str, int]


def pack_terms(rows: Sequence[ChunkTerms]) -> Iterator[tuple[str, bytes]]:
    """Every term of these chunks with its postings, in the order of the chunks."""
    numbers: dict[str, int] = {}
    places = np.array([numbers.setdefault(term, len(numbers)) for row in rows for term in row.terms], np.int64)
    counts = np.array([count for row in rows for count in row.terms.values()], np.int64)
    sizes = [len(row.terms) for row in rows]
    chunks = np.repeat(np.array([row.chunk for row in rows], np.int64), sizes)
    lengths = np.repeat(np.array([row.length for row in rows], np.int64), sizes)
    order = np.argsort(places, kind="stable")
    data = make_postings(chunks[order], lengths[order], counts[order]).tobytes()
    ends = np.cumsum(np.bincount(places, minlength=len(numbers))) * SIZE
    start = 0
    for term, end in zip(numbers, ends.tolist(), strict=True):
        yield term, data[start:end]
        start = end


def make_postings(chunks: Sequence[int] | Ids, lengths: Sequence[int] | Ids, counts: Sequence[int] | Ids) -> Postings:
    """The postings of one term, for these chunks."""
    ids = np.asarray(chunks, np.int64)
    postings: Postings = np.empty(len(ids), POSTING)
    postings["low"], postings["high"] = ids & 0xFFFF_FFFF, ids >> 32
    postings["length"], postings["count"] = np.minimum(lengths, 0xFFFF), np.minimum(counts, 0xFF)
    return postings


def read_postings(data: bytes) -> Postings:
    return np.frombuffer(data, POSTING)


def chunks_of(postings: Postings) -> Ids:
    chunks = postings["low"].astype(np.int64)
    if (high := postings["high"]).any():
        chunks |= high.astype(np.int64) << 32
    return chunks


def join_postings(parts: Sequence[Postings]) -> Postings:
    """Several lists of postings as one."""
    if len(parts) == 1:
        return parts[0]
    # as bytes, because numpy would copy the fields one by one
    return np.concatenate([part.view(np.uint8) for part in parts] or [np.empty(0, np.uint8)]).view(POSTING)


def drop_chunks(data: bytes, gone: Sequence[int]) -> bytes:
    """The same postings without those of chunks that are gone."""
    postings = read_postings(data)
    return postings[~np.isin(chunks_of(postings), gone)].tobytes()


def read_ids(data: bytes) -> Ids:
    return np.frombuffer(data, IDS)


def write_ids(chunks: Iterable[int]) -> bytes:
    return np.fromiter(chunks, IDS).tobytes()


@dataclass(frozen=True, slots=True)
class Corpus:
    """The chunks that may be found, as BM25 needs to know them."""

    size: int  # in chunks
    length: int  # in words

    @property
    def mean(self) -> float:
        return self.length / self.size if self.size and self.length else 1.0

    def rarity(self, found: int) -> float:
        """The weight of a word that so many chunks have; it is never negative, as in Lucene."""
        found = min(found, self.size)
        return float(np.log1p((self.size - found + 0.5) / (found + 0.5)))


@dataclass(frozen=True, slots=True)
class Ranking:
    """All chunks that match, with their scores."""

    chunks: Ids  # ascending
    scores: Scores
    best: float = 0.0  # the score that a chunk with all words, many times each, would come near to

    def top(self, n: int, skip: int = 0) -> list[int]:
        """The best `n` chunks after the first `skip`."""
        if skip >= len(self.chunks):
            return []
        order = np.argsort(-self.scores, kind="stable") if n + skip >= len(self.chunks) else self._partial(n + skip)
        return self.chunks[order[skip : skip + n]].tolist()

    def _partial(self, n: int) -> Ids:
        """Sorts only the few hundred scores above a bound from a sample: to sort all takes ten times as long."""
        sample = self.scores[::SAMPLED]
        rank = min(len(sample), n * GENEROUS // SAMPLED + GENEROUS)
        (chosen,) = np.nonzero(self.scores >= np.partition(sample, -rank)[-rank])
        if len(chosen) < n:
            chosen = np.argpartition(-self.scores, n - 1)[:n]
        return chosen[np.lexsort((self.chunks[chosen], -self.scores[chosen]))][:n]

    def scores_of(self, chunks: Sequence[int]) -> dict[int, float]:
        """The scores of these chunks; 0 for one that does not match."""
        if not len(self.chunks):
            return dict.fromkeys(chunks, 0.0)
        wanted = np.asarray(chunks, np.int64)
        at = np.minimum(np.searchsorted(self.chunks, wanted), len(self.chunks) - 1)
        return dict(zip(chunks, np.where(self.chunks[at] == wanted, self.scores[at], 0).tolist(), strict=True))


def rank_chunks(corpus: Corpus, words: Iterable[tuple[Sequence[Postings], int]], gone: Sequence[int]) -> Ranking:
    """Ranks by BM25. Each word comes as the postings of its terms, with the number of times that the query has it."""
    parts: list[tuple[Ids, Scores]] = []
    best = 0.0
    for found, times in words:
        chunks, lengths, counts = _join_terms(found)
        weight = corpus.rarity(len(chunks)) * times
        norm = K1 * (1 - B + B / corpus.mean * lengths)
        parts.append((chunks, (weight * counts / (counts + norm)).astype(np.float32)))
        best += weight
    chunks, scores = _add_scores(parts)
    if len(gone) and len(chunks):
        here = ~np.isin(chunks, gone)
        chunks, scores = chunks[here], scores[here]
    return Ranking(chunks, scores, best)


def _join_terms(found: Sequence[Postings]) -> tuple[Ids, Scores, Scores]:
    """Joins the terms of one word: for a chunk with several of them, only the most frequent one counts."""
    postings = join_postings(found)
    chunks = chunks_of(postings)
    lengths, counts = postings["length"].astype(np.float32), postings["count"].astype(np.float32)
    if len(found) > 1:
        order = np.lexsort((-counts, chunks))
        chunks, lengths, counts = chunks[order], lengths[order], counts[order]
        first = np.concatenate(([True], chunks[1:] != chunks[:-1]))
        chunks, lengths, counts = chunks[first], lengths[first], counts[first]
    return chunks, lengths, counts


def _add_scores(parts: Sequence[tuple[Ids, Scores]]) -> tuple[Ids, Scores]:
    """Adds up the scores of each chunk."""
    filled = [part for part in parts if len(part[0])]
    if not filled:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    low = min(int(chunks.min()) for chunks, _ in filled)
    span = max(int(chunks.max()) for chunks, _ in filled) - low + 1
    if span > DENSE:
        return _add_scores_sparse(filled)
    sums = np.zeros(span, np.float32)
    for chunks, scores in filled:
        np.add.at(sums, chunks - low, scores)
    (places,) = np.nonzero(sums != 0)  # nonzero(sums) itself takes ten times as long
    return places + low, sums[places]


def _add_scores_sparse(parts: Sequence[tuple[Ids, Scores]]) -> tuple[Ids, Scores]:
    chunks, places = np.unique(np.concatenate([one for one, _ in parts]), return_inverse=True)
    sums = np.bincount(places, np.concatenate([one for _, one in parts]), len(chunks))
    return chunks, sums.astype(np.float32)
