"""Cuts the text of a page at its chunks and at its marked words, so that a template can show both by exact offsets."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class TextSpan(NamedTuple):
    """A stretch of a text, in characters."""

    start: int
    stop: int


class ChunkSpan(NamedTuple):
    """The place of a chunk on its page."""

    ordinal: int
    start: int
    stop: int


class MarkedRun(NamedTuple):
    """A stretch of text that is marked as a whole, or not at all; `at` is its first character on the page."""

    text: str
    at: int
    is_marked: bool


@dataclass(frozen=True)
class PagePassage:
    """A chunk of the page, or the text between two; together all passages are the text of the page."""

    chunk: int | None
    start: int
    stop: int
    runs: tuple[MarkedRun, ...]


def cut_text(text: str, chunks: Iterable[ChunkSpan], marks: Iterable[TextSpan] = ()) -> list[PagePassage]:
    """The passages of a text, in order. What chunks or marks claim outside of the text is left out."""
    joined = join_spans(marks, len(text))
    return [
        PagePassage(ordinal, start, stop, tuple(_cut_runs(text, start, stop, joined)))
        for ordinal, start, stop in _cover(text, chunks)
    ]


def join_spans(spans: Iterable[TextSpan], length: int) -> list[TextSpan]:
    """The same places, in order, none beyond the text; spans that touch or overlap become one."""
    joined: list[TextSpan] = []
    for start, stop in sorted(TextSpan(max(one.start, 0), min(one.stop, length)) for one in spans):
        if start >= stop:
            continue
        if joined and start <= joined[-1].stop:
            joined[-1] = TextSpan(joined[-1].start, max(stop, joined[-1].stop))
        else:
            joined.append(TextSpan(start, stop))
    return joined


def _cover(text: str, chunks: Iterable[ChunkSpan]) -> Iterator[tuple[int | None, int, int]]:
    """The whole text: its chunks, and the gaps between them. Of two chunks that overlap, the first keeps its part."""
    at = 0
    for chunk in sorted(chunks, key=lambda one: (one.start, one.ordinal)):
        start, stop = max(chunk.start, at), min(chunk.stop, len(text))
        if start >= stop:
            continue
        if start > at:
            yield None, at, start
        yield chunk.ordinal, start, stop
        at = stop
    if at < len(text):
        yield None, at, len(text)


def _cut_runs(text: str, start: int, stop: int, marks: Sequence[TextSpan]) -> Iterator[MarkedRun]:
    at = start
    for first, last in marks:
        first, last = max(first, at), min(last, stop)
        if first >= last:
            continue
        if first > at:
            yield MarkedRun(text[at:first], at, is_marked=False)
        yield MarkedRun(text[first:last], first, is_marked=True)
        at = last
    if at < stop:
        yield MarkedRun(text[at:stop], at, is_marked=False)
