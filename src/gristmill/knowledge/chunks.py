"""Chunks: pieces of a page that fit a model's window, each with the headings above it and its place on the page."""

import hashlib
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from gristmill.db import Tx, queries
from gristmill.ids import ChunkId, DocumentId, ScopeId
from gristmill.knowledge.blocks import Kind, Unit, trim, units
from gristmill.knowledge.language import language_of, language_of_page
from gristmill.models import tokens

SQL = queries("gristmill.knowledge", "chunks.sql")

VERSION = 3  # of the way pages are divided: after a change, a page that is processed again is divided again
SPECIAL_TOKENS = 2  # tokens that the model puts around every text
LONGEST = 256  # tokens of a chunk, with those two
SEPARATOR = " › "  # between the headings of a path
SMALL = 4  # a chunk below limit ÷ 4 also takes in a section below its own
TINY = 16  # a chunk below limit ÷ 16 also takes in text of another kind, but no log: “The results are:” and the table
HEADER = 3  # the repeated header of a table takes at most limit ÷ 3
STRIDE = 64  # characters that count as at least one token: words that no model knows, endless blanks
BREAKS = (
    re.compile(r"\n"),
    re.compile(r"[.!?…]+[\"'”’»)\]]*\s"),  # also where no capital follows, which does not count as a sentence
    re.compile(r"[;:,)–—،؛]\s|[、，；：]"),
    re.compile(r"\s"),
)  # the places to divide a unit that is too long, best first
PIPE = re.compile(r"(?<!\\)\|")


