"""Prepares pictures of pages for reading: size, background, ink, turning; imported by child processes only."""

from typing import Any, cast

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

LONGEST = 2000  # pixels of a side: letters of 10 points are 24 pixels high on an A4 page of this size
SMALL = 1000  # pixels of a side that are enough to see whether anything stands there
FAINT = 3.0  # levels of grey by which a mark differs from its paper; no engine reads what differs by less than 6
NOISE = 5.0  # deviations of the noise that make a mark …
GRAIN = 4.0  # … unless the noise itself is that coarse: then nothing is certain
MARK = 6  # pixels of a mark's longer side: dust is smaller, letters are larger
MARKS = 16  # pixels of all marks that make a page more than blank: a faint digit has 30

Pixels = NDArray[np.uint8]

cv2.setNumThreads(1)  # there is one process per core


def make_pixels(picture: Image.Image) -> Pixels:
    """As BGR, on white where it is transparent, no larger than the letters need."""
    if picture.mode in ("RGBA", "LA", "PA") or "transparency" in picture.info:
        picture = _put_on_white(picture)
    if max(picture.size) > LONGEST:
        picture = _shrink_picture(picture.convert("L" if picture.mode in ("1", "L") else "RGB"))
    return np.ascontiguousarray(np.asarray(picture.convert("RGB"))[:, :, ::-1])


def _put_on_white(picture: Image.Image) -> Image.Image:
    paper = Image.new("RGBA", picture.size, "white")
    paper.alpha_composite(picture.convert("RGBA"))
    return paper.convert("RGB")


def _shrink_picture(picture: Image.Image) -> Image.Image:
    ratio = LONGEST / max(picture.size)
    size = max(1, round(picture.width * ratio)), max(1, round(picture.height * ratio))
    return picture.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0)


def is_blank(page: Pixels) -> bool:
    """Whether there is nothing to read, for certain: the grain of paper, shadows and specks of dust are no marks."""
    ratio = min(1.0, SMALL / max(page.shape[:2]))
    size = max(1, round(page.shape[1] * ratio)), max(1, round(page.shape[0] * ratio))
    contrast = _measure_contrast(cast("Pixels", cv2.resize(make_gray(page), size, interpolation=cv2.INTER_AREA)))
    noise = float(np.median(contrast)) / 0.6745  # the deviation, if most of the page is paper
    if noise > GRAIN:
        return False
    return _count_marked_pixels((contrast > max(FAINT, NOISE * noise)).astype(np.uint8)) < MARKS


def _measure_contrast(grays: Pixels) -> Any:
    """By how much each pixel and its neighbours are darker or lighter than the paper around them."""
    wide = min(max(15, min(grays.shape) // 16), 255) | 1
    return np.abs(cv2.blur(grays.astype(np.float32) - cv2.medianBlur(grays, wide), (3, 3)))


def _count_marked_pixels(mask: Any) -> int:
    """How many pixels belong to marks that may be letters, however they are blurred or run together."""
    found = cast(Any, cv2.connectedComponentsWithStats(mask, connectivity=8)[2])[1:]  # the first is the paper
    large = np.maximum(found[:, cv2.CC_STAT_WIDTH], found[:, cv2.CC_STAT_HEIGHT]) >= MARK
    return int(found[large, cv2.CC_STAT_AREA].sum())


def make_gray(page: Pixels) -> Pixels:
    return cast("Pixels", cv2.cvtColor(page, cv2.COLOR_BGR2GRAY))


def remove_shadows(grays: Pixels) -> Pixels:
    """Without shadows and tints: each pixel against the paper around it."""
    return cast("Pixels", cv2.divide(grays, _estimate_paper(grays), scale=255.0))


def _estimate_paper(grays: Pixels) -> Pixels:
    """How light the ground is around each pixel."""
    wide = min(max(15, min(grays.shape) // 25), 255) | 1
    ground = cv2.medianBlur(cv2.dilate(grays, np.ones((7, 7), np.uint8)), wide)
    return cast("Pixels", np.maximum(ground, 1))


def find_ink(grays: Pixels) -> Pixels:
    """What is much darker than the paper around it, or, on a dark ground, much lighter."""
    reverse = cast("Pixels", cv2.bitwise_not(grays))
    dark = (remove_shadows(grays) < 180) & (_estimate_paper(grays) > 60)
    light = (remove_shadows(reverse) < 180) & (_estimate_paper(reverse) > 130)
    return (dark | light).astype(np.uint8)


def turn_page(page: Pixels, quarters: int) -> Pixels:
    """Turned counter-clockwise by so many quarters."""
    return np.ascontiguousarray(np.rot90(page, quarters))
