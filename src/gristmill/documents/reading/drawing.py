"""Pictures of pages, drawn in child processes."""

import io
import math
from typing import NamedTuple

from PIL import Image

from gristmill.documents.reading import pdf, pictures
from gristmill.documents.reading.limits import Limits
from gristmill.documents.reading.results import Type

PIXELS = 12_000_000  # of one picture that is drawn, however tall its page is
QUALITY = 80


class Drawing(NamedTuple):
    """A picture of a page, as WebP."""

    data: bytes
    width: int
    height: int


def draw(path: str, type: Type, number: int, width: int, limits: Limits) -> Drawing:
    """The page, counted from 1, as wide as this if that is no enlargement of a small picture."""
    picture = (pdf if type == "pdf" else pictures).draw(path, number, width, limits)
    picture = _fit(picture, width)
    buffer = io.BytesIO()
    picture.save(buffer, "WEBP", quality=QUALITY, method=2)
    return Drawing(buffer.getvalue(), picture.width, picture.height)


def _fit(picture: Image.Image, width: int) -> Image.Image:
    ratio = min(width / picture.width, math.sqrt(PIXELS / (picture.width * picture.height)), 1.0)
    if ratio == 1.0:
        return picture
    size = max(1, round(picture.width * ratio)), max(1, round(picture.height * ratio))
    return picture.resize(size, Image.Resampling.LANCZOS, reducing_gap=3.0)