@dataclass(frozen=True, slots=True)
class Piece:
    """A chunk that is not stored yet. In later parts of a table, `text` begins with as much of its header as fits."""

    start: int
    stop: int
    kind: Kind
    language: str | None
    heading: str
    text: str
    tokens: int
    hash: bytes

    @property
    def text_to_embed(self) -> str:
        return text_to_embed(self.heading, self.text)


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of a page as it is stored."""

    id: ChunkId
    scope: ScopeId
    document: DocumentId
    page: int
    ordinal: int
    start: int
    stop: int
    tokens: int
    kind: Kind
    language: str | None
    heading: str
    text: str
    hash: bytes

    @property
    def text_to_embed(self) -> str:
        return text_to_embed(self.heading, self.text)


def text_to_embed(heading: str, text: str) -> str:
    """The text that a model is given: the chunk under its headings."""
    return f"{heading}\n{text}" if heading else text


def split(text: str, *, title: str = "", limit: int = LONGEST) -> list[Piece]:
    """The chunks of a page of Markdown: all that is not blank, once and in order, none above `limit` tokens."""
    if not text.strip():
        return []
    usual = language_of_page(text)
    return [_add_language(piece, usual) for piece in Packer(text, title, limit).pieces()]


class Ruler:
    """Measures parts of a text in tokens; the tokenizer reads the text only once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.starts = [0, *(start for start, _ in tokens.find_spans(text))]
        ends = [*self.starts[1:], len(text)]
        weights = (max(1, -(-(end - start) // STRIDE)) for start, end in zip(self.starts, ends, strict=True))
        self._until = [0, *accumulate(weights)]

    def count(self, start: int, stop: int) -> int | None:
        """The number of tokens of this part by itself; None if it begins or ends within a word."""
        text = self._text
        if any(0 < at < len(text) and not (text[at - 1].isspace() or text[at].isspace()) for at in (start, stop)):
            return None
        return bisect_left(self.starts, stop, 1) - bisect_left(self.starts, start, 1)

    def cost(self, start: int, stop: int) -> int:
        return self._until[bisect_left(self.starts, stop)] - self._until[bisect_left(self.starts, start)]

    def reach(self, start: int, budget: int) -> int:
        """The farthest place that can be reached from here within this budget of tokens."""
        within = self._until[bisect_left(self.starts, start)] + budget
        last = bisect_left(self._until, within + 1) - 1
        return self.starts[last] if last < len(self.starts) else start + budget * STRIDE


class Packer:
    """Packs units into chunks, as long as they fit and belong together."""

    def __init__(self, text: str, title: str, limit: int) -> None:
        self._text = text
        self._title = title
        self._limit = limit
        self._ruler = Ruler(text)
        self._prefixes: dict[tuple[str, ...], tuple[str, int]] = {}
        self._headers: dict[tuple[int, int], tuple[str, int]] = {}
        self._held: list[Unit] = []

    def pieces(self) -> Iterator[Piece]:
        for unit in _give_headings_kinds(units(self._text)):
            if self._held and self._belongs_apart(unit):
                yield from self._close(len(self._held))
            if self._held and self._cost(unit) > self._budget(self._held[0]):
                yield from self._close(self._division_point(unit))
            if self._held and self._cost(unit) > self._budget(self._held[0]):
                yield from self._close(len(self._held))
            *parts, last = [unit] if self._held else self._cut_unit(unit)
            for part in parts:
                self._held = [part]
                yield from self._close(1)
            self._held.append(last)
        yield from self._close(len(self._held))

    def _belongs_apart(self, unit: Unit) -> bool:
        """Whether this unit begins a new chunk. A small chunk waits for more, but takes in only sections of its own."""
        held = self._held
        if all(one.level for one in held):
            return False
        cost = self._ruler.cost(held[0].start, held[-1].stop)
        if unit.level:
            return not (cost < self._limit // SMALL and held[0].level and unit.level > held[0].level)
        return unit.kind != held[-1].kind and (cost >= self._limit // TINY or "log" in (unit.kind, held[-1].kind))

    def _division_point(self, unit: Unit) -> int:
        """How many held units make a chunk: up to a paragraph's end if that is far enough, never up to a heading."""
        held = self._held
        far = self._budget(held[0]) // 2
        for n in range(len(held) - 1, 0, -1):
            after = held[n]
            if after.opens and self._ruler.cost(held[0].start, held[n - 1].stop) >= (0 if held[-1].level else far):
                fits = self._ruler.cost(after.start, unit.stop) <= self._budget(after)
                if fits and not held[n - 1].level:
                    return n
        return len(held)

    def _cut_unit(self, unit: Unit) -> list[Unit]:
        """The unit, or its parts if it alone is too long."""
        parts: list[Unit] = []
        rest, budget = unit, self._budget(unit)
        while self._ruler.cost(rest.start, rest.stop) > budget:
            at = _break_point(self._text, rest.start, min(self._ruler.reach(rest.start, budget), rest.stop))
            first, second = trim(self._text, rest.start, at), trim(self._text, at, rest.stop)
            parts.append(replace(rest, start=first[0], stop=first[1]))
            rest = replace(rest, start=second[0], stop=second[1], opens=False)
        return [*parts, rest]

    def _cost(self, unit: Unit) -> int:
        return self._ruler.cost(self._held[0].start, unit.stop)

    def _budget(self, first: Unit) -> int:
        """How many tokens of text a chunk may have that begins with this unit."""
        return max(1, self._limit - SPECIAL_TOKENS - self._prefix(first)[1] - self._header(first)[1])

    def _header(self, first: Unit) -> tuple[str, int]:
        """The header of the table in whose middle a chunk begins, and its tokens."""
        if first.header is None:
            return "", 0
        if first.header not in self._headers:
            text = _shorten_header(self._text[slice(*first.header)], self._limit // HEADER) + "\n"
            self._headers[first.header] = text, tokens.count(text)
        return self._headers[first.header]

    def _prefix(self, first: Unit) -> tuple[str, int]:
        """The headings above a chunk, and their tokens."""
        if first.path not in self._prefixes:
            text = _make_prefix(self._title, first.path, self._limit // 4)
            self._prefixes[first.path] = text, tokens.count(text)
        return self._prefixes[first.path]

    def _close(self, n: int) -> Iterator[Piece]:
        done, self._held = self._held[:n], self._held[n:]
        if done:
            yield from self._make_pieces(done[0], done[0].start, done[-1].stop, self._kind(done))

    def _make_pieces(self, first: Unit, start: int, stop: int, kind: Kind) -> Iterator[Piece]:
        """The piece; or its halves if it has too many tokens after all, as a divided word has more than a whole one."""
        heading, of_heading = self._prefix(first)
        header, of_header = self._header(first)
        body = header + self._text[start:stop]
        whole = text_to_embed(heading, body)
        own = self._ruler.count(start, stop)
        count = SPECIAL_TOKENS + (tokens.count(whole) if own is None else of_heading + of_header + own)
        if count <= self._limit or stop - start < 2:
            digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).digest()
            yield Piece(start, stop, kind, None, heading, body, count, digest)
            return
        at = _break_point(self._text, start, (start + stop + 1) // 2)
        for half in ((start, at), (at, stop)):
            if self._text[slice(*half)].strip():
                yield from self._make_pieces(first, *trim(self._text, *half), kind)

    def _kind(self, done: Sequence[Unit]) -> Kind:
        """The kind of the greatest part of a chunk."""
        costs: dict[Kind, int] = {}
        for one in done:
            costs[one.kind] = costs.get(one.kind, 0) + self._ruler.cost(one.start, one.stop)
        return max(costs, key=lambda kind: costs[kind])


def _add_language(piece: Piece, usual: str | None) -> Piece:
    """Gives a piece its own language if that is certain, or else the language of its page."""
    language = None if piece.kind == "code" else language_of(piece.text) or usual
    return replace(piece, language=language)


def _give_headings_kinds(given: Iterable[Unit]) -> Iterator[Unit]:
    """Gives each heading the kind of the text that follows it."""
    headings: list[Unit] = []
    for unit in given:
        if unit.level:
            headings.append(unit)
            continue
        yield from (replace(one, kind=unit.kind) for one in headings)
        headings = []
        yield unit
    yield from headings


def _make_prefix(title: str, path: Sequence[str], most: int) -> str:
    """Title and headings. If they are too many, the outer ones are left out first; if too long, each is shortened."""
    parts = [part for part in (" ".join(one.split()) for one in (title, *path)) if part]
    parts = [part for n, part in enumerate(parts) if part not in parts[:n]]
    while len(parts) > 2 and tokens.count(SEPARATOR.join(parts)) > most:
        del parts[1]
    if tokens.count(SEPARATOR.join(parts)) > most:
        share = most // len(parts) - 1
        parts = [_shorten(part, share) for part in parts]
    return SEPARATOR.join(part for part in parts if part)


def _shorten(text: str, most: int) -> str:
    """The first words of a text, at most so many tokens."""
    spans = tokens.find_spans(text)
    if len(spans) <= most:
        return text
    until = spans[most][0] if most > 0 else 0
    return text[: max(text.rfind(" ", 0, until + 1), 0)].rstrip()


def _shorten_header(text: str, most: int) -> str:
    """A table's header in so many tokens: without its rule, then with shortened names, then with fewer columns."""
    if tokens.count(text) <= most and len(text) <= most * STRIDE:
        return text
    row = text.partition("\n")[0].strip().removeprefix("|").removesuffix("|")
    cells = [" ".join(word for word in cell.split() if len(word) <= STRIDE) for cell in PIPE.split(row)][:most]
    spans = [tokens.find_spans(cell) for cell in cells]
    budget = most - 1 - len(cells)  # without the pipes
    share = next((n for n in range(most, 1, -1) if sum(min(n, len(one)) for one in spans) <= budget), 1)
    short = [
        cell[: one[share][0]].rstrip() if len(one) > share else cell for cell, one in zip(cells, spans, strict=True)
    ]
    costs = accumulate((1 + min(share, len(one)) for one in spans), initial=1)
    return f"| {' | '.join(short[: sum(cost <= most for cost in costs) - 1])} |"


def _break_point(text: str, start: int, reach: int) -> int:
    """The place to divide at, in the second half of the reach; within a word only if there is no other place."""
    reach = max(reach, start + 1)
    middle = (start + reach + 1) // 2
    for pattern in BREAKS:
        if ends := [found.end() for found in pattern.finditer(text, middle, reach)]:
            return ends[-1]
    return reach


def prose_outside_tables(text: str) -> str:
    """The sentences of a chunk that stand outside its tables; each row of a table has a pipe."""
    rest = "\n".join(line for line in text.split("\n") if "|" not in line)
    return "\n".join(rest[one.start : one.stop] for one in units(rest) if not one.level)


def choose_sentences(text: str, kind: Kind) -> tuple[str, Kind]:
    """The text of a chunk to draw facts from, and its kind: the sentences beside a table, and nothing of a log."""
    if kind == "table":
        return prose_outside_tables(text), "prose"
    return ("" if kind == "log" else text), kind


def make_piece(text: str, start: int, heading: str = "") -> Piece:
    """A text as one piece, however long it is."""
    whole = text_to_embed(heading, text)
    count = tokens.count(whole) + SPECIAL_TOKENS
    digest = hashlib.sha256(whole.encode()).digest()
    return Piece(start, start + len(text), "prose", language_of(text), heading, text, count, digest)


# --- stored


async def save(tx: Tx, scope: ScopeId, document: DocumentId, page: int, pieces: Sequence[Piece]) -> None:
    """Saves the chunks of one page, numbered from 0. Its chunks before are deleted, with their vectors and mentions."""
    await tx.execute(SQL["forget_page"], document=document, page=page)
    for ordinal, one in enumerate(pieces):
        await tx.execute(
            SQL["save"],
            scope=scope,
            document=document,
            page=page,
            ordinal=ordinal,
            start=one.start,
            stop=one.stop,
            tokens=one.tokens,
            kind=one.kind,
            language=one.language,
            heading=one.heading,
            text=one.text,
            hash=one.hash,
        )


async def load(tx: Tx, units: Sequence[tuple[DocumentId, int, int]]) -> list[Chunk | None]:
    """The chunks with these documents, pages and ordinals, in this order; None for a chunk that is gone."""
    rows = await tx.all(
        SQL["load"],
        Chunk,
        documents=[one[0] for one in units],
        pages=[one[1] for one in units],
        ordinals=[one[2] for one in units],
    )
    found = {(chunk.document, chunk.page, chunk.ordinal): chunk for chunk in rows}
    return [found.get(unit) for unit in units]


async def move(tx: Tx, old: DocumentId, new: DocumentId, pages: Mapping[int, int]) -> None:
    """Give the chunks of these pages of a document to another one, where the pages have these numbers."""
    await tx.execute(SQL["move"], old=old, new=new, numbers=list(pages), places=list(pages.values()))


async def add(tx: Tx, places: Sequence[tuple[DocumentId, int]], pieces: Sequence[Piece]) -> list[Chunk]:
    """Saves each piece as the only chunk of its page (a document and a number), all in one statement."""
    return await tx.all(
        SQL["add"],
        Chunk,
        documents=[document for document, _ in places],
        pages=[page for _, page in places],
        tokens=[piece.tokens for piece in pieces],
        languages=[piece.language for piece in pieces],
        texts=[piece.text for piece in pieces],
        hashes=[piece.hash for piece in pieces],
    )


async def remove(tx: Tx, ids: Sequence[ChunkId]) -> None:
    """Deletes chunks, with their vectors, terms and mentions."""
    await tx.execute(SQL["remove"], chunks=list(ids))


async def relocate(tx: Tx, ids: Sequence[ChunkId], document: DocumentId, pages: Sequence[int]) -> None:
    """Gives each chunk to a page of this document."""
    await tx.execute(SQL["relocate"], chunks=list(ids), document=document, pages=list(pages))
