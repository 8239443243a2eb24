"""Finds out how a file writes its rows: format, encoding, delimiter, quotes and header."""

import csv
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from gristmill.errors import Permanent
from gristmill.records.model import Dialect, Options

HEAD = 1 << 18  # bytes that are looked at
SAMPLE = 200  # rows that are looked at
DELIMITERS = ",;\t|"
APOSTROPHES = re.compile(r"(?m)(^|[,;\t|])'[^'\n]*'([,;\t|]|\r?$)")  # cells in single quotes
MARKS = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
# Letters of Central Europe and of Western Europe that Windows-1250 and Windows-1252 write with the same bytes.
CENTRAL, WESTERN = frozenset("ěščřžůďťňąćęłńśźżőűâăşţđ"), frozenset("äöüßàçéèêëïôùûñåøæãõ")
CONTROLS = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")
NUMBER = re.compile(r"\s*[-+]?[\d.,\s]*\d[\d.,\s]*%?\s*")
ZIP, OLE = b"PK\x03\x04", b"\xd0\xcf\x11\xe0"
ENCODINGS = {"utf-16": "utf-16-le", "windows-1250": "cp1250", "windows-1252": "cp1252", "latin1": "cp1252"}


def detect_dialect(path: Path, name: str, options: Options) -> Dialect:
    """The dialect of a file; what the options name is not guessed."""
    with path.open("rb") as file:
        head = file.read(HEAD)
    if not head.strip(b"\0 \r\n\t"):
        raise Permanent("The file is empty: there are no rows in it.")
    if head.startswith((ZIP, OLE)):
        return _describe_workbook(name, options)
    encoding, mark = _find_encoding(head, options.encoding)
    text = head[mark:].decode(encoding, "replace")
    _refuse_binary(text)
    if _is_json_lines(text):
        return Dialect("jsonl", encoding, begins_at=mark, header=False)
    delimiter, quote = _find_delimiter(text, options.delimiter)
    rows = _sample_rows(text, delimiter, quote)
    header = _has_header(rows) if options.header is None else options.header
    return Dialect("csv", encoding, delimiter, quote, header, mark)


def _describe_workbook(name: str, options: Options) -> Dialect:
    if Path(name).suffix.lower() not in (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"):
        raise Permanent("It is no text and no workbook: import CSV, JSON lines or XLSX.")
    return Dialect("xlsx", header=options.header is not False)


def _find_encoding(head: bytes, wanted: str | None) -> tuple[str, int]:
    """The encoding, and how many bytes its mark takes."""
    mark = next((one for one in MARKS if head.startswith(one)), b"")
    if wanted:
        return _normalise_encoding(wanted), len(mark)
    if mark:
        return MARKS[mark], len(mark)
    if (wide := _find_wide(head)) is not None:
        return wide, 0
    try:
        # the last character may be cut
        head[: len(head) - 4].decode() if len(head) >= HEAD else head.decode()
        return "utf-8", 0
    except UnicodeDecodeError as error:
        if len(head) - error.start <= 4 <= len(head) >= HEAD:
            return "utf-8", 0
    return _choose_page(head), 0


def _normalise_encoding(name: str) -> str:
    plain = name.strip().lower().replace("_", "-")
    known = ENCODINGS.get(plain, plain)
    if known not in ("utf-8", "utf-16-le", "utf-16-be", "cp1250", "cp1252"):
        raise Permanent(f"The encoding {name} is not known: use utf-8, utf-16, windows-1250 or windows-1252.")
    return known


def _find_wide(head: bytes) -> str | None:
    """UTF-16 without a mark: every second byte of Latin text is NUL."""
    some = head[: len(head) // 2 * 2]
    even, odd = some[::2].count(0), some[1::2].count(0)
    half = len(some) // 2
    if odd > 0.4 * half and even < 0.1 * half:
        return "utf-16-le"
    return "utf-16-be" if even > 0.4 * half and odd < 0.1 * half else None


def _choose_page(head: bytes) -> str:
    """Windows-1250 or Windows-1252: whichever makes more letters of its own region."""
    central = Counter(head.decode("cp1250", "replace").lower())
    western = Counter(head.decode("cp1252", "replace").lower())
    points = {
        "cp1250": sum(central[one] for one in CENTRAL) - central["\ufffd"],
        "cp1252": sum(western[one] for one in WESTERN) - western["\ufffd"],
    }
    return max(points, key=lambda page: (points[page], page))


def _refuse_binary(text: str) -> None:
    """A few odd characters are a matter of their rows; many of them are no text."""
    if len(CONTROLS.findall(text)) + text.count("\ufffd") > len(text) // 20:
        raise Permanent("It is not text: import CSV, JSON lines or XLSX.")


def _is_json_lines(text: str) -> bool:
    first = text.lstrip().partition("\n")[0].strip()
    return first.startswith("{") and (first.endswith("}") or "\n" not in text)


def _find_delimiter(text: str, wanted: str | None) -> tuple[str, str]:
    """The pair that divides most rows into the same number of cells; without one, each line is a cell."""
    if wanted is not None and len(wanted) != 1:
        raise Permanent(f"The delimiter {wanted!r} is not one character.")
    best, chosen = (0.0, False, 0), (wanted or ",", '"')
    for delimiter in wanted or DELIMITERS:
        for quote in "'" if '"' not in text and APOSTROPHES.search(text) else '"':
            points = _judge(_sample_rows(text, delimiter, quote))
            if points > best:
                best, chosen = points, (delimiter, quote)
    return chosen


def _judge(rows: Sequence[Sequence[str]]) -> tuple[float, bool, int]:
    """The share of rows that have the usual number of cells, rounded; whether the first row has it; that number."""
    counts = Counter(len(row) for row in rows)
    usual, n = max(counts.items(), key=lambda one: (one[1], one[0]), default=(0, 0))
    return (round(n / len(rows), 1), len(rows[0]) == usual, usual) if usual > 1 else (0.0, False, 0)


def _sample_rows(text: str, delimiter: str, quote: str) -> list[list[str]]:
    """The first rows; the last one may be cut, and is left out if there are others."""
    rows: list[list[str]] = []
    try:
        for row in csv.reader(text.splitlines(keepends=True), delimiter=delimiter, quotechar=quote):
            if row:
                rows.append(row)
            if len(rows) > SAMPLE:
                break
    except csv.Error:
        pass  # what came before it is enough
    return rows[:-1] if len(rows) > 2 else rows


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Names are short, differ from each other and are no numbers."""
    if not rows:
        return False
    names = [cell.strip() for cell in rows[0]]
    return (
        len(set(names)) == len(names)
        and all(name and len(name) <= 80 and "\n" not in name and not NUMBER.fullmatch(name) for name in names)
        and not any(list(row) == list(rows[0]) for row in rows[1:])
    )
