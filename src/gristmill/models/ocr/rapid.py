"""Reads pictures with PP-OCRv6 on onnxruntime, from the files in the wheel; only child processes import it."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import atan2, cos, sin
from statistics import median
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from rapidocr import RapidOCR
from rapidocr.main import RapidOCRError

from gristmill.models.ocr.layout import PicturePlace, TextBox, place_points
from gristmill.models.ocr.pictures import LONGEST, Pixels, turn_page
from gristmill.models.weights import find_in_wheel

MODELS = {
    "Det": "rapidocr/models/PP-OCRv6_det_small.onnx",
    "Rec": "rapidocr/models/PP-OCRv6_rec_small.onnx",
    "Cls": "rapidocr/models/ch_ppocr_mobile_v2.0_cls_mobile.onnx",
}
SAMPLE = 8  # lines that decide whether a page is upside down
DOUBTFUL = 0.5  # a line with less confidence is more often dirt than text

Quads = NDArray[np.float32]  # lines × 4 corners × (x, y), clockwise from the top left


def read_page(page: Pixels) -> tuple[list[TextBox], float]:
    """The lines of a page, whichever way up it is, and the confidence of the model."""
    upright = page
    quads, crops = _find_lines(page)
    if quarters := _count_quarters(quads, crops):
        upright = turn_page(page, quarters)
        quads, crops = _find_lines(upright)
    if not crops:
        return [], 0.0
    texts = _load_engine().recognize_txt(crops)
    lines = [
        (quad, text.strip(), score)
        for quad, text, score in zip(quads, texts.txts or (), texts.scores or (), strict=True)
        if text.strip() and score >= DOUBTFUL
    ]
    letters = sum(len(text) for _, text, _ in lines)
    confidence = sum(score * len(text) for _, text, score in lines) / letters if letters else 0.0
    places = [_find_place(quad, upright, quarters) for quad, _, _ in lines]
    boxes = _deskew_boxes([quad for quad, _, _ in lines], [text for _, text, _ in lines])
    return [replace(box, place=place) for box, place in zip(boxes, places, strict=True)], confidence


@cache
def _load_engine() -> RapidOCR:
    """Names every file of the engine: it would download a file that nobody has named."""
    files = {f"{part}.model_path": str(find_in_wheel("rapidocr", path)) for part, path in MODELS.items()}
    threads = {f"EngineConfig.onnxruntime.{kind}_op_num_threads": 1 for kind in ("intra", "inter")}
    more: dict[str, Any] = {"Global.max_side_len": LONGEST, "Global.log_level": "error"}
    return RapidOCR(params=files | threads | more)


def _find_lines(page: Pixels) -> tuple[Quads, list[Pixels]]:
    """The corners of each line, and a picture of each line, cut out and set upright."""
    engine = _load_engine()
    sized, steps = engine.preprocess_img(page)
    try:
        crops, found = engine.detect_and_crop(sized, steps)
    except RapidOCRError:  # the engine raises it if there is no line
        return np.zeros((0, 4, 2), np.float32), []
    return cast("Quads", found.boxes), crops


def _count_quarters(quads: Quads, crops: Sequence[Pixels]) -> int:
    """By how many quarters the page must be turned counter-clockwise to stand upright."""
    if not crops:
        return 0
    longest = sorted(range(len(crops)), key=lambda at: -crops[at].shape[1])[:SAMPLE]
    sideways = sum(_is_tall(quads[at]) for at in longest) * 2 > len(longest)
    judged = _load_engine().cls_and_rotate([crops[at] for at in longest])[1].cls_res or []
    upside_down = sum(score for label, score in judged if label == "180") * 2 > sum(score for _, score in judged)
    return (1 if sideways else 0) + (2 if upside_down else 0)  # the engine has turned tall crops by one quarter already


def _is_tall(quad: Quads) -> bool:
    wide = np.linalg.norm(quad[1] - quad[0])
    return bool(np.linalg.norm(quad[3] - quad[0]) >= 1.5 * wide)


def _find_place(quad: Quads, upright: Pixels, quarters: int) -> PicturePlace:
    """Where a line of the upright page stands in the picture as it was given, before it was turned by `quarters`."""
    height, width = upright.shape[:2]
    place = place_points([(float(x), float(y)) for x, y in quad], width, height)
    for _ in range(quarters):  # one quarter clockwise each
        place = PicturePlace(1 - place.bottom, place.left, 1 - place.top, place.right)
    return place


def _deskew_boxes(quads: Sequence[Quads], texts: Sequence[str]) -> list[TextBox]:
    """The lines, where they would stand if the page were not skewed."""
    if not quads:
        return []
    skew = median(atan2(quad[1][1] - quad[0][1], quad[1][0] - quad[0][0]) for quad in quads)
    back = np.array([[cos(skew), -sin(skew)], [sin(skew), cos(skew)]], np.float32)
    return [_make_box(quad @ back, text) for quad, text in zip(quads, texts, strict=True)]


def _make_box(quad: Quads, text: str) -> TextBox:
    left, right = (quad[0][0] + quad[3][0]) / 2, (quad[1][0] + quad[2][0]) / 2
    top, bottom = (quad[0][1] + quad[1][1]) / 2, (quad[2][1] + quad[3][1]) / 2
    return TextBox(float(left), float(top), float(right), float(bottom), text)
