"""Workers and the server are killed while documents are ground, and what comes out is the same as without that."""

import asyncio
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import LiteralString

import psutil
import psycopg
from watch import family, until

from gristmill.db import Database, Tx, open_database
from gristmill.db.embedded import Embedded
from gristmill.documents import add_file
from gristmill.queue import set_queue
from gristmill.scopes import GLOBAL
from gristmill.settings import Settings
from gristmill.sources import files_in

ROOT = Path(__file__).parents[2]
GENERATED = 200
KILLS = 9
PAUSE = (0.2, 2.0)  # seconds between them
LONGEST = 100.0
QUEUES = ("documents", "ocr", "vector", "graph", "knowledge")  # what a qualifier makes of them depends on their order
FACTS: dict[str, LiteralString] = {
    "documents": "SELECT urn, name, version, hash, type, title, pages, meta, written_at FROM document",
    "statuses": "SELECT urn, version, status, total_pages, ocr_status, ocr_completed_pages, ocr_failed_pages,"
    " vector_index_status, total_chunks, vector_completed_chunks, vector_failed_chunks, graphrag_index_status,"
    " graphrag_completed_chunks, graphrag_failed_chunks FROM document_status",
    "pages": "SELECT d.urn, p.number, p.method, p.text, s.ocr_status, s.chunk_count, s.vector_status, s.graphrag_status"
    " FROM page p JOIN document d ON d.id = p.document"
    " JOIN page_status s ON s.document_id = d.id AND s.page_number = p.number",
    "chunks": "SELECT d.urn, c.page, c.ordinal, c.start, c.stop, c.tokens, c.kind, c.language, c.heading, c.text,"
    " c.hash, s.vector_status, s.graphrag_status"
    " FROM chunk c JOIN document d ON d.id = c.document JOIN chunk_status s ON s.id = c.id",
    "vectors": "SELECT d.urn, c.page, c.ordinal, m.name AS model, vector_dims(e.vector) FROM embedding e"
    " JOIN embedding_model m ON m.id = e.model JOIN chunk c ON c.id = e.chunk JOIN document d ON d.id = c.document",
    "terms": "SELECT term, sum(n) AS chunks FROM (SELECT term, octet_length(data) / 9 AS n FROM posting"
    " UNION ALL SELECT jsonb_object_keys(terms), 1 FROM fresh_terms) t GROUP BY term",
    "mentions": "SELECT d.urn, c.page, c.ordinal, m.key, m.type, m.name, m.count, m.stated, m.properties FROM mention m"
    " JOIN chunk c ON c.id = m.chunk JOIN document d ON d.id = c.document",
    "relations": "SELECT d.urn, c.page, c.ordinal, r.source, r.type, r.target, r.extracted, r.stated, r.properties"
    " FROM relation r JOIN chunk c ON c.id = r.chunk JOIN document d ON d.id = c.document",
    "nodes": "SELECT * FROM node",
    "edges": "SELECT * FROM edge",
    "tasks": "SELECT kind, status, count(*) FROM tasks WHERE owner IS NOT NULL GROUP BY kind, status",
}


async def test_killing_workers_and_the_server_changes_nothing_about_what_comes_out(tmp_path: Path) -> None:
    generate(tmp_path / "generated")
    calm = await ground(tmp_path, processes=1, disturbed=False)
    torn = await ground(tmp_path, processes=2, disturbed=True)
    assert calm.keys() == FACTS.keys()
    for what in FACTS:
        assert calm[what][0] > 0, f"there are no {what}: nothing is compared"
        assert torn[what] == calm[what], f"the {what} differ"


async def ground(folder: Path, *, processes: int, disturbed: bool) -> dict[str, tuple[int, str]]:
    """Grind everything in a mill of its own; how many facts of each kind came out, and their hash."""
    with tempfile.TemporaryDirectory(prefix="gristmill-faults-") as place:
        os.chmod(place, 0o711)
        settings = Settings(data=Path(place) / "data")
        server = Embedded(settings.data)
        try:
            await take_in(settings, folder)
            with workers(settings, processes, folder / ("torn.log" if disturbed else "calm.log")) as supervisor:
                if disturbed:
                    await disturb(server, supervisor)
                await until(lambda: ended(server), LONGEST, "all documents")
            return await facts(server)
        finally:
            await asyncio.to_thread(server.stop, "immediate")


async def take_in(settings: Settings, folder: Path) -> None:
    async with open_database(settings) as db:
        for path in [*files_in(str(ROOT / "examples" / "inbox")), *files_in(str(folder / "generated"))]:
            added = await add_file(db, path, GLOBAL, max_bytes=settings.documents.max_bytes)
            assert added.status == "added", added
        async with db.transaction() as tx:
            for queue in QUEUES[:4]:  # what was killed comes back soon, however often
                await set_queue(tx, queue, retry_base="200ms", retry_cap="1s", max_attempts=20)


