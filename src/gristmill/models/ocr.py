"""Reads the text in a picture; used inside child processes only."""

from dataclasses import dataclass

from PIL.Image import Image

from gristmill.errors import Permanent
from gristmill.models import tesseract
from gristmill.models.engines import has_tesseract
from gristmill.models.layout import page_text
from gristmill.models.pictures import is_blank, pixels


@dataclass(frozen=True, slots=True)
class Recognised:
    """What stands in a picture: rows in reading order, paragraphs separated by blank lines."""

    text: str
    engine: str
    confidence: float


def recognise(picture: Image, *, engine: str = "auto") -> Recognised:
    """Reads a picture, whichever way up it is; a blank one without asking anybody.

    `auto` lets Tesseract try first where it is installed: on clean pages it is several times as fast.
    """
    page = pixels(picture)
    if is_blank(page):
        return Recognised("", "none", 1.0)
    if engine == "tesseract" and not has_tesseract():
        raise Permanent(
            "Tesseract is not installed: pip install gristmill[tesseract], and its data (tesseract-ocr-eng)."
        )
    if engine != "rapidocr" and has_tesseract() and (found := tesseract.read(page)):
        return Recognised(page_text(found[0]), "tesseract", found[1])
    from gristmill.models import rapid  # noqa: PLC0415 takes a second, and not where Tesseract has read the page

    lines, sure = rapid.read(page)
    return Recognised(page_text(lines), "rapidocr", sure)
