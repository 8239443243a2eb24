"""Text files: which characters their bytes mean, and where their pages end."""

import codecs
import csv
import re
from itertools import islice
from pathlib import PurePath

from gristmill.documents.reading import refusals, tidy
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.open_files import File, OpenFile, read_file
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, Type

PAGE = 40_000  # characters of a page, for formats that know none
LONGEST = 2_000  # characters of a title that are looked at
ROWS = 400  # of a page of a table …
WIDEST = 10 * PAGE  # … unless they are so wide that fewer have this many characters
SAMPLE = 64 << 10  # bytes from which a legacy encoding is guessed
STRAY = 0.001  # of the bytes of a text may be NUL: somebody's program was careless
QUOTES = 400  # in the sample from which the dialect of a table is guessed
GUESSABLE = 100  # bytes; from fewer a guess is as good as none
LEGACY = [
    *("cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258"),
    *("latin_1", "iso8859_2", "iso8859_5", "iso8859_15", "koi8_r", "mac_roman", "cp437", "cp850"),
    *("shift_jis", "euc_jp", "iso2022_jp", "gb18030", "big5", "euc_kr"),
]
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
HEADING = re.compile(r"^#{1,6}[ \t]+(\S.*)", re.MULTILINE)
UNDERLINED = re.compile(r"\A\s*(\S.*)\n(?:={3,}|-{3,})[ \t]*$", re.MULTILINE)
FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
FRONT_TITLE = re.compile(r"^title:[ \t]*(\S.*)", re.MULTILINE)
QUOTE = re.compile("[\"']")
SIGNS = re.compile(r"[*_`]|\[([^\]]*)\]\([^)]*\)")  # emphasis, and links around their text


def inspect(path: File, name: str, type: Type, limits: Limits, start: Bookmark = BEGINNING) -> Inspection:
    pages = _pages(path, type)
    if len(pages) > limits.pages:
        raise refusals.too_long(len(pages), limits.pages)
    return Inspection(type, len(pages), title_of(pages[0] if type == "markdown" else "", name))


def read(path: File, type: Type, number: int, limits: Limits) -> PageText:
    pages = _pages(path, type)
    if not 1 <= number <= len(pages):
        raise refusals.no_such_page(number, len(pages))
    return PageText(pages[number - 1], "text" if type == "csv" else "copied")


def _pages(path: File, type: Type) -> list[str]:
    return (tables if type == "csv" else texts).get(path)


def _text(path: File) -> str:
    text = tidy.tidy(decode(read_file(path)))
    if not text.strip():
        raise refusals.empty()
    return text


def _table(path: File) -> list[str]:
    """Rows of Markdown, the header repeated on every page; what is no table stays as it is."""
    text = _text(path)
    try:
        dialect = csv.Sniffer().sniff(_sample(text), delimiters=",;\t|")
        dialect.doublequote = True  # whether or not there is such a quote in the sample
        rows = [row for row in csv.reader(text.splitlines(keepends=True), dialect) if any(map(str.strip, row))]
    except csv.Error:
        return paginate(text)
    if not rows or len(rows[0]) < 2:
        return paginate(text)
    return table_pages(rows) or paginate(text)


def _sample(text: str) -> str:
    """The beginning, up to so many quotes: the rest of it is looked through for the end of each."""
    sample = text[:SAMPLE]
    quotes = (found.end() for found in QUOTE.finditer(sample))
    return sample[: next(islice(quotes, QUOTES, None), SAMPLE)]


texts = OpenFile[list[str]](lambda path: paginate(_text(path)))
tables = OpenFile(_table)


def table_pages(rows: list[list[str]]) -> list[str]:
    """A table with its header on every page; none if a row alone is longer than a page: nobody reads that as one."""
    if any(len(row) > PAGE or sum(map(len, row)) > PAGE for row in rows):
        return []
    head, pages = rows[0], [list[list[str]]()]
    width = text = 0  # of the last page, whose rows all become as wide as its widest
    for row in rows[1:]:
        width, text = max(width, len(row)), text + sum(map(len, row))
        if len(pages[-1]) == ROWS or (pages[-1] and text + 3 * width * (len(pages[-1]) + 1) > WIDEST):
            pages.append([])
            width, text = len(row), sum(map(len, row))
        pages[-1].append(row)
    return [markdown_table(head, page) for page in pages]


