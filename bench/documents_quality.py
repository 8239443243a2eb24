"""How well pages are read: character errors on SROIE's receipts, and the tests of olmOCR's sample."""

import json
import os
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.models.ocr.layout import TextBox, arrange_text

CORPORA = Path(os.environ.get("GRISTMILL_CORPORA") or Path(__file__).parents[2] / "shared" / "corpora")
RECEIPTS = CORPORA / "sroie"
PAGES = CORPORA / "olmocr-bench-sample" / "olmocr" / "bench" / "sample_data"
PLAIN = str.maketrans(
    {**dict.fromkeys("‘’‚", "'"), **dict.fromkeys("“”„", '"'), **dict.fromkeys("–—‑‒−", "-"), "µ": "μ"}
)

# --- receipts


def sroie_cer(limit: int | None = None, *, engine: str = "auto", processes: int = 2) -> float:
    """Character errors per character of the truth, over all receipts; spaces count once, case does not."""
    found = receipts(limit, engine=engine, processes=processes)
    return sum(errors for _, errors, _ in found) / sum(letters for _, _, letters in found)


def receipts(limit: int | None, *, engine: str, processes: int) -> list[tuple[str, int, int]]:
    """The name of each receipt, how many characters are wrong, of how many."""
    names = sorted(path.stem for path in (RECEIPTS / "img").glob("*.jpg"))[:limit]
    with ProcessPoolExecutor(processes) as pool:
        return list(pool.map(partial(_receipt, engine=engine), names))


def _receipt(name: str, *, engine: str) -> tuple[str, int, int]:
    from PIL import Image  # noqa: PLC0415 as above

    from gristmill.models import recognise_text  # noqa: PLC0415 only in a child

    truth = receipt_truth(name)
    with Image.open(RECEIPTS / "img" / f"{name}.jpg") as picture:
        read = _same_case(recognise_text(picture, engine=engine).text)
    return name, distance(truth, read), len(truth)


def receipt_truth(name: str) -> str:
    """The text of the boxes, in the order in which we would read them: the order is not what is measured."""
    with (RECEIPTS / "box" / f"{name}.csv").open(encoding="utf-8", errors="replace", newline="") as opened:
        rows = [line.rstrip("\r\n").split(",", 8) for line in opened]
    lines = [_boxed([float(place) for place in row[:8]], row[8]) for row in rows if len(row) == 9]
    return _same_case(arrange_text(lines))


def _boxed(corners: Sequence[float], text: str) -> TextBox:
    across, down = corners[0::2], corners[1::2]
    return TextBox(min(across), min(down), max(across), max(down), text)


