"""What the commands say: tables for people, JSON for programs, errors as one sentence."""

import dataclasses
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from gristmill.errors import GristmillError
from gristmill.wording import format_span


class Misused(GristmillError):
    """The command line itself is wrong: one sentence, and exit code 2."""


Json = Annotated[bool, typer.Option("--json", help="Machine-readable: one JSON document.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

LEAST_NAME = 24  # characters of the first name in a row, however narrow the screen …
LEAST_OTHER = 8  # … and of the other names in it
LONGEST_WORD = 12  # characters that are not broken in the last column
NARROW = 100  # columns below which tables are set closely
PAPER = 160  # columns where there is no terminal to ask, and no COLUMNS
# Characters that a terminal obeys instead of showing: controls, and marks that turn the direction of writing.
UNSHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)


class Screen(Console):
    """Shows texts as they are: names and documents hold neither markup nor commands for the terminal."""

    def __init__(self, *, stderr: bool = False) -> None:
        stream = sys.stderr if stderr else sys.stdout  # None where the shell closed it
        told = os.environ.get("COLUMNS", "")  # noqa: TID251 how a shell tells the width, no setting of ours
        width = None if (stream and stream.isatty()) or told.strip("0").isdecimal() else PAPER
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False, width=width)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            if segment.control or not UNSHOWN.search(segment.text):
                yield segment
            else:
                yield Segment(UNSHOWN.sub("", segment.text), segment.style)  # as wide as it was measured


out = Screen()
err = Screen(stderr=True)

COLOURS = {
    "pending": "yellow",
    "processing": "cyan",
    "completed": "green",
    "skipped": "blue",
    "failed": "red",
    "cancelled": "magenta",
    "ok": "green",
    "warn": "yellow",
    "fail": "red",
    "live": "green",
    "lost": "red",
    "open": "red",
    "half-open": "yellow",
    "closed": "green",
    "paused": "yellow",
    "warning": "yellow",
    "critical": "red",
    "over": "green",
}


def fail(sentence: str, *, as_json: bool) -> None:
    """What is wrong, on stderr; a program that asked for JSON finds it on stdout too."""
    err.print(Text(sentence, style="red" if err.is_terminal else ""), soft_wrap=True)
    if as_json:
        with suppress(OSError):  # stdout itself may be what is wrong: a full disk
            say_json({"error": sentence})


def warn(sentence: str) -> None:
    """Warns on stderr and goes on. The same warning is printed once."""
    if sentence not in _warned:
        _warned.add(sentence)
        err.print(Text(sentence, style="yellow" if err.is_terminal else ""), soft_wrap=True)


_warned: set[str] = set()


def emit(as_json: bool, data: Any, view: Callable[[], RenderableType | None]) -> None:
    """The same answer for programs or for people."""
    if as_json:
        say_json(data)
    elif isinstance(shown := view(), str):
        say(shown)
    elif shown is not None:
        out.print(shown)


def confirm_removal(what: str, *, yes: bool, as_json: bool) -> None:
    """Ask before something is removed for good. Where nobody can answer, the command has to say --yes."""
    if yes:
        return
    if as_json or not sys.stdin or not sys.stdin.isatty():
        raise Misused(f"This removes {what} for good: say --yes.")
    typer.confirm(f"Remove {what} for good?", abort=True)


def say(sentence: str) -> None:
    out.print(Text(sentence), soft_wrap=True)


def say_json(data: Any) -> None:
    """Readable JSON. Characters that a terminal would obey are escaped."""
    text = json.dumps(to_plain(data), ensure_ascii=False)
    typer.echo(UNSHOWN.sub(lambda found: json.dumps(found[0])[1:-1], text))