def markdown_table(head: list[str], rows: list[list[str]]) -> str:
    width = max(len(head), max(map(len, rows), default=0))
    lines = [_row(head, width), "|" + " --- |" * width]
    return "\n".join(lines + [_row(row, width) for row in rows])


def _row(cells: list[str], width: int) -> str:
    shown = [" ".join(cell.split()).replace("|", "\\|") for cell in cells] + [""] * (width - len(cells))
    return "| " + " | ".join(shown) + " |"


def paginate(text: str, size: int = PAGE) -> list[str]:
    """Pages of at most `size` characters that end between paragraphs, or at least between words."""
    pages: list[str] = []
    start = 0
    while len(text) - start > size:
        stop = _end_of_page(text, start + size // 2, start + size)
        pages.append(text[start:stop])
        start = stop
    pages.append(text[start:])
    return [tidy.page(page) for page in pages if page.strip()] or [""]


def _end_of_page(text: str, earliest: int, latest: int) -> int:
    for gap in ("\n# ", "\n## ", "\n\n", "\n", " "):
        found = text.rfind(gap, earliest, latest)
        if found > 0:
            return found + 1
    return latest


def title_of(text: str, name: str) -> str:
    """From the front matter, the first heading, or the file's name."""
    front = FRONT_MATTER.match(text)
    titled = FRONT_TITLE.search(front[1]) if front else None
    if titled:
        said = titled[1].strip(" \t").strip("\"'")
    else:
        underlined = UNDERLINED.match(text)
        said = underlined[1] if underlined else heading(text)
    return tidy.to_line(SIGNS.sub(r"\1", said[:LONGEST]))[:300] or stem(name)


def heading(text: str) -> str:
    """The first one, without the signs that may close it."""
    found = HEADING.search(text)
    return found[1].rstrip(" \t#") if found else ""


def stem(name: str) -> str:
    return tidy.to_line(PurePath(name).stem.replace("_", " ")) or tidy.to_line(name)


def decode(data: bytes) -> str:
    """Every byte becomes something: a wrong guess costs letters, never the file."""
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return decode_as(data[len(mark) :], encoding, "replace")
    if wide := _wide(data):
        return decode_as(data, wide, "replace")
    try:
        return decode_as(data, "utf-8")
    except UnicodeDecodeError as error:
        if error.start > 0.99 * len(data) or _almost_unicode(data):
            return decode_as(data, "utf-8", "replace")
    return decode_as(data, _legacy(data), "replace")


def decode_as(data: bytes, encoding: str, errors: str = "strict") -> str:
    """In an encoding that is known. A stray NUL shows as the mark of a lost character: without it, words would join."""
    return data.decode(encoding, errors).replace("\0", "�")


def _legacy(data: bytes) -> str:
    if len(data) < GUESSABLE:
        return "cp1252"
    from charset_normalizer import from_bytes  # noqa: PLC0415 slow to load, and hardly ever needed

    guess = from_bytes(data[:SAMPLE], cp_isolation=LEGACY).best()
    return guess.encoding if guess else "cp1252"


def _almost_unicode(data: bytes) -> bool:
    """UTF-8 with a few broken bytes, not a legacy encoding: most of what is not ASCII decodes."""
    broken = data.decode("utf-8", "replace").count("�")
    strange = sum(byte >= 0x80 for byte in data[:SAMPLE])
    return broken * 20 < strange


def _wide(data: bytes) -> str | None:
    """UTF-16 without its mark: every second byte of European text is zero."""
    head = data[:2048]
    if 0 not in head:
        return None
    half = max(len(head) // 2, 1)
    if len(head) >= 4 and head[1::2].count(0) > 0.7 * half and head[::2].count(0) < 0.05 * half:
        return "utf-16-le"
    if len(head) >= 4 and head[::2].count(0) > 0.7 * half and head[1::2].count(0) < 0.05 * half:
        return "utf-16-be"
    return None


def looks_binary(head: bytes) -> bool:
    """Text has marks or is wide or has (almost) no control characters."""
    if any(head.startswith(mark) for mark, _ in MARKS) or _wide(head):
        return False
    controls = sum(0 < byte < 32 and byte not in b"\t\n\r\f\b\x1b" for byte in head)
    return head.count(0) > max(1, STRAY * len(head)) or controls > 0.02 * len(head)
