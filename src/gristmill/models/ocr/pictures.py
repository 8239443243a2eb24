"""Prepares pictures of pages for OCR: size, background, ink, rotation; only child processes import it."""

from typing import cast

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image

LONGEST = 2000  # pixels of the longer side: on an A4 page of this size, letters of 10 points are 24 pixels high
SMALL = 1000  # pixels of the longer side: enough to see whether a page is blank
FAINT = 3.0  # levels of grey by which a mark differs from its paper; no engine reads a mark of less than 6 levels
NOISE = 5.0  # a mark differs from its paper by this many deviations of the noise …
GRAIN = 4.0  # … unless the noise itself is coarser than this many levels: then no page counts as blank
MARK = 6  # pixels of the longer side of a mark: dust is smaller, letters are larger
MARKS = 16  # pixels of all marks together: a page with fewer is blank; one faint digit has 30

Pixels = NDArray[np.uint8]
Components = NDArray[np.int32]  # a row for each piece of connected ink: left, top, width, height, area

cv2.setNumThreads(1)  # there is one process per core


def make_pixels(picture: Image.Image) -> Pixels:
    """The picture as BGR: white where it is transparent, and no larger than the letters need."""
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
    """Whether there is certainly nothing to read: the grain of paper, shadows and specks of dust are no marks."""
    ratio = min(1.0, SMALL / max(page.shape[:2]))
    size = max(1, round(page.shape[1] * ratio)), max(1, round(page.shape[0] * ratio))
    contrast = _measure_contrast(cast("Pixels", cv2.resize(make_gray(page), size, interpolation=cv2.INTER_AREA)))
    noise = float(np.median(contrast)) / 0.6745  # the deviation, if most of the page is paper
    if noise > GRAIN:
        return False
    return _count_marked_pixels((contrast > max(FAINT, NOISE * noise)).astype(np.uint8)) < MARKS


def _measure_contrast(grays: Pixels) -> NDArray[np.float32]:
    """By how much each pixel, averaged with its neighbours, is darker or lighter than the paper around it."""
    wide = min(max(15, min(grays.shape) // 16), 255) | 1
    return np.abs(cv2.blur(grays.astype(np.float32) - cv2.medianBlur(grays, wide), (3, 3)))


def _count_marked_pixels(mask: Pixels) -> int:
    """How many pixels belong to marks that may be letters, even blurred letters or letters that touch."""
    found = find_components(mask)[1:]  # the first is the paper
    large = np.maximum(found[:, cv2.CC_STAT_WIDTH], found[:, cv2.CC_STAT_HEIGHT]) >= MARK
    return int(found[large, cv2.CC_STAT_AREA].sum())


def find_components(mask: Pixels) -> Components:
    """The connected pieces of a mask; the first is the paper."""
    return cast("Components", cv2.connectedComponentsWithStats(mask, connectivity=8)[2])


def make_gray(page: Pixels) -> Pixels:
    return cast("Pixels", cv2.cvtColor(page, cv2.COLOR_BGR2GRAY))


def remove_shadows(grays: Pixels) -> Pixels:
    """Compare each pixel with the paper around it: shadows and tints vanish."""
    return cast("Pixels", cv2.divide(grays, _estimate_paper(grays), scale=255.0))


def _estimate_paper(grays: Pixels) -> Pixels:
    """How light the paper is around each pixel."""
    wide = min(max(15, min(grays.shape) // 25), 255) | 1
    ground = cv2.medianBlur(cv2.dilate(grays, np.ones((7, 7), np.uint8)), wide)
    return cast("Pixels", np.maximum(ground, 1))


def find_ink(grays: Pixels) -> Pixels:
    """A mask of the ink: pixels much darker than the paper around them, or, on a dark ground, much lighter."""
    reverse = cast("Pixels", cv2.bitwise_not(grays))
    dark = (remove_shadows(grays) < 180) & (_estimate_paper(grays) > 60)
    light = (remove_shadows(reverse) < 180) & (_estimate_paper(reverse) > 130)
    return (dark | light).astype(np.uint8)


def turn_page(page: Pixels, quarters: int) -> Pixels:
    """Turn the page counter-clockwise by so many quarters."""
    return np.ascontiguousarray(np.rot90(page, quarters))
