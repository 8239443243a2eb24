"""Makes the evidence pack: passages cut from stored pages, completed, joined, without repetitions, within a budget."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from gristmill.agents.ask.model import Passage
from gristmill.agents.ask.retrieval import Ranked
from gristmill.agents.ask.sentences import find_spans
from gristmill.documents import ChunkSurroundings
from gristmill.ids import ChunkId
from gristmill.models import tokens

REACH = 400  # characters by which a passage that is cut in a sentence is completed, on either side
LONGEST = 480  # tokens of a joined passage
ALIKE = 0.85  # a passage that shares this part of its words with another one says nothing new
OVERHEAD = 25  # tokens of the line above a passage


def make_pack(
    ranked: Sequence[Ranked], around: dict[ChunkId, ChunkSurroundings], *, most: int, budget: int
) -> tuple[Passage, ...]:
    """At most `most` passages within `budget` tokens, best first, numbered from 1."""
    chosen: list[Passage] = []
    spent = 0
    for one in ranked:
        if one.hit.chunk not in around:
            continue  # it was removed this very moment
        passage = cut_passage(one, around[one.hit.chunk])
        joined = next((n for n, other in enumerate(chosen) if _is_beside(passage, other)), None)
        if joined is not None and (whole := join_passages(chosen[joined], passage, around)):
            spent += tokens.count(whole.text) - tokens.count(chosen[joined].text)
            chosen[joined] = whole
        elif len(chosen) < most and not _repeats(passage, chosen):
            cost = tokens.count(passage.text) + OVERHEAD
            if chosen and spent + cost > budget:
                break
            spent += cost
            chosen.append(passage)
    return tuple(replace(one, number=number) for number, one in enumerate(chosen, 1))


def cut_passage(one: Ranked, around: ChunkSurroundings) -> Passage:
    """The chunk as its page has it; a sentence that is cut at its beginning or its end is completed."""
    start, stop = complete(around)
    hit = one.hit
    return Passage(
        number=0,
        document=hit.document,
        name=hit.name,
        title=hit.title,
        type=hit.type,
        page=hit.page,
        start=start,
        stop=stop,
        heading=hit.heading,
        language=hit.language,
        text=around.text[start - around.first : stop - around.first],
        score=round(one.score, 4),
        chunks=(hit.chunk,),
        record=hit.record,
        via=one.via,
    )


def complete(around: ChunkSurroundings) -> tuple[int, int]:
    """The places on the page at which the sentences of a chunk begin and end, within reach."""
    begin, end = around.start - around.first, around.stop - around.first
    for start, stop in find_spans(around.text):
        if start < begin < stop and begin - start <= REACH:
            begin = start
        if start < end < stop and stop - end <= REACH:
            end = stop
    return around.first + begin, around.first + end


def _is_beside(passage: Passage, other: Passage) -> bool:
    """Whether two passages overlap, or only blanks lie between them."""
    if (passage.document, passage.page, passage.record) != (other.document, other.page, other.record):
        return False
    return passage.start <= other.stop + 2 and other.start <= passage.stop + 2


def join_passages(one: Passage, other: Passage, around: dict[ChunkId, ChunkSurroundings]) -> Passage | None:
    """Both as one passage; None if it would be too long, or if what lies between them is not known."""
    start, stop = min(one.start, other.start), max(one.stop, other.stop)
    text = _read_between(start, stop, [around[chunk] for chunk in (*one.chunks, *other.chunks) if chunk in around])
    if text is None or tokens.count(text) > LONGEST:
        return None
    return replace(one, start=start, stop=stop, text=text, chunks=(*one.chunks, *other.chunks))


def _read_between(start: int, stop: int, around: Iterable[ChunkSurroundings]) -> str | None:
    """The text of the page between two places, put together from what was read of it."""
    text = ""
    at = start
    for one in sorted(around, key=lambda one: one.first):
        end = one.first + len(one.text)
        if one.first <= at < end:
            text += one.text[at - one.first : stop - one.first]
            at = min(end, stop)
    return text if at >= stop else None


def _repeats(passage: Passage, chosen: Iterable[Passage]) -> bool:
    words = passage.text.lower().split()
    own = frozenset(words)
    for other in chosen:
        if (passage.document, passage.page) == (other.document, other.page):
            overlap = min(passage.stop, other.stop) - max(passage.start, other.start)
            if overlap >= ALIKE * (passage.stop - passage.start):
                return True
        told = other.text.lower().split()
        there = frozenset(told)
        if own and len(own & there) >= ALIKE * len(own | there):
            return True
        if " ".join(words) in " ".join(told):  # a copy of the same file, of which more was joined
            return True
    return False
