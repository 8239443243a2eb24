"""Office files: slides and sheets are pages, and so are the pages of a text where it says where they end."""

import re
import zipfile
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from xml.parsers import expat

from kreuzberg import ExtractionConfig, ExtractionResult, KreuzbergError, PageConfig, extract_file_sync

from gristmill.documents.reading import refusals, tidy
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.open_files import OpenFile
from gristmill.documents.reading.plain import paginate, table_pages, title_of
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, Type

MARK = "\ue000page {page_num}\ue000"  # no document has it: a private character
BETWEEN = re.compile("\ue000page \\d+\ue000")
CONFIG = ExtractionConfig(
    use_cache=False,
    disable_ocr=True,  # pyright: ignore[reportCallIssue] their stubs are older than their code
    enable_quality_processing=False,
    output_format="markdown",
    pages=PageConfig(extract_pages=True, insert_page_markers=True, marker_format=f"\n\n{MARK}\n\n"),
)
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
SLIDES = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
SHEETS = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
NAMES = {WORD: "Word file", SLIDES: "presentation", SHEETS: "spreadsheet"}


@dataclass(frozen=True)
class OpenedOffice:
    """The pages of an office file, and what it says of itself."""

    pages: list[str]
    meta: dict[str, Any]


def inspect(path: str, name: str, type: Type, limits: Limits, start: Bookmark = BEGINNING) -> Inspection:
    file = _file(path, type)
    if len(file.pages) > limits.pages:
        raise refusals.too_many("pages", len(file.pages), limits.pages)
    meta = tidy.meta({key: file.meta.get(key) for key in ("authors", "subject", "keywords", "sheet_names")})
    title = tidy.to_line(str(file.meta.get("title") or ""))[:300]
    return Inspection(type, len(file.pages), title or title_of(file.pages[0], name), meta, _find_date(file.meta))


def read(path: str, type: Type, number: int, limits: Limits) -> PageText:
    pages = _file(path, type).pages
    if not 1 <= number <= len(pages):
        raise refusals.no_such_page(number, len(pages))
    return PageText(pages[number - 1], "text")


def _file(path: str, type: Type) -> OpenedOffice:
    return {"docx": texts, "pptx": slides, "xlsx": sheets}[type].get(path)


def _refuse_silence(opened: OpenedOffice, path: str, mime: str) -> OpenedOffice:
    """Refuse a file without any text: the converter says nothing of parts that are broken, and leaves them out."""
    if any(page.strip() for page in opened.pages):
        return opened
    raise refusals.corrupt(NAMES[mime]) if _is_broken(path) else refusals.no_text(NAMES[mime])


def _is_broken(path: str) -> bool:
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".xml"):
                with archive.open(name) as file:
                    try:
                        expat.ParserCreate().ParseFile(file)
                    except expat.ExpatError:
                        return True
    return False


def _extract(path: str, mime: str) -> ExtractionResult:
    try:
        return extract_file_sync(path, mime, CONFIG)
    except KreuzbergError as error:
        raise refusals.corrupt(NAMES[mime]) from error


def _text(path: str) -> OpenedOffice:
    found = _extract(path, WORD)
    pages = [page["content"] for page in found.pages or ()]
    whole = pages if len(pages) > 1 else [found.content]
    return _refuse_silence(
        OpenedOffice([part for page in whole for part in paginate(page)], dict(found.metadata)), path, WORD
    )


def _slides(path: str) -> OpenedOffice:
    found = _extract(path, SLIDES)
    pages = [page.strip() for page in BETWEEN.split(found.content)]
    return _refuse_silence(OpenedOffice(pages[1:] if len(pages) > 1 else pages, dict(found.metadata)), path, SLIDES)


def _sheets(path: str) -> OpenedOffice:
    """By rows: a sheet may be longer than any page."""
    found = _extract(path, SHEETS)
    meta: dict[str, Any] = dict(found.metadata)
    tables = {table.page_number: table.cells for table in found.tables}
    names: list[str] = meta.get("sheet_names") or [f"Sheet {number}" for number in sorted(tables)]
    pages = [page for number, name in enumerate(names, 1) for page in _sheet(name, tables.get(number, []))]
    return _refuse_silence(OpenedOffice(pages or [""], meta), path, SHEETS)


def _sheet(name: str, rows: list[list[str]]) -> list[str]:
    heading = f"## {name}"
    if not rows:
        return [heading]
    pages = table_pages(rows) or paginate("\n".join("\t".join(row) for row in rows))
    return [f"{heading}\n\n{page}" for page in pages]


texts, slides, sheets = OpenFile(_text), OpenFile(_slides), OpenFile(_sheets)


def _find_date(meta: dict[str, Any]) -> datetime | None:
    for key in ("modified_at", "created_at"):
        try:
            found = datetime.fromisoformat(str(meta.get(key)))
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            continue
    return None