def _same_case(text: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFC", text)).strip().upper()


def distance(one: str, other: str) -> int:
    """How many characters must be inserted, left out or changed (Levenshtein)."""
    letters, places = np.array(list(other)), np.arange(len(other) + 1)
    row = places.copy()
    for letter in one:
        stepped = np.empty_like(row)
        stepped[0] = row[0] + 1
        stepped[1:] = np.minimum(row[1:] + 1, row[:-1] + (letters != letter))
        row = np.minimum.accumulate(stepped - places) + places  # insertions, all at once
    return int(row[-1])


# --- pages of olmOCR's sample

Read = Callable[[Path, int], str]  # a PDF and a page of it, from 1: its Markdown


def olmocr_pass_rate(read: Read) -> float:
    """The share of tests that our Markdown passes; a page that cannot be read fails all of its."""
    results = olmocr_results(read)
    return sum(passed for _, passed in results) / len(results)


def olmocr_results(read: Read) -> list[tuple[dict[str, Any], bool]]:
    """Every test and whether it passed. A formula passes where its TeX stands; we do not render it."""
    page = cache(lambda pdf, number: _page(read, pdf, number))
    return [(test, _passes(test, page(test["pdf"], test["page"]))) for test in _tests()]


def _page(read: Read, pdf: str, number: int) -> str | None:
    try:
        return read(PAGES / "pdfs" / pdf, number)
    except Exception as error:  # noqa: BLE001 a benchmark goes on
        print(f"{pdf}: {error}")
        return None


def _tests() -> Iterator[dict[str, Any]]:
    for file in ("dataset.jsonl", "blanks.jsonl"):
        lines = (PAGES / file).read_text(encoding="utf-8").splitlines()
        yield from (json.loads(line) for line in lines if line.strip())


def _passes(test: dict[str, Any], text: str | None) -> bool:
    if text is None:
        return False
    match test["type"]:
        case "present":
            return _is_present(test, text)
        case "absent":
            return not _is_present(test, text)
        case "order":
            return _in_order(test, plain(text))
        case "table":
            return any(_has_cell(test, table) for table in tables(text))
        case "math":
            return _tex(test["math"]) in _tex(text)
        case "baseline":
            return len(text.strip()) <= test.get("max_length", len(text))
        case other:
            raise ValueError(f"a test of type {other}")


def plain(text: str) -> str:
    """Without emphasis, with simple quotes and dashes, and every white space a single space."""
    text = re.sub(r"<br\s*/?>", " ", text)
    text = re.sub(r"</?[bi]>", "", text)
    text = re.sub(r"(\*\*|__)(.*?)\1", r"\2", text)
    text = re.sub(r"([*_])(.*?)\1", r"\2", text)
    return unicodedata.normalize("NFC", re.sub(r"\s+", " ", text)).translate(PLAIN)


def _is_present(test: dict[str, Any], text: str) -> bool:
    wanted, page = plain(test["text"]), plain(text)
    if not test.get("case_sensitive", True):
        wanted, page = wanted.lower(), page.lower()
    first, last = test.get("first_n"), test.get("last_n")
    if first or last:
        page = (page[:first] if first else "") + (page[-last:] if last else "")
    return bool(places(wanted, page, test.get("max_diffs", 0)))


def _in_order(test: dict[str, Any], page: str) -> bool:
    allowed = test.get("max_diffs", 0)
    before, after = (places(plain(test[which]), page, allowed) for which in ("before", "after"))
    return bool(before and after) and min(before) < max(after)


def places(wanted: str, page: str, allowed: int) -> list[int]:
    """Where a text ends on a page, with so many characters differing at most (Sellers)."""
    if not allowed:
        return [found.end() for found in re.finditer(re.escape(wanted), page)]
    letters, along = np.array(list(wanted)), np.arange(len(wanted) + 1)
    column, found = along.copy(), list[int]()
    for at, letter in enumerate(page, 1):
        stepped = np.empty_like(column)
        stepped[0] = 0
        stepped[1:] = np.minimum(column[1:] + 1, column[:-1] + (letters != letter))
        column = np.minimum.accumulate(stepped - along) + along
        if column[-1] <= allowed:
            found.append(at)
    return found


# --- tables

Table = list[list[str]]


def tables(text: str) -> Iterator[Table]:
    """Every table of a page, in Markdown or in HTML, as rows of cells."""
    rows: Table = []
    for line in [*text.splitlines(), ""]:
        if line.strip().startswith("|"):
            cells = [plain(cell).strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
            rows += [] if all(re.fullmatch(r":?-+:?", cell) for cell in cells) else [cells]
        elif rows:
            yield rows
            rows = []
    for table in re.findall(r"<table.*?</table>", text, re.DOTALL | re.IGNORECASE):
        parts = re.findall(r"<tr.*?</tr>", table, re.DOTALL | re.IGNORECASE)
        yield [[plain(re.sub(r"<[^>]+>", " ", cell)).strip() for cell in _cells(row)] for row in parts]


def _cells(row: str) -> list[str]:
    return re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL | re.IGNORECASE)


def _has_cell(test: dict[str, Any], table: Table) -> bool:
    here = [(y, x) for y, row in enumerate(table) for x, cell in enumerate(row) if _same(test["cell"], cell, test)]
    return any(_fits(test, table, y, x) for y, x in here)


def _fits(test: dict[str, Any], table: Table, y: int, x: int) -> bool:
    near = {"up": (y - 1, x), "down": (y + 1, x), "left": (y, x - 1), "right": (y, x + 1)}
    ahead = {
        "top_heading": [(row, x) for row in range(y)],
        "left_heading": [(y, column) for column in range(x)],
    }
    wanted = {side: test[side] for side in (*near, *ahead) if test.get(side)}
    return all(
        any(_same(text, _cell(table, *place), test) for place in ahead.get(side) or [near.get(side, (-1, -1))])
        for side, text in wanted.items()
    )


def _cell(table: Table, y: int, x: int) -> str:
    return table[y][x] if 0 <= y < len(table) and 0 <= x < len(table[y]) else ""


def _same(wanted: str, cell: str, test: dict[str, Any]) -> bool:
    return distance(plain(wanted).strip(), cell) <= test.get("max_diffs", 0)


def _tex(text: str) -> str:
    """Formulas as they are compared: without spaces, braces and the words for spacing."""
    return re.sub(r"\\(?:left|right|,|;|!|quad|mathrm|text)(?![a-z])|[\s{}]", "", text)


if __name__ == "__main__":
    print(f"ocr_cer_sroie {sroie_cer():.4f}")
