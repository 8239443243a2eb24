"""Finds the chunks that a question needs, in two rounds: what it asks for, and what the first hits lead to."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from gristmill.agents.ask.question import AskedQuestion
from gristmill.agents.ask.sentences import find_spans
from gristmill.agents.ask.words import ASKING, Name, find_names, fold_words, holds_name, read_terms
from gristmill.agents.memory import WRITTEN_BY_AGENTS
from gristmill.ids import ChunkId
from gristmill.knowledge import Hit, Hits, fold, graph
from gristmill.models import Embedder
from gristmill.scopes import Scope

FIRST = 24  # hits of the whole question
OTHER = 8  # hits of every other query
SIDES = 4  # parts and names of the question that are searched by themselves
SOURCES = 4  # first hits that are read for names …
BRIDGES = 4  # … and names that are searched in the second round
LED = 2  # … and names that only the graph knows of them
NAMELESS = 0.7  # how much a name promises in a hit that has no name of the question …
ASKED = 0.9  # … and a name that the graph knows of a thing in the question …
MENTIONED = 0.6  # … and of any other thing in the first hits
SIDE = 0.95  # how much the best hit for a part or a name of the question counts, beside the best for the whole
BRIDGE = 0.95  # how much the best hit of the second round counts
AGAIN = 0.35  # how much of its other score a chunk keeps that two queries find
BESIDE = 0.2  # how much of the score of the chunk next to it a chunk gets
TITLED = 1.15  # how much more a document counts whose title is the name that was searched
UNNAMED = 0.5  # how much less a hit of the second round counts that does not have the name
ATOM = "atom:"  # how the names of such notes begin
GAP = 4  # characters between two chunks that stand side by side
FEWEST = 4  # words of a part that is a question by itself
PARTS = re.compile(
    r"(?:,\s*|;\s*|\?\s+)(?:and|but|or|und|et|y|a|i)?\s*(?=(?:(?:by|to|in|from|with|for|at|on|over|under|after)\s+)?"
    r"(?:what|which|who|whom|whose|when|where|why|how|was|were|did|does|is|are|wann|wer|wo|warum|wie|welche\w*)\b)",
    re.IGNORECASE,
)


class PassageFinder(Protocol):
    """Finds passages: `knowledge.Finder`, or a worker with the embedders that it has loaded."""

    @property
    def embedders(self) -> Sequence[Embedder]: ...

    async def find(self, query: str, scope: Scope | None, *, limit: int, per_document: int) -> Hits: ...


@dataclass(frozen=True)
class Bridge:
    """A name that a first hit has and the question has not, and how much it promises."""

    name: str
    query: str
    promise: float


@dataclass(frozen=True)
class Ranked:
    """A hit with its score over all queries, and the name that led to it."""

    hit: Hit
    score: float
    via: str | None = None


@dataclass(frozen=True)
class Retrieved:
    """What was found, best first, and what search said of itself."""

    hits: Sequence[Ranked]
    note: str | None = None


LeadFinder = Callable[[Sequence[ChunkId]], Awaitable[Sequence[graph.Lead]]]


async def find_no_leads(chunks: Sequence[ChunkId]) -> Sequence[graph.Lead]:
    """Where there is no graph."""
    return ()


async def retrieve(
    finder: PassageFinder,
    scope: Scope | None,
    asked: AskedQuestion,
    *,
    find_leads: LeadFinder = find_no_leads,
    limit: int = 24,
) -> Retrieved:
    """The hits of both rounds; `find_leads` asks the graph what the first hits lead to."""
    queries = list(dict.fromkeys([*ask_parts(asked), *ask_sides(asked)]))[:SIDES]
    first, *sides = await asyncio.gather(
        _find(finder, asked.complete, scope, FIRST), *(_find(finder, query, scope, OTHER) for query in queries)
    )
    found: list[Found] = [(first, 1.0, None), *((side, SIDE, None) for side in sides)]
    sources = [one.hit for one in fuse(found)[:SOURCES]]
    leads = await find_leads([hit.chunk for hit in sources])
    bridges = choose_bridges(find_bridges(asked, sources), follow_leads(asked, sources, leads))
    seconds = await asyncio.gather(*(_find(finder, one.query, scope, OTHER) for one in bridges))
    found += [(hits, BRIDGE * one.promise, one.name) for one, hits in zip(bridges, seconds, strict=True)]
    return Retrieved(lift_neighbours(fuse(found))[:limit], first.note)


async def _find(finder: PassageFinder, query: str, scope: Scope | None, limit: int) -> Hits:
    """The best hits of a query among what people wrote: more are asked for, since notes of it are left out.

    What agents wrote is left out, too: otherwise, a mail could make agents write words that are cited later.
    """
    found = await finder.find(query, scope, limit=limit + limit // 2, per_document=limit)
    kept = Hits([one for one in found if not is_note_of_document(one) and not is_written_by_agent(one)][:limit])
    kept.note = found.note
    return kept


def is_note_of_document(hit: Hit) -> bool:
    """Whether this is what the qualifier noted of a document that is stored itself: the document is the evidence."""
    return hit.urn.startswith(ATOM) and hit.part_of is not None


def is_written_by_agent(hit: Hit) -> bool:
    return (hit.type or "").lower() in WRITTEN_BY_AGENTS


# --- queries


def ask_parts(asked: AskedQuestion) -> list[str]:
    """The questions that one question is made of: who did this, and what did that mean?"""
    parts = [part.strip(" ,;?") for part in PARTS.split(asked.complete)]
    whole = [part for part in parts if len(part.split()) >= FEWEST]
    return whole[:SIDES] if len(whole) > 1 else []


def ask_sides(asked: AskedQuestion) -> list[str]:
    """A query for each thing that the question names, if it names several: each may have a document of its own."""
    names = list({name.key: name for name in asked.names}.values())
    if len(names) < 2:
        return []
    others = {fold(word) for name in names for word in name.text.split()}
    rest = [one.text for one in asked.terms if fold(one.text) not in others]
    return [" ".join([name.text, *rest]) for name in names[:SIDES]]


def find_bridges(asked: AskedQuestion, hits: Sequence[Hit]) -> list[Bridge]:
    """The names in the first hits, the most promising first: those in sentences that have most of the question's words.

    A passage that has no name of the question may be about anything: its names promise less.
    """
    known = fold_words(asked.complete)
    found: list[Bridge] = []
    for hit, share in _share_scores(hits):
        missing = _find_missing(asked, hit)
        trust = share if _has_a_name(asked, hit) else NAMELESS * share
        for name, promise in _rate_names(asked, hit, known):
            found.append(Bridge(name.text, " ".join([name.text, *missing]), trust * promise))
    return keep_best(found)[:BRIDGES]


def follow_leads(asked: AskedQuestion, hits: Sequence[Hit], leads: Iterable[graph.Lead]) -> list[Bridge]:
    """What the graph knows of things in the first hits and their texts do not say: other names, and what is related."""
    known = fold_words(asked.complete)
    shares = {hit.chunk: (hit, share) for hit, share in _share_scores(hits)}
    found: list[Bridge] = []
    for lead in leads:
        hit, share = shares[lead.chunk]
        if holds_name(lead.name, known) or fold_words(lead.name) <= fold_words(hit.text):
            continue
        promise = ASKED if holds_name(lead.origin, known) else MENTIONED
        found.append(Bridge(lead.name, " ".join([lead.name, *_find_missing(asked, hit)]), promise * share))
    return keep_best(found)


def choose_bridges(named: Sequence[Bridge], led: Sequence[Bridge]) -> list[Bridge]:
    """The names of the texts, and a few of the graph that they do not have."""
    there = {_key_of(one.name) for one in named}
    return [*named, *[one for one in led if _key_of(one.name) not in there][:LED]]


def keep_best(bridges: Iterable[Bridge]) -> list[Bridge]:
    """Each name once, the most promising first."""
    best: dict[str, Bridge] = {}
    for one in sorted(bridges, key=lambda one: -one.promise):
        best.setdefault(_key_of(one.name), one)
    return list(best.values())


def _key_of(name: str) -> str:
    return " ".join(map(fold, name.split()))


def _share_scores(hits: Sequence[Hit]) -> list[tuple[Hit, float]]:
    top = _top_of(hits) or 1.0
    return [(hit, min(1.0, hit.score / top)) for hit in hits]


def _has_a_name(asked: AskedQuestion, hit: Hit) -> bool:
    there = fold_words(f"{hit.title or ''} {hit.heading} {hit.text}")
    return not asked.names or any(holds_name(name.text, there) for name in asked.names)


def _find_missing(asked: AskedQuestion, hit: Hit) -> list[str]:
    """The words of the question that this hit does not have: another one must."""
    stems = {one.term for one in read_terms(f"{hit.heading} {hit.text}", hit.language)}
    plain = fold_words(f"{hit.heading} {hit.text}")
    missing = [one.text for one in asked.terms if one.term not in stems and fold(one.text) not in plain]
    return missing or [one.text for one in asked.terms if not one.text[:1].isupper()]


def _rate_names(asked: AskedQuestion, hit: Hit, known: frozenset[str]) -> Iterable[tuple[Name, float]]:
    wanted = {one.term for one in asked.terms}
    for start, stop in find_spans(hit.text):
        sentence = hit.text[start:stop]
        stems = {one.term for one in read_terms(sentence, hit.language)}
        share = len(wanted & stems) / len(wanted) if wanted else 0.0
        for name in find_names(sentence, hit.language):
            if not holds_name(name.text, known) and fold(name.text) not in ASKING:
                yield name, 0.5 + 0.5 * min(1.0, 1.5 * share)


# --- scores

Found = tuple[Sequence[Hit], float, str | None]  # the hits of a query, its weight, and the name that it is about


def fuse(found: Sequence[Found]) -> list[Ranked]:
    """One score for each chunk, from all queries that found it.

    A hit counts as a share of the best hit of its query, but a query whose best hit is weak lifts nothing: it is
    compared with the whole question. What two queries find is better than what one finds.
    """
    best: dict[int, Ranked] = {}
    whole = _top_of(found[0][0]) if found else 0.0
    for hits, weight, name in found:
        scale = max(_top_of(hits), whole)
        for hit in hits:
            score = weight * hit.score / scale if scale else 0.0
            if name is not None:
                score *= _fit_name(hit, name)
            known = best.get(hit.chunk)
            if known is None:
                best[hit.chunk] = Ranked(hit, score, name)
            else:
                both = max(known.score, score) + AGAIN * min(known.score, score)
                best[hit.chunk] = Ranked(known.hit, both, known.via)
    return _sort(best.values())


def _top_of(hits: Sequence[Hit]) -> float:
    return max((hit.score for hit in hits), default=0.0)


def _sort(ranked: Iterable[Ranked]) -> list[Ranked]:
    return sorted(ranked, key=lambda one: (-one.score, one.hit.chunk))


def lift_neighbours(ranked: Sequence[Ranked]) -> list[Ranked]:
    """Chunks beside a good one are better than their own score says: a text goes on where it is about something."""
    pages: dict[tuple[int, int], list[Ranked]] = {}
    for one in ranked:
        pages.setdefault((one.hit.document, one.hit.page), []).append(one)
    lifted = [
        Ranked(one.hit, one.score + BESIDE * _best_beside(one, pages[one.hit.document, one.hit.page]), one.via)
        for one in ranked
    ]
    return _sort(lifted)


def _best_beside(one: Ranked, others: Iterable[Ranked]) -> float:
    hit = one.hit
    near = (
        other.score
        for other in others
        if 0 <= hit.start - other.hit.stop <= GAP or 0 <= other.hit.start - hit.stop <= GAP
    )
    return max(near, default=0.0)


def _fit_name(hit: Hit, name: str) -> float:
    if fold(hit.title or "") == fold(name):
        return TITLED
    return 1.0 if holds_name(name, fold_words(f"{hit.heading} {hit.text}")) else UNNAMED
