"""Pictures: every frame is a page, read by OCR."""

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from gristmill.documents.reading import refusals
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.plain import stem
from gristmill.documents.reading.results import BEGINNING, Bookmark, Inspection, PageText, Type
from gristmill.errors import Permanent

FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP")
BROKEN = (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError, KeyError, TypeError, IndexError)
ANIMATED = ("GIF", "WEBP", "PNG", "MPO")  # their further frames are motion, not pages


def inspect(path: str, name: str, type: Type, limits: Limits, start: Bookmark = BEGINNING) -> Inspection:
    with _open_picture(path, limits) as picture:
        pages = _frames(picture)
        if pages > limits.pages:
            raise refusals.too_many("pages", pages, limits.pages)
        meta = {"format": picture.format or "", "width": picture.width, "height": picture.height}
        return Inspection("image", pages, stem(name), meta, _read_date_taken(picture), scanned=True)


def read(path: str, type: Type, number: int, limits: Limits) -> PageText:
    upright = _load_page(path, number, limits)
    from gristmill.documents.reading.scans import recognise_page  # noqa: PLC0415 it brings the OCR models

    return recognise_page(upright)


def draw(path: str, number: int, width: int, limits: Limits) -> Image.Image:
    """The page as it is."""
    return _load_page(path, number, limits)


def _load_page(path: str, number: int, limits: Limits) -> Image.Image:
    with _open_picture(path, limits) as picture:
        pages = _frames(picture)
        if not 1 <= number <= pages:
            raise refusals.no_such_page(number, pages)
        return _frame(picture, number, limits)


@contextmanager
def _open_picture(path: str, limits: Limits) -> Generator[Image.Image]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of what we check ourselves
            picture = Image.open(path, formats=FORMATS)
    except Image.DecompressionBombError as error:
        raise _too_large(limits) from error
    except BROKEN as error:
        raise refusals.corrupt("picture") from error
    with picture:
        _check(picture, limits)
        yield picture


def _check(picture: Image.Image, limits: Limits) -> None:
    if picture.width * picture.height > limits.pixels:
        raise _too_large(limits)


def _too_large(limits: Limits) -> Permanent:
    most = f"{limits.pixels / 1e6:,.0f} million pixels"
    return Permanent(f"The picture has more than the {most} that are read (setting documents.max_pixels).")


def _frames(picture: Image.Image) -> int:
    if picture.format in ANIMATED:
        return 1
    try:
        return getattr(picture, "n_frames", 1)
    except BROKEN as error:
        raise refusals.corrupt("picture") from error


def _frame(picture: Image.Image, number: int, limits: Limits) -> Image.Image:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if number > 1:
                picture.seek(number - 1)
            _check(picture, limits)
            picture.load()
            return _on_white(ImageOps.exif_transpose(picture))
    except BROKEN as error:
        raise Permanent(f"Page {number} of the picture is damaged and cannot be read.") from error


def _on_white(picture: Image.Image) -> Image.Image:
    """Transparent paper is white, and 16 bits of grey are 8."""
    if picture.mode in ("I;16", "I;16B", "I", "F"):
        low, high = picture.getextrema()
        span = (float(high) - float(low)) or 1.0  # pyright: ignore[reportArgumentType] one band: two numbers
        return picture.convert("F").point(lambda grey: (grey - float(low)) * (255 / span)).convert("L").convert("RGB")  # pyright: ignore
    if "A" in picture.getbands() or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        paper = Image.new("RGBA", picture.size, "white")
        return Image.alpha_composite(paper, picture).convert("RGB")
    return picture.convert("RGB")


def _read_date_taken(picture: Image.Image) -> datetime | None:
    try:
        exif = picture.getexif()
        said = exif.get_ifd(ExifTags.IFD.Exif).get(ExifTags.Base.DateTimeOriginal) or exif.get(ExifTags.Base.DateTime)
        return datetime.strptime(str(said), "%Y:%m:%d %H:%M:%S").replace(tzinfo=UTC)
    except BROKEN:
        return None
