"""Reads the text in a picture; child processes call it, and the first call loads the engines."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gristmill.errors import Permanent
from gristmill.models.ocr.engines import has_tesseract
from gristmill.models.ocr.layout import arrange_text

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class RecognisedText:
    """What stands in a picture: rows in reading order, paragraphs separated by blank lines."""

    text: str
    engine: str
    confidence: float


def recognise_text(picture: "Image", *, engine: str = "auto") -> RecognisedText:
    """Reads a picture, whichever way up it is; a blank one without asking anybody.

    `auto` lets Tesseract try first where it is installed: on clean pages it is several times as fast.
    """
    # here, not at the top: the worker imports this file, too, and only its children need OpenCV
    from gristmill.models.ocr import tesseract  # noqa: PLC0415
    from gristmill.models.ocr.pictures import is_blank, make_pixels  # noqa: PLC0415

    page = make_pixels(picture)
    if is_blank(page):
        return RecognisedText("", "none", 1.0)
    if engine == "tesseract" and not has_tesseract():
        raise Permanent(
            "Tesseract is not installed: pip install gristmill[tesseract], and its data (tesseract-ocr-eng)."
        )
    if engine != "rapidocr" and has_tesseract() and (found := tesseract.read_page(page)):
        return RecognisedText(arrange_text(found[0]), "tesseract", found[1])
    from gristmill.models.ocr import rapid  # noqa: PLC0415 takes a second, and not where Tesseract has read the page

    lines, sure = rapid.read_page(page)
    return RecognisedText(arrange_text(lines), "rapidocr", sure)
