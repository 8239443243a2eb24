"""Mails that mean harm come among honest ones: each costs its own reading, in bounded time and memory, and no more."""

import asyncio
import gzip
import io
import resource
import zipfile
from base64 import b64encode
from pathlib import Path
from typing import Any

from farm import QUICK, Farm, a_farm, a_mail
from test_addresses import SPELLINGS
from test_link_deciding import NEVER
from test_mail_index import HOSTILE

from gristmill.db import Database
from gristmill.documents.room import ROOM as DOCUMENTS
from gristmill.queue import Worker
from gristmill.rooms import Tools, bind_rooms
from gristmill.sources.room import ROOM as SOURCES

LEFT_OUT = ("vector.", "graph.")  # what comes behind the reading
AT_WORK = """
SELECT FROM task WHERE outcome IS NULL AND wait IS DISTINCT FROM 'time' AND wait IS DISTINCT FROM 'after'
                   AND queue = ANY (%(queues)s) LIMIT 1
"""
READ = """
SELECT d.urn, d.container IS NOT NULL AS is_part,
       CASE d.opening WHEN 0 THEN 'completed' ELSE o.outcome END AS outcome, o.error,  -- 0: it was read before it came
       (SELECT count(*)::int FROM page p WHERE p.document = d.id) AS pages
  FROM document d LEFT JOIN task o ON o.id = d.opening
"""
PATIENCE = 300.0  # seconds until a wait is a failure; never what the test is about
MOST_MEMORY = 1 << 20  # kilobytes by which this process may grow


def a_zip(name: str, content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(name, content)
    return packed.getvalue()


def attach(files: dict[str, bytes]) -> bytes:
    """A mail with these files."""
    parts = [
        f'--b\r\nContent-Type: application/octet-stream\r\nContent-Disposition: attachment; filename="{name}"\r\n'
        f"Content-Transfer-Encoding: base64\r\n\r\n{b64encode(data).decode()}\r\n"
        for name, data in files.items()
    ]
    body = "--b\r\nContent-Type: text/plain\r\n\r\nLook at these.\r\n" + "".join(parts) + "--b--"
    return a_mail("attached", body, Content_Type='multipart/mixed; boundary="b"')


def forward(depth: int) -> bytes:
    """A mail within a mail within a mail."""
    mail = a_mail("innermost")
    for _ in range(depth):
        mail = b"From: a@b.test\r\nSubject: Fwd\r\nContent-Type: message/rfc822\r\n\r\n" + mail
    return mail


def make_bombs() -> list[bytes]:
    """Mails that are small as long as nobody opens them, and some that have too much of everything."""
    zeros = b"\0" * (200 << 20)
    return [
        attach({"bomb.docx": a_zip("word/document.xml", zeros)}),
        attach({"bomb.html.gz": gzip.compress(zeros)}),
        attach({"bomb.zip": a_zip("inner.zip", a_zip("zeros.txt", zeros))}),
        attach({f"{n}.txt": b"Hello." for n in range(300)}),
        forward(100),
        a_mail("tags", "<div>" * 100_000, Content_Type="text/html"),
        a_mail("inside", "\r\n".join(SPELLINGS.split())),
        a_mail("acting", "\r\n".join(NEVER.split())),
        a_mail("many", "\r\n".join(f"https://x{n}.example/{n}" for n in range(10_000))),
    ]


async def work(farm: Farm, handlers: Any) -> None:
    worker = Worker(farm.db, handlers, QUICK, maintenance=False)
    running = asyncio.create_task(worker.run())
    queues = sorted({kind.partition(".")[0] for kind in handlers})
    async with asyncio.timeout(PATIENCE):
        while await farm.rows(AT_WORK, queues=queues):  # noqa: ASYNC110 the database tells nobody
            await asyncio.sleep(0.1)
        worker.stop()
        await running


async def test_hostile_mails_harm_nobody_but_themselves(db: Database, tmp_path: Path) -> None:
    folder = tmp_path / "mails"
    folder.mkdir()
    for n, mail in enumerate([*HOSTILE.values(), *make_bombs()]):
        unlike = mail.replace(b"<", b"<%d." % n, 1) if b"Message-ID: <" in mail else mail
        (folder / f"{n:03}-hostile.eml").write_bytes(unlike)
        (folder / f"{n:03}-honest.eml").write_bytes(a_mail(f"honest{n}"))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with a_farm(db, tmp_path) as farm:
        bound = bind_rooms([SOURCES, DOCUMENTS], Tools(db, farm.settings, farm.models, [SOURCES, DOCUMENTS]))
        handlers = {kind: one for kind, one in bound.items() if not kind.startswith(LEFT_OUT)}
        source = await farm.add("eml", path=str(folder))
        await work(farm, handlers)
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - most < MOST_MEMORY
        items = await farm.items(source)
        assert {item.state for item in items if "honest" in item.external} == {"INDEXED"}
        for item in items:
            assert item.state in ("INDEXED", "SET_ASIDE")
            if item.state == "SET_ASIDE":
                assert item.error.strip().endswith(".")
                assert item.raw
        read = await farm.rows(READ)
        honest = [row for row in read if row.urn.startswith("email::honest")]
        assert [(row.outcome, row.pages) for row in honest] == [("completed", 1)] * len(items[::2])
        for row in read:
            assert row.outcome in ("completed", "failed"), row
            if row.outcome == "failed":
                assert "\n" not in row.error, row
        links = await farm.rows("SELECT state, verdict, count(*)::int AS n FROM link GROUP BY state, verdict")
        assert {row.verdict for row in links} == {"blocked", "uncertain"}
        assert not {"queued", "indexed"} & {row.state for row in links}
