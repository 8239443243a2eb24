"""Trains the model that scores English sentences as requests, and measures it by cross-validation.

    .venv/bin/python bench/train_intent.py            # cross-validation only
    .venv/bin/python bench/train_intent.py --write    # and writes src/gristmill/models/language/hints/intent.bin

The sentences are those of ParakweetLabs/EmailIntentDataSet (Apache-2.0), in `email-intent` of GRISTMILL_CORPORA.
The same sentences give the same file on every machine: the order is drawn with a fixed seed, and nothing is random
otherwise. A logistic regression is fitted by accelerated gradient descent; its weights are rounded to a byte.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder: its queue.py would stand before Python's own

import json  # noqa: E402
import os  # noqa: E402
import zlib  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from dataclasses import dataclass  # noqa: E402

import numpy as np  # noqa: E402

from gristmill.models.language.hints.intent import WEIGHTS, find_features  # noqa: E402
from gristmill.models.language.hints.weights import BUCKETS, HEADER, NAME  # noqa: E402

CORPORA = Path(os.environ.get("GRISTMILL_CORPORA", ROOT.parent / "shared" / "corpora"))
SENTENCES = "email-intent/Ask0729-fixed.txt"
SEED, FOLDS = 17, 10
PENALTY, ROUNDS, STEP = 1e-4, 300, 1.6
THRESHOLD = -0.4  # balances what is missed against what is wrong; F1 is flat from -0.6 to -0.2
Matrix = tuple[np.ndarray, np.ndarray]  # buckets of all sentences one after the other, and how many each has


@dataclass(frozen=True)
class Model:
    """A weight for every bucket, and one for every sentence."""

    weights: np.ndarray
    always: float


def load_sentences(corpora: Path = CORPORA) -> tuple[list[str], np.ndarray]:
    """The sentences, and which of them are requests; empty where the corpus is not."""
    path = corpora / SENTENCES
    if not path.exists():
        return [], np.zeros(0, dtype=bool)
    rows = [line.split("\t", 1) for line in path.read_text("utf-8", "replace").splitlines() if "\t" in line]
    return [row[1] for row in rows], np.array([row[0] == "Yes" for row in rows])


def make_matrix(features: Sequence[Sequence[int]]) -> Matrix:
    return np.concatenate([np.array(one) for one in features]), np.array([len(one) for one in features])


def fit(matrix: Matrix, asks: np.ndarray) -> Model:
    """Logistic regression with a small penalty, by Nesterov's accelerated gradient."""
    buckets, lengths = matrix
    rows, values = np.repeat(np.arange(len(lengths)), lengths), np.repeat(1 / np.sqrt(lengths), lengths)
    weights = ahead = np.zeros(BUCKETS)
    always = always_ahead = 0.0
    for step in range(ROUNDS):
        margins = np.bincount(rows, weights=ahead[buckets] * values, minlength=len(lengths)) + always_ahead
        errors = (1 / (1 + np.exp(-margins)) - asks) / len(lengths)
        slope = np.bincount(buckets, weights=errors[rows] * values, minlength=BUCKETS) + PENALTY * ahead
        new, new_always = ahead - STEP * slope, always_ahead - STEP * errors.sum()
        push = step / (step + 3)
        ahead, always_ahead = new + push * (new - weights), new_always + push * (new_always - always)
        weights, always = new, new_always
    return Model(weights, always)


def quantize(model: Model) -> tuple[Model, np.ndarray, float]:
    """The model with its weights rounded to a byte, the bytes, and the length of a step."""
    length = float(np.abs(model.weights).max()) / 127 or 1.0
    steps = np.round(model.weights / length).astype(np.int8)
    return Model(steps * length, model.always), steps, length


def score(model: Model, matrix: Matrix) -> np.ndarray:
    buckets, lengths = matrix
    rows, values = np.repeat(np.arange(len(lengths)), lengths), np.repeat(1 / np.sqrt(lengths), lengths)
    return np.bincount(rows, weights=model.weights[buckets] * values, minlength=len(lengths)) + model.always


def measure_f1(found: np.ndarray, asks: np.ndarray) -> dict[str, float]:
    hits = int((found & asks).sum())
    return {
        "f1": 2 * hits / (found.sum() + asks.sum()),
        "precision": hits / max(1, found.sum()),
        "recall": hits / max(1, asks.sum()),
    }


def cross_validate(texts: Sequence[str], asks: np.ndarray, seed: int = SEED) -> dict[str, float]:
    """Every sentence is judged by a model that was trained on nine tenths of the others, rounded as the file is."""
    features = [find_features(text) for text in texts]
    order = np.random.default_rng(seed).permutation(len(texts))
    found = np.zeros(len(texts), dtype=bool)
    for fold in range(FOLDS):
        held, used = order[fold::FOLDS], np.delete(order, np.s_[fold::FOLDS])
        model, _, _ = quantize(fit(make_matrix([features[n] for n in used]), asks[used]))
        found[held] = score(model, make_matrix([features[n] for n in held])) >= THRESHOLD
    return measure_f1(found, asks)


def measure_intent() -> float | None:
    """F1 by cross-validation; None where the corpus is not."""
    texts, asks = load_sentences()
    return round(cross_validate(texts, asks)["f1"], 4) if texts else None


def write_model(texts: Sequence[str], asks: np.ndarray) -> None:
    model, steps, length = quantize(fit(make_matrix([find_features(text) for text in texts]), asks))
    WEIGHTS.write_bytes(HEADER.pack(NAME, length, model.always, THRESHOLD) + zlib.compress(steps.tobytes(), 9))


def main() -> None:
    texts, asks = load_sentences()
    if not texts:
        sys.exit(f"There is no {SENTENCES} in {CORPORA}: set GRISTMILL_CORPORA.")
    print(json.dumps({name: round(float(value), 4) for name, value in cross_validate(texts, asks).items()}))
    if "--write" in sys.argv:
        write_model(texts, asks)
        print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
