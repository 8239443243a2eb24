"""Trains the two models of a second opinion on the written items, and measures them by cross-validation.

    .venv/bin/python bench/train_opinion.py            # cross-validation only
    .venv/bin/python bench/train_opinion.py --write    # and writes wish.bin and bill.bin

The items are those of `tests/data/qualifier` without `items.jsonl`, which is what decisions are measured with. The
same items give the same files on every machine.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder: its queue.py would stand before Python's own

import json  # noqa: E402
import zlib  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from dataclasses import dataclass  # noqa: E402
from datetime import UTC, datetime  # noqa: E402
from typing import Any  # noqa: E402

import numpy as np  # noqa: E402
from bench.reading_texts import load_rows, make_about  # noqa: E402
from bench.train_intent import FOLDS, SEED, fit, make_matrix, quantize, score  # noqa: E402

from gristmill.models import About  # noqa: E402
from gristmill.models.language.amounts import find_amounts  # noqa: E402
from gristmill.models.language.hints.facts import Cut, cut_text  # noqa: E402
from gristmill.models.language.hints.opinion import BILL, WISH, find_features  # noqa: E402
from gristmill.models.language.hints.weights import HEADER, NAME  # noqa: E402

LEARNED = ("more_items.jsonl", "fresh_items.jsonl", "lessons.jsonl")
SOME_DAY = datetime(2026, 1, 1, tzinfo=UTC)
SURE_OF_WISH, SURE_OF_BILL = 0.55, 0.6  # margins from which on the models are believed


@dataclass(frozen=True)
class Lesson:
    """What a model learns: the features of texts, and which of them are of the kind that it is to recognise."""

    features: Sequence[Sequence[int]]
    asks: np.ndarray

    def choose(self, places: np.ndarray) -> "Lesson":
        return Lesson([self.features[int(n)] for n in places], self.asks[places])


def load_lessons() -> dict[Path, tuple[Lesson, float]]:
    """For each file of weights: what its model learns, and its threshold."""
    rows = [(row, cut_row(row)) for name in LEARNED for row in load_rows(name)]
    mails = [(row, cut) for row, cut in rows if row["type"] == "email"]
    priced = [(row, cut) for row, cut in rows if row["type"] in ("email", "document") and names_amount(row, cut)]
    wish = Lesson([find_features(cut.asked) for _, cut in mails], np.array([is_wish(row) for row, _ in mails]))
    bill = Lesson([find_features(cut.sentences) for _, cut in priced], np.array([is_bill(row) for row, _ in priced]))
    return {WISH: (wish, SURE_OF_WISH), BILL: (bill, SURE_OF_BILL)}


def is_wish(row: dict[str, Any]) -> bool:
    return row["wish"] if "wish" in row else row["expected"]["to"] != "info_only"


def is_bill(row: dict[str, Any]) -> bool:
    return row["payment"] if "wish" in row else bool(row["expected"]["payment"])


def cut_row(row: dict[str, Any]) -> Cut:
    if "wish" in row:
        return cut_text(row["text"], About(SOME_DAY, type="email", subject=row["subject"]))
    new = None if row["new"] is None else [(start, stop) for start, stop in row["new"]]
    return cut_text(row["text"], make_about(row), new)


def names_amount(row: dict[str, Any], cut: Cut) -> bool:
    return any(True for start, stop in cut.spans for _ in find_amounts(row["text"], start, stop))


def cross_validate(lesson: Lesson) -> np.ndarray:
    """The margin of every text, by a model that was trained on nine tenths of the others, rounded as the file is."""
    order = np.random.default_rng(SEED).permutation(len(lesson.asks))
    margins = np.zeros(len(order))
    for fold in range(FOLDS):
        held, used = lesson.choose(order[fold::FOLDS]), lesson.choose(np.delete(order, np.s_[fold::FOLDS]))
        model, _, _ = quantize(fit(make_matrix(used.features), used.asks))
        margins[order[fold::FOLDS]] = score(model, make_matrix(held.features))
    return margins


def write_model(path: Path, lesson: Lesson, threshold: float) -> None:
    model, steps, length = quantize(fit(make_matrix(lesson.features), lesson.asks))
    path.write_bytes(HEADER.pack(NAME, length, model.always, threshold) + zlib.compress(steps.tobytes(), 9))


def main() -> None:
    for path, (lesson, threshold) in load_lessons().items():
        found = cross_validate(lesson) >= threshold
        figures = {
            "texts": len(lesson.asks),
            "right": round(float((found == lesson.asks).mean()), 4),
            "found": round(float(found[lesson.asks].mean()), 4),
            "false": round(float(found[~lesson.asks].mean()), 4),
        }
        print(path.name, json.dumps(figures))
        if "--write" in sys.argv:
            write_model(path, lesson, threshold)
            print(f"{path.name}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
