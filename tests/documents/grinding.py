"""Reads whole files the way workers do: in child processes, with limits of time and memory."""

from pathlib import Path

from gristmill.documents.reading import Limits, PageText, inspect, read
from gristmill.processes import ProcessPool

TIMEOUT = 300.0  # seconds; a photo without any text costs OCR ten of them on an idle core
MEMORY = 2 << 30
PAGES = 20  # of one file; the corpora hold longer ones that are more of the same


async def ground(pool: ProcessPool, path: Path, limits: Limits, depth: int = 0) -> list[str]:
    """One line for what each page and each part came to."""
    try:
        found = await pool.run(inspect, str(path), path.name, limits, timeout=TIMEOUT, memory=MEMORY)
    except Exception as error:  # noqa: BLE001 it is told in the line
        return [f"{path.name}: {type(error).__name__}: {error}"]
    lines = [f"{path.name}: {found.type}, {found.pages} pages, {len(found.parts)} parts, “{found.title}”"]
    for number in range(1, min(found.pages, PAGES) + 1):
        lines.append(f"{path.name}#{number}: {await _page(pool, path, found.type, number, limits)}")
    for number, part in enumerate(found.parts, 1):
        inner = path.parent / f"{path.name}.{depth}.{number}"
        inner.write_bytes(part.data)
        lines += await ground(pool, inner, limits, depth + 1)
    return lines


async def _page(pool: ProcessPool, path: Path, type: str, number: int, limits: Limits) -> str:
    try:
        page: PageText = await pool.run(read, str(path), type, number, limits, timeout=TIMEOUT, memory=MEMORY)
    except Exception as error:  # noqa: BLE001 it is told in the line
        return f"{error.__class__.__name__}: {error}"
    return f"{page.method}, {len(page.text)} characters"
