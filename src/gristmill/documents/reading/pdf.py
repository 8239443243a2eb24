"""PDF: the text that each page carries, or what can be read from its picture."""

import ctypes
import math
import os
import re
import unicodedata
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, TypeAlias, cast

import pypdfium2
import pypdfium2.raw
from PIL import Image
from pypdfium2 import PdfiumError

from gristmill.documents.reading import layout, pdf_places, refusals, tidy
from gristmill.documents.reading.layout import PageLine
from gristmill.documents.reading.limits import Limits, check_unpacked
from gristmill.documents.reading.open_files import OpenFile
from gristmill.documents.reading.places import PlacedSpan, Span
from gristmill.documents.reading.plain import heading, stem
from gristmill.documents.reading.portions import portion
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, Part, Type
from gristmill.errors import Permanent
from gristmill.processes import tell

pdfium, raw = cast(Any, pypdfium2), cast(Any, pypdfium2.raw)  # they come without types that could be checked
Pdf: TypeAlias = Any
Page: TypeAlias = Any
TextPage: TypeAlias = Any

SCANNED = 50  # a page with fewer legible characters is a picture of text
DPI = 200
BOLD = 600
MOST_MISSING = 50  # attachments that cannot be had, after which no others are tried: each may cost a reader its life
OCR_PIXELS = 16_000_000  # more of a large page tells an OCR engine nothing
HYPHEN = "\ufffe"  # PDFium's mark of a word that goes on in the next line
LIGATURES = {char: unicodedata.normalize("NFKC", char) for char in "ﬀﬁﬂﬃﬄﬅﬆ"} | {"\xa0": " ", "\xad": ""}
LIGATURE = re.compile(f"[{''.join(LIGATURES)}]")
LINE_END = re.compile(f"(?<={HYPHEN})|\r\n|\n|\r")
DATE = re.compile(r"D?:?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:([+-])(\d\d)'?(\d\d)?)?")
NO_TITLE = re.compile(r"^(untitled.*|title|document\d*|.*\.(?:docx?|tex|dvi|indd|pdf|xlsx?|pptx?))$", re.IGNORECASE)
SILENT = re.compile(r"[\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ue000-\uf8ff\ufffd-\uffff]")
DRAWN_OVER = {raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP}


