"""Small linear models that are carried as data: one weight for each hashed feature, a byte each."""

import math
import struct
import zlib
from array import array
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

BUCKETS = 1 << 17
HEADER = struct.Struct("<4sfff")  # a name, the step of a weight, what every text has, from which margin on it counts
NAME = b"GMI1"


class Weights(NamedTuple):
    """The weights as steps, the length of a step, the weight of every text, and the threshold."""

    steps: "array[int]"
    step: float
    always: float
    threshold: float

    def weigh(self, features: Sequence[int]) -> float:
        """How far a text lies above the threshold (or below it: then less than nothing)."""
        steps = self.steps
        total = sum([steps[one] for one in features])
        return self.always + self.step * total / math.sqrt(max(1, len(features))) - self.threshold


@cache
def load_weights(path: Path) -> Weights:
    stored = path.read_bytes()
    name, step, always, threshold = HEADER.unpack_from(stored)
    steps = array("b", zlib.decompress(stored[HEADER.size :]))
    if name != NAME or len(steps) != BUCKETS:
        raise ValueError(f"{path.name} is not of this version: train it anew with the program in bench/.")
    return Weights(steps, step, always, threshold)


def hash_feature(feature: str) -> int:
    return zlib.crc32(feature.encode("utf-8", "replace")) % BUCKETS


def make_probability(margin: float) -> float:
    """A margin as a number from 0 to 1; 0.5 at the threshold."""
    return 1 / (1 + math.exp(-max(-30.0, min(30.0, margin))))
