"""Reads the text in a picture; used inside child processes only."""

from dataclasses import dataclass

from PIL.Image import Image

from gristmill.models import rapid
from gristmill.models.layout import page_text
from gristmill.models.pictures import is_blank, pixels

VERSION = "1"


@dataclass(frozen=True, slots=True)
class Recognised:
    """What stands in a picture: rows in reading order, paragraphs separated by blank lines."""

    text: str
    engine: str
    confidence: float


def recognise(picture: Image, *, engine: str = "auto") -> Recognised:
    """Reads a picture, whichever way up it is; a blank one without asking anybody."""
    del engine
    page = pixels(picture)
    if is_blank(page):
        return Recognised("", "none", 1.0)
    lines, sure = rapid.read(page)
    return Recognised(page_text(lines), "rapidocr", sure)
