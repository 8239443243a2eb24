"""Pictures: every frame of a TIFF is a page, and all formats are read."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from PIL import Image, ImageFilter

from documents.files import SLIP, pdf, put, saved, scan
from gristmill.documents.reading import Limits, PageText, inspect, read
from gristmill.errors import Permanent

LIMITS = Limits()
SMEAR = scan("Invoice").filter(ImageFilter.GaussianBlur(12))


@pytest.mark.parametrize("format", ["PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP"])
def test_a_picture_is_one_page_whatever_it_is_called(tmp_path: Path, format: str) -> None:
    path = put(tmp_path, "scan.pdf", saved(scan("Invoice"), format))
    found = inspect(path, "scan.pdf", LIMITS)
    assert (found.type, found.pages, found.title) == ("image", 1, "scan")
    assert (found.meta["width"], found.meta["height"]) == SLIP


def test_a_picture_is_read(tmp_path: Path) -> None:
    transparent = scan("Invoice INV-2026-031", "Harrow Trust").convert("LA")
    page = read(put(tmp_path, "scan.png", saved(transparent, "PNG")), "image", 1, LIMITS)
    assert page.method == "ocr"
    assert page.text == "Invoice INV-2026-031\nHarrow Trust"


@pytest.mark.parametrize(
    ("page", "silence"),
    [
        (PageText("Toads", "ocr"), None),
        (PageText(" \n", "ocr"), "nothing could be read in the picture"),
        (PageText("", "blank"), "the page is blank"),
        (PageText("", "text"), "there is no text on the page"),
    ],
)
def test_a_page_that_says_nothing_says_why(page: PageText, silence: str | None) -> None:
    assert page.silence == silence


@pytest.mark.parametrize("kind", ["pdf", "png"])
@pytest.mark.parametrize(("picture", "method"), [(scan(), "blank"), (SMEAR, "ocr")], ids=["blank", "smear"])
def test_a_picture_without_text_is_told_from_blank_paper(
    tmp_path: Path, kind: str, picture: Image.Image, method: str
) -> None:
    path = put(tmp_path, f"a.{kind}", pdf([picture]) if kind == "pdf" else saved(picture, "PNG"))
    assert read(path, "pdf" if kind == "pdf" else "image", 1, LIMITS) == PageText("", method)


def test_every_frame_of_a_tiff_is_a_page(tmp_path: Path) -> None:
    data = saved(scan("First page"), "TIFF", save_all=True, append_images=[scan("Second page")])
    path = put(tmp_path, "fax.tif", data)
    found = inspect(path, "fax.tif", LIMITS)
    assert found.pages == 2
    assert "Second" in read(path, "image", 2, LIMITS).text


def test_a_photo_knows_when_it_was_taken_and_which_way_is_up(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    exif[0x0132] = "2026:05:21 16:42:00"
    photo = scan("Receipt 88-20417").rotate(90, expand=True)
    path = put(tmp_path, "photo.jpg", saved(photo, "JPEG", exif=exif))
    assert inspect(path, "photo.jpg", LIMITS).written_at == datetime(2026, 5, 21, 16, 42, tzinfo=UTC)
    assert "88-20417" in read(path, "image", 1, LIMITS).text


def test_too_many_pixels_are_refused(tmp_path: Path) -> None:
    path = put(tmp_path, "large.png", saved(Image.new("1", (5000, 5000)), "PNG"))
    with pytest.raises(Permanent, match="more than the 20 million pixels"):
        inspect(path, "large.png", Limits(pixels=20_000_000))


def test_a_torn_picture_is_an_error_of_its_page(tmp_path: Path) -> None:
    data = saved(scan("Invoice"), "PNG")
    path = put(tmp_path, "torn.png", data[: len(data) // 2])
    assert inspect(path, "torn.png", LIMITS).pages == 1
    with pytest.raises(Permanent, match="Page 1 of the picture is damaged"):
        read(path, "image", 1, LIMITS)
