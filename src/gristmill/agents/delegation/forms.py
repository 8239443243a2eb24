"""Finds the form in the answer of an agent: which labels are its own, and which stand in what it quotes."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

LABELS = ("STATUS", "RESULT", "ARTIFACTS", "ISSUES", "CONFIDENCE", "NEEDS_VERIFICATION")
NAMES = r"STATUS|RESULTS?|ARTIFACTS?|ISSUES?|CONFIDENCE|NEEDS[_ -]?VERIFICATION"
# A label begins a line, in any case and any decoration, or stands inside a line in capitals.
LABEL = re.compile(
    r"^(?P<before>[ \t>#*_`|+•-]{0,16}(?:\d{1,2}[.)][ \t*_`]{1,8})?)"
    rf"(?P<line>{NAMES})[ \t*_`]{{0,8}}[:：=][ \t*_`]{{0,8}}"
    rf"|(?<=[\s|;,])[*_`]{{0,4}}(?P<inside>(?-i:{'|'.join(LABELS)}))[ \t*_`]{{0,8}}[:：][ \t*_`]{{0,8}}",
    re.IGNORECASE | re.MULTILINE,
)
FENCED = re.compile(r"^[ \t]{0,8}```.*?(?:^[ \t]{0,8}```[ \t]*$|\Z)", re.DOTALL | re.MULTILINE)
LONGEST_VALUE = 400  # characters in which a status, a confidence or a flag is looked for
CAPITALS, LETTERS, QUOTED, INSIDE = range(4)  # how a label is written, the plainest first


class Label(NamedTuple):
    """A label of a form: where it stands, and how plainly it is written."""

    name: str
    start: int
    end: int  # where its value begins
    rank: int

    @property
    def begins_line(self) -> bool:
        return self.rank < INSIDE


def find_labels(text: str, makes_sense: Callable[[str, str], bool], *, skip_fences: bool) -> list[Label]:
    """All labels. One whose value makes no sense is none: a result may tell of the status of a ticket."""
    fences = [match.span() for match in FENCED.finditer(text)] if skip_fences else []
    return [
        Label(name, match.start(), match.end(), _rank(match))
        for match in LABEL.finditer(text)
        if not any(start <= match.start() < stop for start, stop in fences)
        and makes_sense(name := _name_label(match["line"] or match["inside"]), cut_value(text, match.end()))
    ]


def _rank(match: re.Match[str]) -> int:
    if match["line"] is None:
        return INSIDE
    if ">" in match["before"]:
        return QUOTED
    return CAPITALS if match["line"].isupper() else LETTERS


def _name_label(written: str) -> str:
    plain = re.sub(r"[ -]", "_", written.upper())
    plain = "NEEDS_VERIFICATION" if plain == "NEEDSVERIFICATION" else plain
    return {"RESULTS": "RESULT", "ARTIFACT": "ARTIFACTS", "ISSUE": "ISSUES"}.get(plain, plain)


def cut_value(text: str, start: int) -> str:
    """The rest of the line, or the next line, up to the next label."""
    line = text[start : start + LONGEST_VALUE].lstrip().split("\n", 1)[0]
    following = LABEL.search(line)
    return (line[: following.start()] if following else line).strip().removesuffix("|")


def keep_plainest(labels: Sequence[Label]) -> list[Label]:
    """Of each name, only the labels that are written as plainly as any of them.

    A STATUS inside a line is a part of its sentence where other labels begin lines.
    """
    best = {name: min(one.rank for one in labels if one.name == name) for name in {one.name for one in labels}}
    if any(one.begins_line for one in labels) and best.get("STATUS") == INSIDE:
        best["STATUS"] = -1
    return [one for one in labels if one.rank == best[one.name]]


def choose_form(labels: Sequence[Label]) -> list[Label]:
    """The labels of the last whole form, each once: a form above it may be a draft or a quotation.

    A form is whole if it has a STATUS and a RESULT. A label that is repeated within it is a part of the value at hand.
    """
    forms = list_forms(labels)
    if forms:
        begin = labels.index(forms[-1])
        own = _take_first(labels[begin:])
        above = [] if any(one.name == "STATUS" for one in labels[:begin]) else _take_first(reversed(labels[:begin]))
        known = {one.name for one in own}
        return sorted([*own, *(one for one in above if one.name not in known)], key=lambda one: one.start)
    groups = _split_repeated(labels)  # the STATUS may stand below its RESULT
    whole = [n for n, group in enumerate(groups) if {"STATUS", "RESULT"} <= {one.name for one in group}]
    return _take_first(one for group in groups[whole[-1] if whole else 0 :] for one in group)


def list_forms(labels: Sequence[Label]) -> list[Label]:
    """The STATUS of each whole form that begins with it."""
    places = [n for n, one in enumerate(labels) if one.name == "STATUS"]
    return [
        labels[n] for n, stop in pairwise([*places, len(labels)]) if any(one.name == "RESULT" for one in labels[n:stop])
    ]


def _split_repeated(labels: Sequence[Label]) -> list[list[Label]]:
    """A new group begins at each label that the group before has already."""
    groups: list[list[Label]] = [[]]
    for one in labels:
        if any(one.name == other.name for other in groups[-1]):
            groups.append([])
        groups[-1].append(one)
    return groups


def _take_first(labels: Iterable[Label]) -> list[Label]:
    found: dict[str, Label] = {}
    for one in labels:
        found.setdefault(one.name, one)
    return list(found.values())
