"""`make bench-documents`: each phase of the mill beside the bare engine it drives, and how well it reads.

The last line is JSON: embed_ratio, ocr_ratio, pdf_ratio, ocr_cer_sroie, olmocr_pass_rate. A ratio is units a second
through the queue and into the database, divided by those of the bare function called in as many processes as there are
cores. Models are warm on both sides.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)

import json  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import re  # noqa: E402
import tempfile  # noqa: E402
from collections.abc import AsyncIterator, Callable, Sequence  # noqa: E402
from concurrent.futures import ProcessPoolExecutor  # noqa: E402
from contextlib import asynccontextmanager  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from functools import partial  # noqa: E402
from multiprocessing import get_context  # noqa: E402
from time import perf_counter  # noqa: E402
from typing import Any  # noqa: E402

import uvloop  # noqa: E402
from bench.documents_quality import CORPORA, RECEIPTS, olmocr_pass_rate, sroie_cer  # noqa: E402
from examples.make_inbox import Pdf  # noqa: E402
from rich.console import Console  # noqa: E402

from gristmill.app import ROOMS  # noqa: E402
from gristmill.db import Database, open_database  # noqa: E402
from gristmill.db.embedded import Embedded  # noqa: E402
from gristmill.documents import add_file  # noqa: E402
from gristmill.documents.reading import Limits, read  # noqa: E402
from gristmill.documents.reading.open_files import OpenFile  # noqa: E402
from gristmill.knowledge.chunks import split  # noqa: E402
from gristmill.models import ModelPool  # noqa: E402
from gristmill.models.embedding import minilm  # noqa: E402
from gristmill.queue import Handlers, Worker  # noqa: E402
from gristmill.rooms import Tools, bind_rooms  # noqa: E402
from gristmill.scopes import GLOBAL  # noqa: E402
from gristmill.settings import Settings  # noqa: E402

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- documents:begin -->", "<!-- documents:end -->"
CORES = os.cpu_count() or 1
# so that all of it takes less than ten minutes on two cores
ABSTRACTS, WARM, SCANS, BOOKS, BOOK, ROUNDS, PDF_ROUNDS = 500, 40, 16, 12, 200, 3, 7
GOALS = {"embed": 0.90, "ocr": 0.90, "pdf": 0.70}
err = Console(stderr=True, highlight=False)


@dataclass(frozen=True)
class Rate:
    """Units a second, bare and through the mill."""

    bare: float
    mill: float

    @property
    def ratio(self) -> float:
        return round(self.mill / self.bare, 3)


@dataclass
class Mill:
    """A mill in this process, whose children stay warm from one grinding to the next."""

    db: Database
    handlers: Handlers
    settings: Settings

    async def add(self, files: Sequence[Path]) -> None:
        for file in files:
            await add_file(self.db, file, GLOBAL, max_bytes=self.settings.documents.max_bytes)

    async def grind(self, *queues: str) -> None:
        await Worker(self.db, self.handlers, self.settings.queue, queues=queues, until_idle=True).run()

    async def timed(self, kind: str, *queues: str) -> float:
        """Tasks of this kind a second, from the first claim to the last completion, as the database saw it."""
        async with self.db.transaction() as tx:
            last = await tx.value("SELECT max(id) FROM task WHERE kind = %(kind)s AND outcome IS NOT NULL", kind=kind)
        await self.grind(*queues)
        async with self.db.transaction() as tx:
            row = await tx.one(
                "SELECT count(*) AS n, extract(epoch FROM max(finished_at) - min(started_at)) AS seconds FROM task"
                " WHERE kind = %(kind)s AND id > %(last)s AND outcome IN ('completed', 'skipped')",
                kind=kind,
                last=last or 0,
            )
        assert row is not None
        return row.n / float(row.seconds)


@asynccontextmanager
async def mill() -> AsyncIterator[Mill]:
    with tempfile.TemporaryDirectory(prefix="gristmill-bench-") as folder:
        os.chmod(folder, 0o711)
        settings = Settings(data=Path(folder) / "data")
        try:
            async with open_database(settings, size=8) as db, ModelPool(settings) as models:
                yield Mill(db, bind_rooms(ROOMS, Tools(db, settings, models)), settings)
        finally:
            Embedded(settings.data).stop("immediate")


def bare(function: Callable[[Any], int], warm: Any, shares: Sequence[Any]) -> float:
    """Units a second of a function that is called in one process per core, with nothing else around it."""
    with ProcessPoolExecutor(CORES, mp_context=get_context("spawn")) as pool:
        list(pool.map(function, [warm] * CORES))
        began = perf_counter()
        done = sum(pool.map(function, shares))
        return done / (perf_counter() - began)


async def beside(at: Mill, kind: str, queue: str, by_itself: Callable[[], float]) -> Rate:
    """The bare engine before and after: what else the machine does changes from minute to minute."""
    before = by_itself()
    mill = await at.timed(kind, queue)
    after = by_itself()
    err.print(f"  bare {before:,.1f}, through the mill {mill:,.1f}, bare again {after:,.1f}")
    return Rate((before + after) / 2, mill)


def middle(rates: Sequence[Rate]) -> Rate:
    return sorted(rates, key=lambda rate: rate.ratio)[len(rates) // 2]


def embed_bare(texts: Sequence[str]) -> int:
    return len(minilm.embed_texts(list(texts)))


def read_bare(work: Sequence[tuple[str, str, int]]) -> int:
    for path, type_, number in work:
        read(path, type_, number, Limits())
    return len(work)


def dealt(things: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [things[at : at + size] for at in range(0, len(things), size)]


async def embedding(folder: Path) -> Rate:
    """The vector phase: scientific abstracts are split, and their chunks embedded, 64 in one call."""
    texts = abstracts()
    files = [folder / f"{n}.md" for n in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    async with mill() as at:
        await at.add(files[:WARM])
        await at.grind("documents", "ocr", "vector")
        rates: list[Rate] = []
        for some in dealt(range(WARM, len(texts)), -(-(len(texts) - WARM) // ROUNDS)):
            chunks = [piece.text_to_embed for n in some for piece in split(texts[n])]
            by_itself = partial(bare, embed_bare, chunks[:16], dealt(chunks, 16))  # few, so that no process waits
            await at.add([files[n] for n in some])
            await at.grind("documents", "ocr")
            rates.append(await beside(at, "vector.embed", "vector", by_itself))
        return middle(rates)


async def scans(folder: Path) -> Rate:
    """The OCR phase on receipts, one picture a page."""
    pictures = sorted((RECEIPTS / "img").glob("*.jpg"))[: SCANS + CORES]
    work = [(str(picture), "image", 1) for picture in pictures]
    async with mill() as at:
        await at.add(pictures[:CORES])
        await at.grind("documents", "ocr")
        await at.add(pictures[CORES:])
        await at.grind("documents")
        return await beside(at, "ocr.read", "ocr", partial(bare, read_bare, work[:1], dealt(work[CORES:], 1)))


async def pdfs(folder: Path) -> Rate:
    """The OCR phase on PDFs that carry their text: one task a page, split into chunks and written."""
    files = [folder / f"book-{n}.pdf" for n in range(PDF_ROUNDS * BOOKS + 1)]
    for n, file in enumerate(files):
        file.write_bytes(book(n))
    async with mill() as at:
        await at.add(files[:1])
        await at.grind("documents", "ocr")
        rates: list[Rate] = []
        for some in dealt(files[1:], BOOKS):
            work = [(str(file), "pdf", number) for file in some for number in range(1, BOOK + 1)]
            await at.add(some)
            await at.grind("documents")
            rates.append(await beside(at, "ocr.read", "ocr", partial(bare, read_bare, work[:5], dealt(work, 25))))
        return middle(rates)


def book(seed: int) -> bytes:
    """Pages of ordinary length: forty lines of words from the abstracts."""
    chance = random.Random(seed)
    words = " ".join(abstracts()[:200]).encode("ascii", "ignore").decode().split()
    pdf = Pdf(f"Book {seed}", "Nobody", "20260101000000Z")
    for _ in range(BOOK):
        pdf.page()
        for row in range(40):
            pdf.line(" ".join(chance.choices(words, k=12))[:95], 50, 790 - 18 * row)
    return pdf.data()


def abstracts() -> list[str]:
    lines = (CORPORA / "scifact" / "corpus.jsonl").read_text(encoding="utf-8").splitlines()[:ABSTRACTS]
    records = [json.loads(line) for line in lines]
    return [f"# {one['title']}\n\n{' '.join(one['sentences'])}" for one in records]


async def main() -> None:
    if not RECEIPTS.is_dir():
        sys.exit(f"There is nothing to read in {CORPORA}: GRISTMILL_CORPORA says where scifact, sroie and olmocr are.")
    figures: dict[str, float] = {}
    rows: list[tuple[str, str, str, str]] = []
    for name, unit, measure in (
        ("embed", "chunks/s", embedding),
        ("ocr", "scans/s", scans),
        ("pdf", "pages/s", pdfs),
    ):
        err.print(f"Measuring {name} …")
        with tempfile.TemporaryDirectory() as folder:
            rate = await measure(Path(folder))
        figures[f"{name}_ratio"] = rate.ratio
        rows.append((name, f"{rate.bare:,.1f} {unit}", f"{rate.mill:,.1f} {unit}", f"{rate.ratio:.2f}"))
        err.print(f"  {name}: {rate.ratio:.2f}")
    err.print("Reading the receipts and the hard pages …")
    figures["ocr_cer_sroie"] = round(sroie_cer(), 4)
    figures["olmocr_pass_rate"] = round(olmocr_pass_rate(read_page), 4)
    OpenFile.forget()  # or the reader of PDFs complains at the end that the last one is open
    write_section(table(rows, figures))
    print(json.dumps(figures))


def table(rows: Sequence[Sequence[str]], figures: dict[str, float]) -> str:
    lines = ["| phase | bare engine | through the mill | ratio | to reach |", "|---|--:|--:|--:|---|"]
    lines += [f"| {' | '.join(row)} | ≥ {GOALS[row[0]]:.2f} |" for row in rows]
    cer, passed = figures["ocr_cer_sroie"], figures["olmocr_pass_rate"]
    quality = (
        f"{cer:.1%} of the characters of 60 receipts (SROIE) are wrong, {passed:.0%} of olmOCR's sample tests pass."
    )
    how = f"`make bench-documents` on {CORES} cores; the middle of {ROUNDS} rounds (embedding) and {PDF_ROUNDS} (PDFs)."
    return "\n".join([*lines, "", quality, "", how])


def read_page(path: Path, number: int) -> str:
    return read(str(path), "pdf", number, Limits()).text


def write_section(text: str) -> None:
    page = PAGE.read_text(encoding="utf-8")
    body = f"{BEGIN}\n{text}\n{END}"
    PAGE.write_text(
        re.sub(re.escape(BEGIN) + ".*?" + re.escape(END), lambda _: body, page, flags=re.DOTALL), encoding="utf-8"
    )


if __name__ == "__main__":
    uvloop.run(main())  # as workers do
