"""Bad inputs are refused with one sentence that a person understands, and cost nothing but themselves."""

import io
import zipfile
from functools import cache
from pathlib import Path

import pytest

from documents.files import attached, docx, pdf, put, zipped
from documents.grinding import ground
from gristmill.documents.reading import Bookmark, Limits, inspect
from gristmill.errors import Permanent
from gristmill.processes import ProcessPool

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
NOISE = bytes(range(256)) * 8
HEADLESS = "The PDF is damaged and cannot be opened (it does not begin like one)."
BOMB = Limits(ratio=100)


@cache
def bomb() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        archive.writestr("word/document.xml", bytes(100 << 20))
    return buffer.getvalue()


def locked() -> bytes:
    """A zip whose entry says that it is encrypted."""
    data = bytearray(zipped({"word/document.xml": "x"}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("a.pdf", b"", "The file is empty."),
        ("a.txt", b" \n\t\r\n", "The file is empty."),
        ("a.pdf", b"%PDF-1.7\nnothing of it is left", "The PDF is damaged and cannot be opened."),
        ("a.pdf", pdf([]), "The PDF is damaged and cannot be opened."),
        ("a.pdf", NOISE, "The file is called .pdf, but it is none, nor anything else that can be read."),
        ("a.pdf", b"Dear Sir, this is a letter.", "The file is called .pdf, but what it holds is plain text."),
        ("a.dat", NOISE, "The file is of no kind that can be read."),
        ("a.png", b"\x89PNG\r\n\x1a\nno picture", "The picture is damaged and cannot be opened."),
        ("a.docx", b"PK\x03\x04torn", "The zip container is damaged and cannot be opened."),
        ("a.docx", zipped({"word/document.xml": "<w"}), "The Word file is damaged and cannot be opened."),
        ("a.docx", zipped({"word/document.xml": "no XML at all"}), "The Word file is damaged and cannot be opened."),
        ("a.docx", docx(""), "There is no text in the Word file."),
        ("a.html", b"<html><body><script>grind()</script></body></html>", "There is no text in the page."),
        ("a.pdf", pdf(["The wheel turns."])[8:], HEADLESS),
        ("a.txt", bytes(b"x" * 3000) + pdf(["The wheel turns."]), HEADLESS),
        ("a.docx", docx("text")[:-40], "The zip container is damaged and cannot be opened."),
        ("a.docx", locked(), "The file is encrypted: remove its password and add it again."),
        ("a.zip", zipped({"a.txt": "x"}), "The file is a zip archive, which cannot be read: unpack it first."),
        (
            "a.xlsx",
            OLE + "EncryptedPackage".encode("utf-16-le"),
            "The file is encrypted: remove its password and add it again.",
        ),
        (
            "a.doc",
            OLE,
            "The file is of an old Office or Outlook format, which cannot be read: "
            "save it as DOCX, XLSX, PPTX, EML or PDF.",
        ),
        ("a.mp3", b"ID3\x04\0\0\0\0\0\0" + NOISE, "The file is a sound recording, which cannot be read."),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, name: str, data: bytes, sentence: str) -> None:
    with pytest.raises(Permanent) as refused:
        inspect(put(tmp_path, name, data), name, BOMB)
    assert str(refused.value) == sentence


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    with pytest.raises(
        Permanent, match=r"The file has 4,000 bytes, and at most 2,048 are read \(setting documents.max_bytes\)"
    ):
        inspect(put(tmp_path, "a.txt", "x" * 4000), "a.txt", Limits(bytes=2048))


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Permanent) as refused:
        inspect(put(tmp_path, "a.docx", bomb()), "a.docx", BOMB)
    assert str(refused.value) == "The file unpacks to more than 100 times its size: it may be a zip bomb."


def test_of_attachments_that_are_a_bomb_no_more_is_kept_than_is_harmless(tmp_path: Path) -> None:
    path = put(tmp_path, "a.pdf", attached([(f"{n}.txt", b"%d" % n + bytes(30 << 20)) for n in range(3)]))
    last = inspect(path, "a.pdf", BOMB, Bookmark(parts=2, bytes=60 << 20)).parts
    assert [(part.data, part.refusal) for part in last] == [
        (b"", "The PDF with this attachment unpacks to more than 100 times its size: it may be a zip bomb.")
    ]
    for part in inspect(path, "a.pdf", Limits(unpacked=1 << 20)).parts:
        assert part.data == b""
        most = "the 1 MB that are read (setting documents.max_unpacked)"
        assert part.refusal == f"Unpacked, the PDF with this attachment is larger than {most}."


def test_after_many_attachments_that_cannot_be_had_no_more_are_unpacked(tmp_path: Path) -> None:
    path = put(tmp_path, "a.pdf", attached([("a.txt", b"Good day.")]))
    (part,) = inspect(path, "a.pdf", Limits(), Bookmark(missing=50)).parts
    assert part.refusal == "50 attachments of the PDF could not be taken out: no more are unpacked."


def test_a_bomb_that_lies_about_its_size_is_found_out(tmp_path: Path) -> None:
    data = bytearray(bomb())
    place = data.index(b"PK\x01\x02") + 24
    data[place : place + 4] = (1000).to_bytes(4, "little")
    with pytest.raises(Permanent):
        inspect(put(tmp_path, "a.docx", bytes(data)), "a.docx", BOMB)


async def test_bad_files_leave_the_children_that_read_them_alive(tmp_path: Path) -> None:
    bad = [("torn.pdf", b"%PDF-1.7\n"), ("noise.png", b"\x89PNG\r\n\x1a\n" + NOISE), ("bomb.docx", bomb())]
    pool = ProcessPool(1)
    try:
        for name, data in bad:
            (line,) = await ground(pool, Path(put(tmp_path, name, data)), BOMB)
            assert line.startswith(f"{name}: Permanent: The "), line
        good = Path(put(tmp_path, "good.txt", "The wheel turns."))
        assert (await ground(pool, good, BOMB))[1] == "good.txt#1: copied, 16 characters"
    finally:
        await pool.close()
