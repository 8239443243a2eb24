"""Measures how well and how fast search is: SciFact, and 100,000 synthetic chunks: `make bench-search`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # or bench/queue.py would stand in for the standard library's queue

import argparse  # noqa: E402
import asyncio  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import random  # noqa: E402
import re  # noqa: E402
import shutil  # noqa: E402
import statistics  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from collections import defaultdict, deque  # noqa: E402
from collections.abc import AsyncIterator, Iterator, Sequence  # noqa: E402
from contextlib import asynccontextmanager  # noqa: E402
from hashlib import sha256  # noqa: E402
from math import log2  # noqa: E402

import numpy as np  # noqa: E402

from gristmill.db import Database, Embedded, Tx, Vector, open_database  # noqa: E402
from gristmill.db.embedded import ADMIN, USER  # noqa: E402
from gristmill.ids import DocumentId, ScopeId  # noqa: E402
from gristmill.knowledge import chunks, lexicon, make_searchable, search, terms_of, vectors  # noqa: E402
from gristmill.knowledge.letters import FoldTerms  # noqa: E402
from gristmill.models import MiniLm  # noqa: E402
from gristmill.models.embedding.tokens import load_tokenizer  # noqa: E402
from gristmill.processes import ProcessPool  # noqa: E402
from gristmill.scopes import GLOBAL, scope_id  # noqa: E402
from gristmill.settings import Settings  # noqa: E402

CORPORA = Path(os.environ.get("GRISTMILL_CORPORA", ROOT.parent / "shared" / "corpora"))
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- search:begin -->", "<!-- search:end -->"
CHUNKS, PER_DOCUMENT, WORDS, VOCABULARY, CLUSTERS, QUERIES = 100_000, 100, 130, 60_000, 300, 300
K = 100  # neighbours that search asks for, and so the bare query

NEAREST = f"SELECT chunk FROM embedding WHERE model = 1 ORDER BY vector::vector(384) <=> %s::vector LIMIT {K}"
DOCUMENT = """
WITH b AS (INSERT INTO blob (hash, size) VALUES (%(hash)s, 0) ON CONFLICT DO NOTHING)
INSERT INTO document (scope, urn, version, hash, name, type, title, pages, task, opening)
VALUES (%(scope)s, %(urn)s, 1, %(hash)s, %(name)s, 'text', %(title)s, 1, 0, 0) RETURNING id
"""


@asynccontextmanager
async def database() -> AsyncIterator[Database]:
    """An embedded PostgreSQL with its ordinary settings, gone afterwards."""
    data = Path(tempfile.mkdtemp(prefix="gristmill-bench-"))
    try:
        async with open_database(Settings(data=data)) as db:
            yield db
    finally:
        Embedded(data).stop("immediate")
        shutil.rmtree(data, ignore_errors=True)


async def placed(tx: Tx, scope: ScopeId, name: str, title: str) -> DocumentId:
    hash_ = sha256(name.encode()).digest()
    row = await tx.value(DOCUMENT, scope=scope, urn=f"bench:{name}", hash=hash_, name=name, title=title)
    return DocumentId(row)


# ── SciFact ─────────────────────────────────────────────────────────────────


async def scifact(embedder: MiniLm, part: int | None) -> dict[str, float]:
    """nDCG@10 by words, by meaning and by both; a document is as good as its best chunk."""
    folder = CORPORA / "scifact"
    abstracts = [json.loads(line) for line in (folder / "corpus.jsonl").read_text().splitlines()][:part]
    queries = [line.split("\t") for line in (folder / "queries.tsv").read_text().splitlines()]
    relevant: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / "qrels.txt").read_text().splitlines():
        query, _, document, grade = line.split()
        relevant[query][document] = int(grade)
    figures: dict[str, float] = {}
    async with database() as db:
        began = time.perf_counter()
        async with db.transaction() as tx:
            scope = await scope_id(tx, GLOBAL)
            await vectors.register(tx, embedder)
        todo = deque(abstracts[at : at + 256] for at in range(0, len(abstracts), 256))

        async def ground_all() -> None:
            while todo:
                await ground(db, embedder, todo.popleft())
                say(f"SciFact: {len(todo) * 256:,} of {len(abstracts):,} abstracts are left")

        await asyncio.gather(ground_all(), ground_all())  # one is embedded while the other is written
        say(f"SciFact: all are searchable, after {time.perf_counter() - began:.0f} s")
        await lexicon.fold_terms(FoldTerms(scope), db=db)
        for name, alpha in (("bm25", 0.0), ("vector", 1.0), ("hybrid", 0.5)):
            found = [await ranked(db, embedder, text, alpha) for _, text in queries]
            gains = [ndcg(one, relevant[query]) for one, (query, _) in zip(found, queries, strict=True)]
            figures[f"scifact_ndcg10_{name}"] = statistics.mean(gains)
            say(f"SciFact, alpha {alpha}: nDCG@10 {figures[f'scifact_ndcg10_{name}']:.4f}")
    return figures


async def ground(db: Database, embedder: MiniLm, abstracts: Sequence[dict[str, object]]) -> None:
    async with db.transaction() as tx:
        scope = await scope_id(tx, GLOBAL)
        model = await vectors.register(tx, embedder)
        units = []
        for one in abstracts:
            title, sentences = str(one["title"]), one["sentences"]
            assert isinstance(sentences, list)
            document = await placed(tx, scope, str(one["id"]), title)
            pieces = chunks.split(" ".join(str(line).strip() for line in sentences), title=title)
            await chunks.save(tx, scope, document, 1, pieces)
            units += [(document, 1, n) for n in range(len(pieces))]
        stored = [chunk for chunk in await chunks.load(tx, units) if chunk]
        made = await embedder.embed([chunk.text_to_embed for chunk in stored])
        for chunk, vector in zip(stored, made, strict=True):
            await make_searchable(tx, chunk, {model.id: vector}, terms_of(chunk.text_to_embed, chunk.language))


async def ranked(db: Database, embedder: MiniLm, query: str, alpha: float) -> list[str]:
    hits = await search(db, embedder, query, alpha=alpha, limit=30)
    assert hits.note is None, hits.note
    return list(dict.fromkeys(hit.name for hit in hits))


def ndcg(found: Sequence[str], relevant: dict[str, int]) -> float:
    gain = sum(relevant.get(one, 0) / log2(n + 2) for n, one in enumerate(found[:10]))
    best = sum(one / log2(n + 2) for n, one in enumerate(sorted(relevant.values(), reverse=True)[:10]))
    return gain / best


# ── 100,000 chunks ──────────────────────────────────────────────────────────


async def speed(embedder: MiniLm, size: int) -> dict[str, float]:
    """Search from the question to the hits, beside a bare query of the vector index for the same number of rows."""
    rng = np.random.default_rng(7)
    async with database() as db:
        figures = await filled(db, embedder, size, rng)
        queries = [" ".join(words(rng, int(rng.integers(2, 8)))) for _ in range(QUERIES)]
        ours, bare, parts = [], [], defaultdict[str, list[float]](list)
        await embedder.embed_question("warm")
        async with await db.connect("bench") as connection:
            await connection.execute(f"SET hnsw.ef_search = {K}")
            for n, query in enumerate(queries):
                began = time.perf_counter()
                vector = await embedder.embed_question(query)
                parts["embed"].append(time.perf_counter() - began)
                began = time.perf_counter()
                cursor = await connection.execute(NEAREST, [Vector(vector)])
                assert len(await cursor.fetchall()) == min(K, size)
                bare.append(time.perf_counter() - began)
                began = time.perf_counter()
                hits = await search(db, embedder, query)
                ours.append(time.perf_counter() - began)
                assert hits
                assert hits.note is None
                if n % 50 == 49:
                    say(f"{n + 1} of {QUERIES} queries: p95 {p95(ours):.1f} ms, bare index {p95(bare):.1f} ms")
        for query in queries:
            began = time.perf_counter()
            await search(db, None, query, alpha=0)
            parts["words"].append(time.perf_counter() - began)
        figures["row_security_share"] = await row_security_share(db, embedder, queries)
    figures |= {"search_p50_ms": statistics.median(ours) * 1e3, "search_p95_ms": p95(ours)}
    figures |= {"pgvector_p50_ms": statistics.median(bare) * 1e3, "pgvector_p95_ms": p95(bare)}
    figures |= {f"{name}_p50_ms": statistics.median(times) * 1e3 for name, times in parts.items()}
    figures |= {f"{name}_p95_ms": p95(times) for name, times in parts.items()}
    return figures


async def row_security_share(db: Database, embedder: MiniLm, queries: Sequence[str]) -> float:
    """How much longer a search takes at p50 because the database itself checks its rows; both take turns."""
    times: dict[bool, list[float]] = {True: [], False: []}
    async with Database(db.url, row_security=False) as unchecked:
        for query in queries:
            for checked in (True, False):
                began = time.perf_counter()
                await search(db if checked else unchecked, embedder, query)
                times[checked].append(time.perf_counter() - began)
    return statistics.median(times[True]) / statistics.median(times[False]) - 1


def p95(times: Sequence[float]) -> float:
    return statistics.quantiles(times, n=20)[18] * 1e3 if len(times) > 1 else times[0] * 1e3


def vocabulary() -> list[str]:
    """As a language has them: the frequent words are one token to the model, the rare ones two."""
    # the most frequent have the lowest numbers
    known = sorted(load_tokenizer().get_vocab().items(), key=lambda one: one[1])
    pieces = [piece for piece, _ in known if piece.isascii()]
    found = [piece for piece in pieces if piece.isalpha() and len(piece) > 2]
    ends = [piece[2:] for piece in pieces if piece.startswith("##") and piece[2:].isalpha() and 4 <= len(piece) <= 6]
    rng = random.Random(7)
    longer = (rng.choice(found) + rng.choice(ends) for _ in range(2 * VOCABULARY))
    return list(dict.fromkeys([*found, *longer]))[:VOCABULARY]


VOCAB = vocabulary()
WEIGHTS = 1 / (np.arange(VOCABULARY) + 2.7)
CUMULATED = np.cumsum(WEIGHTS / WEIGHTS.sum())


def words(rng: np.random.Generator, n: int) -> list[str]:
    """As natural language has them: the second most frequent half as often as the first."""
    return [VOCAB[min(int(at), VOCABULARY - 1)] for at in np.searchsorted(CUMULATED, rng.random(n))]


async def filled(db: Database, embedder: MiniLm, size: int, rng: np.random.Generator) -> dict[str, float]:
    """The tables as grinding leaves them; rows by COPY, the terms by the real code, the vector index at the end."""
    began = time.perf_counter()
    async with db.transaction() as tx:
        scope = await scope_id(tx, GLOBAL)
        model = await vectors.register(tx, embedder)
        await tx.execute(f"DROP INDEX embedding_near_{model.id}")
        for n in range(-(-size // PER_DOCUMENT)):
            await placed(tx, scope, f"synthetic {n}", f"Synthetic {n}")
    centres = rng.normal(size=(CLUSTERS, model.dimensions))
    for at in range(0, size, 10_000):
        n = min(10_000, size - at)
        texts = [" ".join(words(rng, int(rng.integers(WORDS // 2, WORDS * 3 // 2)))) for _ in range(n)]
        points = centres[rng.integers(CLUSTERS, size=n)] + rng.normal(size=(n, model.dimensions))
        points /= np.linalg.norm(points, axis=1, keepdims=True)
        async with db.transaction() as tx:
            await tx.copy(f"COPY chunk ({COLUMNS}) FROM STDIN", chunk_rows(scope, at, texts))
            ids = [row.id for row in await tx.all("SELECT id FROM chunk ORDER BY id DESC LIMIT %(n)s", n=n)][::-1]
            await tx.copy(
                "COPY embedding (model, chunk, scope, vector) FROM STDIN", vector_rows(model.id, scope, ids, points)
            )
            await tx.copy(
                "COPY fresh_terms (chunk, scope, language, length, terms) FROM STDIN", term_rows(scope, ids, texts)
            )
        say(f"{at + n:,} of {size:,} chunks are written")
        await lexicon.fold_terms(FoldTerms(scope), db=db)
    indexing = time.perf_counter()
    async with db.transaction() as tx:
        await tx.execute("SET LOCAL maintenance_work_mem = '1GB'")
        await tx.one(f"SELECT make_vector_index({model.id}::smallint, {model.dimensions})")
    say(f"the vector index is made, in {time.perf_counter() - indexing:.0f} s")
    async with await db.connect("bench") as connection:
        await connection.execute("VACUUM ANALYZE")
        (segments,) = await (await connection.execute("SELECT count(*) FROM segment")).fetchone() or (0,)
        (bytes_,) = await (await connection.execute("SELECT pg_total_relation_size('posting')")).fetchone() or (0,)
    superuser = Database(db.url.replace(f"{USER}@", f"{ADMIN}@"))
    async with await superuser.connect("bench") as connection:
        await connection.execute("CHECKPOINT")  # or what was filled in would be written to disk while we search
    return {"fill_s": time.perf_counter() - began, "segments": segments, "postings_mb": bytes_ / 2**20}


COLUMNS = "scope, document, page, ordinal, start, stop, tokens, kind, language, heading, text, hash"


def chunk_rows(scope: int, at: int, texts: Sequence[str]) -> Iterator[bytes]:
    for n, text in enumerate(texts, at):
        document, ordinal = n // PER_DOCUMENT + 1, n % PER_DOCUMENT
        digest = sha256(text.encode()).hexdigest()
        yield f"{scope}\t{document}\t1\t{ordinal}\t0\t{len(text)}\t200\tprose\ten\t\t{text}\t\\\\x{digest}\n".encode()


def vector_rows(model: int, scope: int, ids: Sequence[int], points: np.ndarray) -> Iterator[bytes]:
    for id_, point in zip(ids, points.astype("<f4"), strict=True):
        yield f"{model}\t{id_}\t{scope}\t{vectors.vector_text(point.tobytes())}\n".encode()


def term_rows(scope: int, ids: Sequence[int], texts: Sequence[str]) -> Iterator[bytes]:
    for id_, text in zip(ids, texts, strict=True):
        terms = terms_of(text, "en")
        yield f"{id_}\t{scope}\ten\t{terms.length}\t{json.dumps(terms.counts)}\n".encode()


# ── report ──────────────────────────────────────────────────────────────────

GOALS = {
    "scifact_ndcg10_bm25": ("SciFact, nDCG@10, words alone", "≥ 0.665"),
    "scifact_ndcg10_vector": ("SciFact, nDCG@10, meaning alone", "about 0.645"),
    "scifact_ndcg10_hybrid": ("SciFact, nDCG@10, both (alpha 0.5)", "≥ 0.70"),
    "search_p50_ms": ("search among 100,000 chunks, p50, ms", ""),
    "search_p95_ms": ("search among 100,000 chunks, p95, ms", "≤ 50"),
    "pgvector_p95_ms": ("a bare query of the vector index, p95, ms", ""),
    "ratio": ("search ÷ bare, p95", "≤ 3"),
    "embed_p50_ms": ("… of which the vector of the query, p50, ms", ""),
    "words_p50_ms": ("a search by words alone, p50, ms", ""),
    "words_p95_ms": ("a search by words alone, p95, ms", ""),
    "row_security_share": ("… added to the p50 by row-level security, as a share", "< 0.1"),
    "segments": ("segments after filling", ""),
    "postings_mb": ("postings on disk, MB", ""),
}
ANSWER = [
    *("scifact_ndcg10_bm25", "scifact_ndcg10_vector", "scifact_ndcg10_hybrid"),
    *("search_p50_ms", "search_p95_ms", "pgvector_p95_ms", "row_security_share"),
]


def table(figures: dict[str, float]) -> str:
    rows = [f"| {text} | {figure(figures.get(name))} | {goal} |" for name, (text, goal) in GOALS.items()]
    return "\n".join(["| | | to reach |", "|---|--:|---|", *rows])


def figure(value: float | None) -> str:
    return (
        "–" if value is None else f"{value:.3f}" if value < 1 else f"{value:,.1f}" if value < 1000 else f"{value:,.0f}"
    )


def write_page(figures: dict[str, float]) -> None:
    note = f"*{time.strftime('%Y-%m-%d')}, {os.cpu_count()} cores, load average before {figures['load']:.1f}*"
    page = PAGE.read_text(encoding="utf-8")
    body = f"{BEGIN}\n{note}\n\n{table(figures)}\n{END}"
    PAGE.write_text(re.sub(f"{BEGIN}.*{END}", lambda _: body, page, flags=re.DOTALL), encoding="utf-8")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


async def main(part: int | None, size: int, only: str | None) -> dict[str, float]:
    figures: dict[str, float] = {"load": os.getloadavg()[0]}
    pool = ProcessPool(os.cpu_count() or 1, recycle_after=100_000, nice=Settings().queue.nice)  # as workers have it
    try:
        embedder = MiniLm(pool)
        await embedder.prepare()
        if only != "speed" and (CORPORA / "scifact").is_dir():
            figures |= await scifact(embedder, part)
        if only != "scifact":
            figures |= await speed(embedder, size)
            figures["ratio"] = figures["search_p95_ms"] / figures["pgvector_p95_ms"]
    finally:
        await pool.close()
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything; does not change the page")
    parser.add_argument("--only", choices=["scifact", "speed"])
    asked = parser.parse_args()
    measured = asyncio.run(main(500 if asked.quick else None, CHUNKS // 10 if asked.quick else CHUNKS, asked.only))
    say(table(measured))
    if not asked.quick and not asked.only:
        write_page(measured)
    print(json.dumps({name: round(measured[name], 4) if name in measured else None for name in ANSWER}))
