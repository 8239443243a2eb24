"""Reads pictures with Tesseract where it is installed; imported by child processes only."""

import importlib
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, cast

import cv2
import numpy as np

from gristmill.models.ocr.engines import find_tessdata, list_languages
from gristmill.models.ocr.layout import PicturePlace, TextBox, place_points
from gristmill.models.ocr.pictures import Components, Pixels, find_components, find_ink, make_gray, remove_shadows

LETTER = 30  # pixels: Tesseract reads lines of this height best
SKEW = 15.0  # degrees: a page that leans by more is turned, not skewed
COVERED = 0.85  # the share of a page's ink that words must account for
DOUBT = 88.0  # percent: a high confidence proves nothing, but a page with less than this goes to the other engine


def read_page(page: Pixels) -> tuple[list[TextBox], float] | None:
    """The words of a page and the confidence in them, or None if the words do not account for the ink.

    The confidence alone is no judge: Tesseract reports 90 % for a photo of which it has lost half.
    """
    clean, angle = _deskew_page(remove_shadows(make_gray(page)))
    letters = _find_letters(clean)
    if not len(letters):  # the ink is too faint to be counted
        return None
    words = _read_words(_enlarge_page(clean, letters))
    sure = sum(score * len(box.text) for box, score in words) / (sum(len(box.text) for box, _ in words) or 1)
    if sure < DOUBT or measure_coverage(letters, [box for box, _ in words]) < COVERED:
        return None
    return [replace(box, place=_find_place(box, clean, angle)) for box, _ in words], sure / 100


@cache
def _load_engine() -> Any:
    """One engine for every language whose data are installed; tesserocr has no types."""
    tesserocr: Any = importlib.import_module("tesserocr")
    return tesserocr.PyTessBaseAPI(path=str(find_tessdata()), lang=list_languages(), psm=tesserocr.PSM.AUTO)


def _deskew_page(clean: Pixels) -> tuple[Pixels, float]:
    """Turn the page back by the angle at which the rows of ink are narrowest; the page, and the angle."""
    small = cast("Pixels", cv2.resize(find_ink(clean), None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA))
    sharp = {angle: _measure_sharpness(small, angle) for angle in np.arange(-SKEW, SKEW + 0.1, 1.0)}
    rough = max(sharp, key=sharp.__getitem__)
    fine = {angle: _measure_sharpness(small, angle) for angle in rough + np.arange(-0.8, 0.81, 0.2)}
    angle = float(max(fine, key=fine.__getitem__))
    return (clean, 0.0) if abs(angle) < 0.15 else (_rotate_page(clean, angle, 255), angle)


def _find_place(box: TextBox, clean: Pixels, angle: float) -> PicturePlace:
    """Where a box of the page stood before the page was turned back by this angle."""
    height, width = clean.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), -angle, 1.0)
    corners = [(x, y, 1.0) for x in (box.left, box.right) for y in (box.top, box.bottom)]
    turned = np.array(corners) @ np.asarray(matrix).T
    return place_points([(float(x), float(y)) for x, y in turned], width, height)


def _measure_sharpness(mask: Pixels, angle: float) -> float:
    """How sharp the change is between a row of ink and the gap below it, summed over the page."""
    rows = _rotate_page(mask * 255, float(angle), 0).sum(axis=1, dtype=np.float64)
    return float(np.square(np.diff(rows)).sum())


def _rotate_page(page: Pixels, angle: float, paper: int) -> Pixels:
    height, width = page.shape[:2]
    matrix = cv2.getRotationMatrix2D((width / 2, height / 2), angle, 1.0)
    turned = cv2.warpAffine(page, matrix, (width, height), flags=cv2.INTER_LINEAR, borderValue=(paper,))
    return cast("Pixels", turned)


def _find_letters(clean: Pixels) -> Components:
    """The pieces of ink that have the size of letters; ruled lines and pictures are left out."""
    found = find_components(find_ink(clean))
    wide, high = found[:, cv2.CC_STAT_WIDTH], found[:, cv2.CC_STAT_HEIGHT]
    fits = (high >= 6) & (high <= clean.shape[0] / 12) & (wide <= 12 * high) & (high <= 8 * wide + 8)
    fits[0] = False  # the paper
    return found[fits]


def _enlarge_page(clean: Pixels, letters: Components) -> tuple[Pixels, float]:
    """Enlarge the page until its letters have the height that Tesseract reads best; and by which ratio."""
    high = float(np.median(letters[:, cv2.CC_STAT_HEIGHT]))
    ratio = min(3.0, max(1.0, 0.7 * LETTER / high))
    return cast("Pixels", cv2.resize(clean, None, fx=ratio, fy=ratio, interpolation=cv2.INTER_CUBIC)), ratio


def _read_words(sized: tuple[Pixels, float]) -> list[tuple[TextBox, float]]:
    """Every word with its confidence; its box is measured on the page before that was enlarged."""
    page, ratio = sized
    tesserocr: Any = importlib.import_module("tesserocr")
    engine = _load_engine()
    engine.SetImageBytes(page.tobytes(), page.shape[1], page.shape[0], 1, page.shape[1])
    engine.SetSourceResolution(300)
    engine.Recognize()
    found: list[tuple[TextBox, float]] = []
    level = tesserocr.RIL.WORD
    for word in tesserocr.iterate_level(engine.GetIterator(), level):
        with suppress(RuntimeError):  # Tesseract raises it where there is no text
            text = str(word.GetUTF8Text(level)).strip()
            if text:
                left, top, right, bottom = (side / ratio for side in word.BoundingBox(level))
                found.append((TextBox(left, top, right, bottom, text), float(word.Confidence(level))))
    engine.Clear()
    return found


def measure_coverage(letters: Components, words: list[TextBox]) -> float:
    """The share of the pieces of ink that the words account for; a word accounts for about as many as it has letters.

    Pieces are counted, not their area: a large title would outweigh the small print that was lost.
    """
    accounted = 0.0
    across = letters[:, cv2.CC_STAT_LEFT] + letters[:, cv2.CC_STAT_WIDTH] / 2
    down = letters[:, cv2.CC_STAT_TOP] + letters[:, cv2.CC_STAT_HEIGHT] / 2
    for word in words:
        within = (across >= word.left) & (across <= word.right) & (down >= word.top) & (down <= word.bottom)
        accounted += min(int(within.sum()), 1.25 * sum(letter.isalnum() for letter in word.text) + 1)
    return accounted / len(letters)
