"""Prepares pictures of pages for reading: size, background, ink, turning; imported by child processes only."""

from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

LONGEST = 2000  # pixels of a side: letters of 10 points are 24 pixels high on an A4 page of this size
SMALL = 1000  # pixels of a side that are enough to see whether there is ink
INK = 16  # pixels of such a page that make it more than blank: a page number has 60

Pixels = NDArray[np.uint8]

cv2.setNumThreads(1)  # there is one process per core


def pixels(picture: Image.Image) -> Pixels:
    """As BGR, on white where it is transparent, no larger than the letters need."""
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = _on_white(picture)
    if max(picture.size) > LONGEST:
        picture = _shrunk(picture.convert("L" if picture.mode in ("1", "L") else "RGB"))
    return np.ascontiguousarray(np.asarray(picture.convert("RGB"))[:, :, ::-1])


def _on_white(picture: Image.Image) -> Image.Image:
    paper = Image.new("RGBA", picture.size, "white")
    paper.alpha_composite(picture.convert("RGBA"))
    return paper.convert("RGB")


def _shrunk(picture: Image.Image) -> Image.Image:
    ratio = LONGEST / max(picture.size)
    size = max(1, round(picture.width * ratio)), max(1, round(picture.height * ratio))
    return picture.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0)


def is_blank(page: Pixels) -> bool:
    """Whether there is nothing to read: specks of dust and shadows are no ink."""
    ratio = min(1.0, SMALL / max(page.shape[:2]))
    size = max(1, round(page.shape[1] * ratio)), max(1, round(page.shape[0] * ratio))
    mask = ink(cast("Pixels", cv2.resize(gray(page), size, interpolation=cv2.INTER_AREA)))
    return int(cv2.countNonZero(cv2.morphologyEx(mask, cv2.MORPH_OPEN, np.ones((2, 2), np.uint8)))) < INK


def gray(page: Pixels) -> Pixels:
    return cast("Pixels", cv2.cvtColor(page, cv2.COLOR_BGR2GRAY))


def flattened(grays: Pixels) -> Pixels:
    """Without shadows and tints: each pixel against the paper around it."""
    return cast("Pixels", cv2.divide(grays, _paper(grays), scale=255.0))


def _paper(grays: Pixels) -> Pixels:
    """How light the ground is around each pixel."""
    wide = min(max(15, min(grays.shape) // 25), 255) | 1
    ground = cv2.medianBlur(cv2.dilate(grays, np.ones((7, 7), np.uint8)), wide)
    return cast("Pixels", np.maximum(ground, 1))


def ink(grays: Pixels) -> Pixels:
    """What is much darker than the paper around it, or, on a dark ground, much lighter."""
    reverse = cast("Pixels", cv2.bitwise_not(grays))
    dark = (flattened(grays) < 180) & (_paper(grays) > 60)
    light = (flattened(reverse) < 180) & (_paper(reverse) > 130)
    return (dark | light).astype(np.uint8)


def turned(page: Pixels, quarters: int) -> Pixels:
    """Turned counter-clockwise by so many quarters."""
    return np.ascontiguousarray(np.rot90(page, quarters))
