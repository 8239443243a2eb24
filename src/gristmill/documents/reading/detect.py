"""What a file is, by its content: its name is heard only where content cannot tell."""

import lzma
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import PurePath

from gristmill.documents.reading import refusals
from gristmill.documents.reading.limits import Limits, check_unpacked
from gristmill.documents.reading.plain import decode, looks_binary
from gristmill.documents.reading.results import Type
from gristmill.documents.reading.transcript import looks_like_transcript
from gristmill.errors import Permanent

HEAD = 64 << 10  # bytes that decide
PDF_WITHIN = 1024  # readers accept a PDF that begins a little later
PDF_END = re.compile(rb"startxref\s+\d+\s+%%EOF")
PDF_OBJECT = re.compile(rb"\b\d+ \d+ obj\b")

PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"II+\0", b"MM\0+", b"GIF87a", b"GIF89a")
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
OFFICE: dict[str, Type] = {"word/": "docx", "ppt/": "pptx", "xl/": "xlsx"}
# What people do add, and what they can do about it.
STRANGERS = {
    b"%!PS": "a PostScript file: save it as PDF",
    b"{\\rtf": "an RTF file: save it as DOCX or PDF",
    b"\x1f\x8b": "a gzip archive: unpack it first",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive: unpack it first",
    b"Rar!\x1a\x07": "a RAR archive: unpack it first",
    b"BZh": "a bzip2 archive: unpack it first",
    b"\xfd7zXZ\0": "an xz archive: unpack it first",
    b"\x28\xb5\x2f\xfd": "a zstd archive: unpack it first",
    b"ID3": "a sound recording",
    b"\xff\xfb": "a sound recording",
    b"OggS": "a recording",
    b"fLaC": "a sound recording",
    b"\x1aE\xdf\xa3": "a film",
    b"\x7fELF": "a program",
    b"MZ": "a program",
    b"SQLite format 3\0": "a database",
}
BROKEN = (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError)
# Names that promise a binary format; plain text under such a name is a mistake somebody should hear of.
BINARY_NAMES = frozenset(
    [".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".gif", ".bmp", ".docx", ".pptx", ".xlsx"]
)

HEADER = re.compile(r"([!-9;-~]+):.*(?:\r?\n[ \t].*)*(?:\r?\n|$)")
HEADERS = frozenset(
    [
        "from",
        "to",
        "cc",
        "subject",
        "date",
        "message-id",
        "mime-version",
        "received",
        "return-path",
        "content-type",
        "delivered-to",
        "reply-to",
    ]
)
# Both groups are atomic: a part that has matched is not divided anew when the rest does not fit. There are 2ⁿ ways.
ENVELOPE = re.compile(r"(?>From \S+ (?>.*?\d\d:\d\d).*?\b\d{4}\b)[^\n]*+\n")
HTML = re.compile(
    r"\s*+(?:<\?xml[^>]*>\s*+)?(?><!--.*?-->\s*)*+<(?:!doctype\s+html|html|head|body|title|meta|table|div|p|h1)\b",
    re.IGNORECASE | re.DOTALL,
)
MARKDOWN = re.compile(r"^(?:#{1,6} \S|```|\|[ :|-]+\|$|[-*] \[[ x]\] |\[[^\]\n]+\]: \S)", re.MULTILINE)


def detect(path: str, name: str, limits: Limits) -> Type:
    """The type of a file. Raises an error with a sentence for people if no reader is there for it."""
    with open(path, "rb") as file:
        head = file.read(HEAD)
    if not head:
        raise refusals.empty()
    found = _by_signature(path, head, limits)
    if found is None and _ends_like_pdf(path, head):
        raise refusals.corrupt("PDF", "it does not begin like one")
    return found or _by_text(head, name)


def _by_signature(path: str, head: bytes, limits: Limits) -> Type | None:
    if b"%PDF-" in head[:PDF_WITHIN]:
        return "pdf"
    if head.startswith(PICTURES) or (head[:4] == b"RIFF" and head[8:12] == b"WEBP") or _is_bitmap(head):
        return "image"
    if head.startswith(b"PK\x03\x04"):
        return _by_entries(path, limits)
    if head.startswith(OLE):
        raise _compound(path)
    if head[4:8] == b"ftyp":
        kind = "a HEIC photo: save it as JPEG" if head[8:12] in (b"heic", b"heix", b"mif1", b"avif") else "a film"
        raise _refuse_stranger(kind)
    for start, kind in STRANGERS.items():
        if head.startswith(start) and (len(start) > 3 or looks_binary(head)):
            raise _refuse_stranger(kind)
    return None


def _ends_like_pdf(path: str, head: bytes) -> bool:
    """Whether it is a PDF that lost its beginning. A text about PDF may end alike, but has no objects."""
    with open(path, "rb") as file:
        file.seek(max(os.path.getsize(path) - PDF_WITHIN, 0))
        return bool(PDF_END.search(file.read()) and PDF_OBJECT.search(head))


def _refuse_stranger(kind: str) -> Permanent:
    what, _, advice = kind.partition(": ")
    return Permanent(f"The file is {what}, which cannot be read{f': {advice}' if advice else ''}.")


def _is_bitmap(head: bytes) -> bool:
    return head[:2] == b"BM" and head[6:10] == b"\0\0\0\0"


def _compound(path: str) -> Permanent:
    with open(path, "rb") as file:
        if ENCRYPTED_PACKAGE in file.read(1 << 20):
            return refusals.refuse_encrypted()
    return _refuse_stranger("of an old Office or Outlook format: save it as DOCX, XLSX, PPTX, EML or PDF")


def _by_entries(path: str, limits: Limits) -> Type:
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
    except BROKEN as error:
        raise refusals.corrupt("zip container") from error
    for folder, found in OFFICE.items():
        if any(entry.filename.startswith(folder) for entry in entries):
            _check_sizes(path, entries, limits)
            return found
    raise _refuse_stranger("a zip archive: unpack it first")


def _check_sizes(path: str, entries: list[zipfile.ZipInfo], limits: Limits) -> None:
    """Counts what really comes out: the sizes that a bomb declares are lies."""
    if any(entry.flag_bits & 1 for entry in entries):
        raise refusals.refuse_encrypted()
    total = 0
    packed = max(sum(entry.compress_size for entry in entries), 1)
    for size in _measure_unpacked(path, entries):
        total += size
        check_unpacked(total, packed, limits)


def _measure_unpacked(path: str, entries: list[zipfile.ZipInfo]) -> Iterator[int]:
    try:
        with zipfile.ZipFile(path) as archive:
            for entry in entries:
                with archive.open(entry) as file:
                    while piece := file.read(1 << 20):
                        yield len(piece)
    except (*BROKEN, RuntimeError, zlib.error, lzma.LZMAError) as error:
        raise refusals.corrupt("zip container") from error


def _by_text(head: bytes, name: str) -> Type:
    suffix = PurePath(name).suffix.lower()
    if looks_binary(head):
        if suffix in BINARY_NAMES:
            raise Permanent(f"The file is called {suffix}, but it is none, nor anything else that can be read.")
        raise Permanent("The file is of no kind that can be read.")
    text = decode(head)
    if not text.strip():
        raise refusals.empty()
    if ENVELOPE.match(text):
        return "mailbox"
    if looks_like_transcript(text):
        return "transcript"
    if _is_mail(text, needed=1 if suffix == ".eml" else 2):
        return "mail"
    if suffix not in (".md", ".markdown") and HTML.match(text):
        return "html"
    if suffix in BINARY_NAMES:
        raise Permanent(f"The file is called {suffix}, but what it holds is plain text.")
    return _plain(text, suffix)


def _is_mail(text: str, needed: int) -> bool:
    """It opens with headers, and enough of them are those of a mail."""
    found: set[str] = set()
    position = 0
    text = text.lstrip()
    while match := HEADER.match(text, position):
        found.add(match[1].lower())
        position = match.end()
        if match.end() == match.start():
            break
    ended = position >= len(text) or text[position : position + 2].startswith(("\n", "\r"))
    return len(found & HEADERS) >= needed and (ended or "mime-version" in found or "received" in found)


def _plain(text: str, suffix: str) -> Type:
    if suffix in (".md", ".markdown", ".mdown"):
        return "markdown"
    if suffix in (".csv", ".tsv"):
        return "csv"
    if suffix in ("", ".txt", ".text") and len(MARKDOWN.findall(text)) >= 2:
        return "markdown"
    return "text"
