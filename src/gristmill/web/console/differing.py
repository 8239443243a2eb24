"""Compares two versions of a text: line by line, and word by word where a line has changed."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal, NamedTuple

Kind = Literal["same", "gone", "come"]
AROUND = 2  # unchanged lines that are shown before and after a change
ALIKE = 0.4  # two lines that share less than this part of their words are shown as two lines
MOST_LINES = 5_000  # of a version; comparing more would keep the reader waiting
MOST_WORDS = 400  # of a line that is compared word by word
WORD = re.compile(r"\w+|\s+|[^\w\s]")


class LinePiece(NamedTuple):
    """A part of a line; in a changed line, the parts that are not the same in both versions stand out."""

    text: str
    stands_out: bool = False


@dataclass(frozen=True)
class ComparedLine:
    """A line of the older version that is gone, one of the newer that has come, or one that both have."""

    kind: Kind
    pieces: tuple[LinePiece, ...]


@dataclass(frozen=True)
class Gap:
    """So many lines that are the same in both versions and are left out."""

    lines: int


@dataclass(frozen=True)
class VersionDifference:
    """What has changed from one version to the other."""

    lines: tuple[ComparedLine | Gap, ...]
    gone: int
    come: int
    is_cut: bool  # the texts are longer than what was compared

    @property
    def is_empty(self) -> bool:
        return not self.gone and not self.come


def compare_texts(before: str, after: str) -> VersionDifference:
    """The changed lines with a little of what stands around them."""
    old, new = before.splitlines(), after.splitlines()
    is_cut = max(len(old), len(new)) > MOST_LINES
    old, new = old[:MOST_LINES], new[:MOST_LINES]
    lines = list(_compare_lines(old, new))
    return VersionDifference(
        lines=tuple(_fold_same(lines)),
        gone=sum(line.kind == "gone" for line in lines),
        come=sum(line.kind == "come" for line in lines),
        is_cut=is_cut,
    )


def _compare_lines(old: Sequence[str], new: Sequence[str]) -> Iterator[ComparedLine]:
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=len(old) > 500).get_opcodes():
        if tag == "equal":
            yield from (ComparedLine("same", (LinePiece(text),)) for text in old[a:b])
        else:
            yield from _compare_block(old[a:b], new[c:d])


def _compare_block(old: Sequence[str], new: Sequence[str]) -> Iterator[ComparedLine]:
    """Lines that were replaced: each with its counterpart, as long as both sides have one and they are alike."""
    pairs = [_compare_words(*pair) for pair in zip(old, new, strict=False)]
    yield from (pair[0] for pair in pairs)
    yield from (ComparedLine("gone", (LinePiece(text),)) for text in old[len(pairs) :])
    yield from (pair[1] for pair in pairs)
    yield from (ComparedLine("come", (LinePiece(text),)) for text in new[len(pairs) :])


def _compare_words(old: str, new: str) -> tuple[ComparedLine, ComparedLine]:
    before, after = WORD.findall(old), WORD.findall(new)
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    if max(len(before), len(after)) > MOST_WORDS or matcher.quick_ratio() < ALIKE:
        return ComparedLine("gone", (LinePiece(old),)), ComparedLine("come", (LinePiece(new),))
    codes = matcher.get_opcodes()
    gone = tuple(LinePiece("".join(before[a:b]), tag != "equal") for tag, a, b, _, _ in codes if a < b)
    come = tuple(LinePiece("".join(after[c:d]), tag != "equal") for tag, _, _, c, d in codes if c < d)
    return ComparedLine("gone", gone), ComparedLine("come", come)


def _fold_same(lines: Sequence[ComparedLine]) -> Iterator[ComparedLine | Gap]:
    """The lines without those that are far from any change."""
    near = set[int]()
    for n, line in enumerate(lines):
        if line.kind != "same":
            near.update(range(n - AROUND, n + AROUND + 1))
    left_out = 0
    for n, line in enumerate(lines):
        if n not in near:
            left_out += 1
            continue
        if left_out:
            yield Gap(left_out)
            left_out = 0
        yield line
    if left_out:
        yield Gap(left_out)
