"""Odd files that others collected: each ends with pages or with a sentence, none hangs, none takes a worker down."""

import asyncio
import os
import re
import shutil
import tempfile
from pathlib import Path

import pytest

from documents.grinding import ground
from gristmill.documents.reading import Limits
from gristmill.processes import ProcessPool

CORPORA = os.environ.get("GRISTMILL_CORPORA")
TABLE = os.environ.get("GRISTMILL_CORPORA_TABLE")  # where to write what became of each file
BROKEN = re.compile(r"^[^:]+: (?!Permanent: )\w+: ")  # an error that is no sentence for a person


@pytest.mark.parametrize("corpus", ["pdfjs-tests", "pypdf-samples", "email-samples"])
async def test_every_odd_file_ends_with_pages_or_a_sentence(corpus: str, tmp_path: Path) -> None:
    if CORPORA is None:
        pytest.skip("it takes minutes: make corpora runs it")
    files = different(Path(CORPORA, corpus))
    assert files, f"{CORPORA} has no {corpus}"
    pool = ProcessPool(2)
    try:
        ends = await asyncio.gather(*(one(pool, path, tmp_path) for path in files))
    finally:
        await pool.close()
    lines = [line for found in ends for line in found]
    told(corpus, lines)
    assert [line for line in lines if BROKEN.match(line)] == []


def different(folder: Path) -> list[Path]:
    """Each content once."""
    return sorted({path.read_bytes(): path for path in sorted(folder.rglob("*")) if path.is_file()}.values())


async def one(pool: ProcessPool, path: Path, folder: Path) -> list[str]:
    return await ground(pool, Path(shutil.copy(path, tempfile.mkdtemp(dir=folder))), Limits())


def told(corpus: str, lines: list[str]) -> None:
    if TABLE:
        Path(f"{TABLE}.{corpus}").write_text("\n".join(lines) + "\n", encoding="utf-8")