def to_plain(value: Any) -> Any:
    """As JSON knows it: times in ISO 8601, durations in seconds."""
    if value is None or isinstance(value, (str, int, float)):  # first: a list may have 100,000 rows
        return value
    match value:
        case datetime():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case Mapping():
            return {str(key): to_plain(one) for key, one in cast(Mapping[Any, Any], value).items()}
        case Path():
            return str(value)
        case _ if dataclasses.is_dataclass(value):
            return {field.name: to_plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        case _ if hasattr(value, "_asdict"):
            return to_plain(value._asdict())
        case _ if isinstance(value, Iterable):
            return [to_plain(one) for one in cast(Iterable[Any], value)]
        case _:
            return str(value)


def make_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], *, empty: str, title: str | None = None
) -> RenderableType:
    """A table, or the sentence that says why there is none.

    A column whose name starts with > holds numbers, one with ~ names that are cut where a screen is narrow. Only the
    last one is broken into lines: it holds the longest text, and keeps its words.
    """
    header = any(columns)
    grid = Table(
        title=title,
        title_justify="left",
        box=None,
        pad_edge=False,
        header_style="bold",
        show_header=header,
        collapse_padding=is_narrow(),
    )
    cells = [[format_cell(one) for one in row] for row in rows]
    widths = _least_widths(columns, cells)
    for column, width in zip(columns[:-1], widths, strict=False):
        cut = column.startswith("~")
        justify = "right" if column.startswith(">") else "left"
        grid.add_column(column.lstrip(">~"), justify=justify, no_wrap=not cut, min_width=width if cut else None)
    last = columns[-1]
    justify = "right" if last.startswith(">") else "left"
    grid.add_column(last.lstrip(">"), justify=justify, overflow="fold", min_width=widths[-1])
    for row in cells:
        grid.add_row(*map(_in_one_line, row[:-1]), row[-1])
    return grid if grid.row_count else Text(empty, style="dim")


def _least_widths(columns: Sequence[str], cells: Sequence[Sequence[Text]]) -> list[int]:
    """How narrow each column may become: numbers and words keep their width, names are cut.

    The first name is what one looks for: it has whatever the others leave, up to a bound.
    """
    widths = [
        max([len(column.lstrip(">~")), *(row[place].cell_len for row in cells)])
        for place, column in enumerate(columns[:-1])
    ]
    words = [word for text in (columns[-1].lstrip(">"), *(row[-1].plain for row in cells)) for word in text.split()]
    widths.append(min(LONGEST_WORD, max(map(len, words), default=0)))
    names = [place for place, column in enumerate(columns[:-1]) if column.startswith("~")]
    for place in names[1:]:
        widths[place] = min(LEAST_OTHER, widths[place])
    for place in names[:1]:
        last = min(LONGEST_WORD, max((row[-1].cell_len for row in cells), default=0))
        gaps = (1 if is_narrow() else 2) * (len(columns) - 1)
        left = out.width - (sum(widths[:-1]) - widths[place]) - last - gaps
        widths[place] = min(widths[place], max(min(left, LEAST_NAME), LEAST_OTHER))
    return widths


def is_narrow(screen: Console | None = None) -> bool:
    """Whether the screen is too narrow for more than the most important columns; stdout, unless another is named."""
    return (screen or out).width < NARROW


def _in_one_line(text: Text) -> Text:
    text.no_wrap, text.overflow = True, "ellipsis"  # of the cell: such a column would keep its width
    return text


def make_facts(pairs: Iterable[tuple[str, Any]]) -> RenderableType:
    """Names and values below each other; what is not there is not shown."""
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(style="bold")
    grid.add_column(overflow="fold")
    for name, value in pairs:
        if value is not None and value != "":
            grid.add_row(name, format_cell(value))
    return grid


def format_cell(value: Any) -> Text:
    """A value as people read it."""
    match value:
        case Text():
            return value
        case None:
            return Text("–", style="dim")
        case bool():
            return Text("yes" if value else "no")
        case datetime():
            return Text(format_moment(value))
        case timedelta():
            return Text(format_span(value))
        case int():
            return Text(f"{value:,}")
        case str():
            return Text(value, style=COLOURS.get(value, ""))
        case _:
            return Text(str(value))


def format_moment(at: datetime) -> str:
    """In the time zone of this machine."""
    return f"{at.astimezone():%Y-%m-%d %H:%M:%S}"


def shorten(value: Any, most: int = 80) -> str:
    """One line of something long."""
    text = value if isinstance(value, str) else json.dumps(to_plain(value), ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