def inspect(path: str, name: str, type: Type, limits: Limits, start: Bookmark = BEGINNING) -> Inspection:
    pdf = pdf_files.get(path)
    if len(pdf) > limits.pages:
        raise refusals.too_many("pages", len(pdf), limits.pages)
    count = pdf.count_attachments()
    if count > limits.parts:
        raise refusals.too_many("attachments", count, limits.parts)
    said = {key: tidy.to_line(value) for key, value in pdf.get_metadata_dict().items()}
    found = Inspection(
        type="pdf",
        pages=len(pdf),
        title=_title(pdf, said.get("Title", "")) or stem(name),
        meta=tidy.meta({key.lower(): said.get(key, "") for key in ("Author", "Subject", "Keywords", "Creator")}),
        written_at=_date(said.get("CreationDate", "")),
        scanned=all(_is_picture(pdf, number) for number in {1, len(pdf) // 2 + 1}),
    )
    # last: whatever ends us from here on is the fault of an attachment
    parts = portion(_attachments(pdf, count, os.path.getsize(path), limits, start))
    return replace(found, parts=parts, more=start.parts + len(parts) < count)


def read(path: str, type: Type, number: int, limits: Limits) -> PageText:
    with _open_page(path, number) as page:
        text = _text(page)
        return PageText(text, "text") if count_legible(text) >= SCANNED else _read_scan(page, text, number, limits)


def draw(path: str, number: int, width: int, limits: Limits) -> Image.Image:
    """A picture of the page that is about as wide as this."""
    with _open_page(path, number) as page:
        return _picture(page, number, limits, scale=width / max(page.get_width(), 1))


def find_places(path: str, number: int, text: str, spans: Sequence[Span]) -> list[PlacedSpan]:
    """Where these parts of the text that was read of the page stand on it; a rectangle for each line of a part."""
    with _open_page(path, number) as page:
        textpage = page.get_textpage()
        try:
            return list(pdf_places.find_spans(page, textpage, text, spans))
        finally:
            textpage.close()


@contextmanager
def _open_page(path: str, number: int) -> Generator[Page]:
    pdf = pdf_files.get(path)
    if not 1 <= number <= len(pdf):
        raise refusals.no_such_page(number, len(pdf))
    page = _page(pdf, number)
    try:
        yield page
    except PdfiumError as error:
        raise Permanent(f"Page {number} is damaged and cannot be read.") from error
    finally:
        page.close()


def _open(path: str) -> Pdf:
    try:
        pdf = pdfium.PdfDocument(path)
    except PdfiumError as error:
        if cast(Any, error).err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise refusals.refuse_encrypted() from error
        raise refusals.corrupt("PDF") from error
    if len(pdf) == 0:
        pdf.close()
        raise refusals.corrupt("PDF", "it has no pages")
    if pdf.get_formtype() != raw.FORMTYPE_NONE:
        pdf.init_forms()
    return pdf


pdf_files = OpenFile(_open, lambda pdf: pdf.close())


def _page(pdf: Pdf, number: int) -> Page:
    """With what was filled into its forms as part of the page."""
    try:
        page = pdf[number - 1]
        if _is_drawn_over(page):
            raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
            page.close()
            page = pdf[number - 1]
    except PdfiumError as error:
        raise Permanent(f"Page {number} is damaged and cannot be read.") from error
    return page


def _is_drawn_over(page: Page) -> bool:
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if annotation:
            subtype = raw.FPDFAnnot_GetSubtype(annotation)
            raw.FPDFPage_CloseAnnot(annotation)
            if subtype in DRAWN_OVER:
                return True
    return False


# --- text


def count_legible(text: str) -> int:
    """Characters that say something: fonts without a map give private or unassigned ones."""
    return len(text) - len(SILENT.findall(text))


def _text(page: Page) -> str:
    textpage = page.get_textpage()
    try:
        text = textpage.get_text_range()
        shown = layout.markdown(list(_lines(textpage, text)))
        return LIGATURE.sub(lambda found: LIGATURES[found[0]], shown)
    finally:
        textpage.close()


def _lines(textpage: TextPage, text: str) -> Iterator[PageLine]:
    """Asks for the place of its first letter only: a call for every letter would cost more than all else."""
    handle, box = textpage.raw, raw.FS_RECTF()
    same = textpage.count_chars() == len(text)  # else some letters have no character, or several
    start = 0
    for line in LINE_END.split(text):
        if stripped := line.strip():
            begin = start + len(line) - len(line.lstrip())
            index = begin if same else raw.FPDFText_GetCharIndexFromTextIndex(handle, begin)
            raw.FPDFText_GetLooseCharBox(handle, index, box)
            yield PageLine(
                text=stripped.rstrip(HYPHEN),
                left=box.left,
                bottom=box.bottom,
                size=box.top - box.bottom,
                bold=raw.FPDFText_GetFontWeight(handle, index) >= BOLD,
                hyphen=stripped.endswith(HYPHEN),
            )
        start += len(line) + (0 if line.endswith(HYPHEN) else 2)


# --- pictures


def _is_picture(pdf: Pdf, number: int) -> bool:
    """Whether a page seems to be a picture: it has too few characters, whatever they are."""
    try:
        page = pdf[number - 1]
        try:
            textpage = page.get_textpage()
            letters = textpage.count_chars()
            textpage.close()
            return letters < SCANNED
        finally:
            page.close()
    except PdfiumError:
        return False


def _read_scan(page: Page, text: str, number: int, limits: Limits) -> PageText:
    """The text in the picture of a page, or the text that the page carries if that is longer."""
    if _holds_nothing_but(text, page):
        return PageText(text, "text")
    from gristmill.documents.reading.scans import recognise_page  # noqa: PLC0415 only scans need the OCR models

    found = recognise_page(_picture(page, number, limits))
    return PageText(text, "text") if text and _letters(text) >= _letters(found.text) else found


def _holds_nothing_but(text: str, page: Page) -> bool:
    """Whether the page shows letters alone, and all of them can be read: a title, the number of a chapter."""
    drawn = {one.type for one in page.get_objects(max_depth=1)}
    letters = "".join(text.split())
    return not drawn or (drawn == {raw.FPDF_PAGEOBJ_TEXT} and 0 < len(letters) == count_legible(letters))


def _letters(text: str) -> int:
    """How many letters and digits there are: the signs of a font without a map are none."""
    return sum(map(str.isalnum, text))


def _picture(page: Page, number: int, limits: Limits, *, scale: float = DPI / 72) -> Image.Image:
    width, height = page.get_size()
    if not (0 < width < 1e6 and 0 < height < 1e6):
        raise Permanent(f"Page {number} has no size that could be drawn.")
    fitting = math.sqrt(min(limits.pixels, OCR_PIXELS) / (width * height))
    return page.render(scale=min(scale, fitting)).to_pil().convert("RGB")


# --- what the file says of itself


def _title(pdf: Pdf, said: str) -> str:
    said = said.removeprefix("Microsoft Word - ").removeprefix("Microsoft PowerPoint - ")
    if said and not NO_TITLE.match(said):
        return said[:300]
    try:
        page = _page(pdf, 1)
    except Permanent:
        return ""
    try:
        found = heading(_text(page))
    except PdfiumError:
        return ""
    finally:
        page.close()
    return tidy.to_line(found)[:300]


def _date(said: str) -> datetime | None:
    match = DATE.match(said)
    if not match:
        return None
    year, month, day, hour, minute, second = (int(group) if group else None for group in match.groups()[:6])
    hours, minutes = int(match[8] or 0), int(match[9] or 0)
    offset = timedelta(hours=hours, minutes=minutes) * (-1 if match[7] == "-" else 1)
    try:
        zone = timezone(offset)
        found = datetime(year or 1, month or 1, day or 1, hour or 0, minute or 0, second or 0, tzinfo=zone)
        return found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


# --- what lies in it


def _attachments(pdf: Pdf, count: int, packed: int, limits: Limits, start: Bookmark) -> Iterator[Part]:
    """The attachments. In the place of a broken one stands an error: all the rest is read without it."""
    known = start
    for index in range(start.parts, count):
        tell(index, now=True)  # if this process dies, the parent knows at which attachment
        part = _attachment(pdf, index, packed, limits, known)
        known = known.move_behind([part])
        yield part
        if start.shunned and start.shunned.place == index:
            return  # another attachment may end this process: it gets a call, and time, of its own


def _attachment(pdf: Pdf, index: int, packed: int, limits: Limits, known: Bookmark) -> Part:
    name, data, refusal = "", b"", ""
    try:
        attachment = pdf.get_attachment(index)
        with suppress(PdfiumError, UnicodeDecodeError):  # a name may be half a character
            name = tidy.to_line(attachment.get_name())
        data = _unpack(attachment, index, packed, limits, known)
    except PdfiumError:
        refusal = str(refusals.no_bytes())
    except Permanent as error:
        refusal = str(error)
    return Part(name or f"attachment {index + 1}", data, f"attachment={index + 1}", refusal)


def _unpack(attachment: Any, index: int, packed: int, limits: Limits, known: Bookmark) -> bytes:
    """Its bytes, if there are no more than is bearable: the size that the file declares may be a lie."""
    if known.shunned and known.shunned.place == index:
        raise Permanent(known.shunned.why)
    if known.missing >= MOST_MISSING:
        raise refusals.no_more(MOST_MISSING)
    size = ctypes.c_ulong()
    raw.FPDFAttachment_GetFile(attachment, None, 0, ctypes.byref(size))
    if size.value > limits.bytes:
        raise refusals.too_large(size.value, limits.bytes)
    check_unpacked(known.bytes + size.value, packed, limits, "the PDF with this attachment")
    return bytes(attachment.get_data())