@contextmanager
def workers(
    settings: Settings, processes: int, log: Path, queues: Sequence[str] = QUEUES
) -> Iterator[subprocess.Popen[bytes]]:
    """Processes under a supervisor, as `gristmill worker` starts them."""
    environment = {**os.environ, "GRISTMILL_DATA": str(settings.data), "GRISTMILL_DOCUMENTS_PROCESSES": "1"}
    command = [sys.executable, "-m", "gristmill", "worker", "--processes", str(processes), "--concurrency", "8"]
    command += ["--queues", ",".join(queues)]
    with log.open("ab") as said:
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        yield process
    except BaseException:
        sys.stderr.write(log.read_text(errors="replace")[-6000:])
        raise
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    started = family(process.pid)
    process.terminate()
    try:
        process.wait(60)
    except subprocess.TimeoutExpired:
        for pid in (process.pid, *started):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


async def disturb(server: Embedded, supervisor: subprocess.Popen[bytes]) -> None:
    """Kill, at random moments, a worker, one of its children or the whole server; nobody is told of it."""
    chance = random.Random(7)
    victims = ["worker", "child", "server"] * (KILLS // 3)
    chance.shuffle(victims)
    await until(lambda: holds(server, "SELECT EXISTS (SELECT FROM page)"), 60, "the first page")
    struck: set[str] = set()
    for victim in victims:
        await asyncio.sleep(chance.uniform(*PAUSE))
        await until(lambda: holds(server, "SELECT true"), 60, "the server, which a worker starts again")
        if not await ended(server) and strike(chance, victim, server, supervisor):
            struck.add(victim)
    assert struck == {"worker", "child", "server"}, "there was too little work to disturb"


def strike(chance: random.Random, victim: str, server: Embedded, supervisor: subprocess.Popen[bytes]) -> bool:
    """Whether there was somebody to kill."""
    crew = [child.pid for child in psutil.Process(supervisor.pid).children()]
    match victim:
        case "worker":
            doomed = [chance.choice(crew)] if crew else []
        case "child":
            children = [child for worker in crew for child in family(worker)]
            doomed = [chance.choice(children)] if children else []
        case _:
            postmaster = int((server.cluster / "postmaster.pid").read_text().partition("\n")[0])
            doomed = [postmaster, *family(postmaster)]
    for pid in doomed:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(doomed)


async def ended(server: Embedded) -> bool:
    return await holds(server, "SELECT bool_and(status IN ('completed', 'failed', 'cancelled')) FROM document_status")


async def holds(server: Embedded, question: LiteralString) -> bool:
    """Not while the server is down: it is for the workers to start it again."""
    await asyncio.sleep(0.2)
    try:
        async with await Database(server.url()).connect("look") as connection:
            return bool(await Tx(connection).value(question))
    except psycopg.OperationalError:
        return False


async def facts(server: Embedded, wanted: Mapping[str, LiteralString] = FACTS) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    async with await Database(server.url()).connect("facts") as connection:
        for what, query in wanted.items():
            lines = sorted(repr(tuple(row)) for row in await Tx(connection).all(query))
            found[what] = (len(lines), hashlib.sha256("\n".join(lines).encode()).hexdigest())
    return found


def generate(folder: Path) -> None:
    """Two hundred short notes, mails and pages about the same few people and companies."""
    folder.mkdir()
    chance = random.Random(11)
    people = ["Anna Berg", "Ben Holt", "Carla Diaz", "David Stone", "Emma Frost", "Felix Hall"]
    firms = ["Nordwind Ltd", "Harbour Mills Inc", "Blue Kiln GmbH", "Orchard Systems"]
    cities = ["Hamburg", "Lisbon", "Oslo", "Dublin"]
    verbs = ["signed", "reviewed", "cancelled", "paid", "ordered"]
    for n in range(GENERATED):
        lines = [
            f"{chance.choice(people)} of {chance.choice(firms)} {chance.choice(verbs)} invoice INV-2024-{n:03}{k} over "
            f"{chance.randint(100, 9000)} EUR in {chance.choice(cities)} on {k + 1} May 2024."
            for k in range(chance.randint(1, 4))
        ]
        body = "\n\n".join(lines)
        match n % 4:
            case 0:
                (folder / f"note-{n:03}.md").write_text(f"# Note {n}\n\n{body}\n")
            case 1:
                sender, reader = chance.sample(people, 2)
                head = (
                    f"From: {sender} <{sender.split()[0].lower()}@example.com>\nTo: {reader} "
                    f"<{reader.split()[0].lower()}@example.com>\nSubject: Matter {n}\nMessage-ID: <{n}@example.com>\n"
                )
                (folder / f"mail-{n:03}.eml").write_text(f"{head}Content-Type: text/plain; charset=utf-8\n\n{body}\n")
            case 2:
                paragraphs = "".join(f"<p>{line}</p>" for line in lines)
                (folder / f"page-{n:03}.html").write_text(f"<html><body><h1>Page {n}</h1>{paragraphs}</body></html>")
            case _:
                (folder / f"text-{n:03}.txt").write_text(body)
