"""Guesses which columns hold the text, the id and the category, and checks the columns that a person named."""

import re
from collections.abc import Sequence
from statistics import fmean

from gristmill.errors import Permanent, Refused
from gristmill.records.detect import NUMBER
from gristmill.records.model import BOTTOM, TOP, Dialect, ImportPlan, Options

MOST_COLUMNS = 2_000
# names of ids, and how many of their values differ at least; the first two are ids even if some rows were sent twice
ID_NAMES = {"task_id": 0.5, "uuid": 0.5} | dict.fromkeys(("id", "external_id", "record_id", "guid", "key"), 0.9)
LINK = re.compile(r"\s*(https?://|www\.)\S+\s*")
# top 10, TOP_10, Top-10 %, top ten, top10percent …
EXTREME = re.compile(r"\W*(top|bottom)[\W_]*(?:10|ten)[\W_]*(?:%|per ?cent(?:ile)?)?\W*", re.IGNORECASE)


def name_columns(first: Sequence[str], *, header: bool) -> tuple[str, ...]:
    """A name for each column, none twice."""
    if len(first) > MOST_COLUMNS:
        raise Permanent(f"It has {len(first):,} columns, and {MOST_COLUMNS:,} are the most: is the delimiter right?")
    names: dict[str, None] = {}
    for place, cell in enumerate(first, 1):
        name = " ".join(cell.replace("\0", "").split()) if header else ""
        name = name[:200] or f"column_{place}"
        names[name if name not in names else f"{name}_{place}"] = None
    return tuple(names)


def make_plan(
    dialect: Dialect, columns: tuple[str, ...], sample: Sequence[Sequence[str]], options: Options, max_text: int
) -> ImportPlan:
    """The plan for a file with these columns; `sample` are some of its rows."""
    id_ = _find_id(columns, sample) if options.id is None else find_column(columns, options.id) if options.id else None
    category = find_column(columns, options.category) if options.category else _find_category(columns, sample)
    text = tuple(find_column(columns, name) for name in options.text) or _find_text(columns, sample, id_, category)
    return ImportPlan(
        dialect=dialect,
        columns=columns,
        text=text,
        id=id_,
        category=category,
        rank_by=find_column(columns, options.rank_by) if options.rank_by else None,
        words=tuple(word.strip() for word in options.words if word.strip(" -")),
        min_length=options.min_length,
        embed=options.embed,
        unique_text=options.unique_text,
        max_text=max_text,
    )


def find_column(columns: Sequence[str], name: str) -> str:
    """The column of this name, in any spelling."""
    exact = [one for one in columns if one == name]
    alike = exact or [one for one in columns if _plain(one) == _plain(name)]
    if alike:
        return alike[0]
    known = ", ".join(columns[:20]) + (" …" if len(columns) > 20 else "")
    raise Refused(f"There is no column “{name}”: there are {known}.")


def read_category(cell: str) -> str | None:
    """TOP_10 or BOTTOM_10, in any spelling."""
    found = EXTREME.fullmatch(cell)
    return None if found is None else TOP if found[1].lower() == "top" else BOTTOM


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _cells(sample: Sequence[Sequence[str]], place: int) -> list[str]:
    return [row[place].strip() for row in sample if len(row) > place and row[place].strip()]


def _find_id(columns: Sequence[str], sample: Sequence[Sequence[str]]) -> str | None:
    """A column with the name of an id whose values hardly repeat."""
    for wanted, share in ID_NAMES.items():
        for place, name in enumerate(columns):
            values = _cells(sample, place)
            if _plain(name) == _plain(wanted) and len(set(values)) >= share * len(values):
                return name
    return None


def _find_category(columns: Sequence[str], sample: Sequence[Sequence[str]]) -> str | None:
    for place, name in enumerate(columns):
        if any(read_category(value) for value in _cells(sample, place)):
            return name
    return None


def _find_text(
    columns: Sequence[str], sample: Sequence[Sequence[str]], id_: str | None, category: str | None
) -> tuple[str, ...]:
    """The column with the longest text; links and numbers are none."""
    lengths: dict[str, float] = {}
    for place, name in enumerate(columns):
        values = [one for one in _cells(sample, place) if not LINK.fullmatch(one) and not NUMBER.fullmatch(one)]
        if values and name not in (id_, category):
            lengths[name] = fmean(map(len, values)) * len(values) / max(1, len(sample))
    if not lengths:
        raise Permanent("No column holds text: name the one that does with --text.")
    return (max(lengths, key=lambda name: lengths[name]),)
