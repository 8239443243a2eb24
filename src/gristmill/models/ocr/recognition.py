"""Reads the text in a picture; child processes call it, and the first call loads the engines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gristmill.errors import Permanent
from gristmill.models.ocr.engines import has_tesseract
from gristmill.models.ocr.layout import TextBox, arrange_text, order_boxes

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, slots=True)
class RecognisedText:
    """The text in a picture: rows in reading order, with a blank line between paragraphs."""

    text: str
    engine: str
    confidence: float
    boxes: tuple[TextBox, ...] = ()  # words or lines in reading order, with their places in the picture


def recognise_text(picture: "Image", *, engine: str = "auto") -> RecognisedText:
    """Read a picture, whichever way up it is; a blank one without asking any engine.

    `auto` lets Tesseract try first if it is installed: on clean pages it is several times as fast.
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
        return _arrange(found[0], "tesseract", found[1])
    from gristmill.models.ocr import rapid  # noqa: PLC0415 it takes a second, for nothing if Tesseract has read the page

    boxes, confidence = rapid.read_page(page)
    return _arrange(boxes, "rapidocr", confidence)


def _arrange(boxes: Sequence[TextBox], engine: str, confidence: float) -> RecognisedText:
    return RecognisedText(arrange_text(boxes), engine, confidence, order_boxes(boxes))
