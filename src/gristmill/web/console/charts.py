"""Charts as SVG, made on the server: axes with units, gaps where nothing is known, a label at the last point.

Coordinates are shares of the plot (0 to 100), which the style sheet stretches; text stands in percent, so that it is
not stretched. There is no style attribute: the policy of the pages forbids them, and classes name colours of states.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup, escape

Values = Sequence[float | None]  # None: nothing is known, which is not the same as zero
STEPS = (1, 1.5, 2, 3, 4, 5, 6, 8, 10)
FULL = 100.0
LABEL = 17.0  # the height of a line of text, in percent of a short chart
SPARK = Markup(
    '<svg class="spark" viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="{}">'
    "<title>{}</title>{}</svg>"
)
HIT = Markup('<rect class="hit" x="{:.2f}" width="{:.2f}" height="100"><title>{:%H:%M:%S}  {} {}</title></rect>')


@dataclass(frozen=True)
class Series:
    """One line of a chart; `colour` is a state."""

    name: str
    colour: str
    values: Values


@dataclass(frozen=True)
class ChartSpan:
    """The time that a chart shows: its end, and how long one value lasts."""

    end: datetime
    step: timedelta
    count: int

    def moment(self, place: int) -> datetime:
        """The beginning of the value at a place."""
        return self.end - self.step * (self.count - place)


def draw_lines(series: Sequence[Series], span: ChartSpan, *, unit: str, label: str, short: bool = False) -> Markup:
    """Lines over time, the first with its area filled."""
    top = find_top([value for one in series for value in one.values if value is not None])
    lines = [draw_series(one, top, fill=place == 0) for place, one in enumerate(series)]
    return frame(lines, series, top, span, unit=unit, label=label, short=short)


def draw_blocks(series: Sequence[Series], span: ChartSpan, *, unit: str, label: str, short: bool = False) -> Markup:
    """Bars over time, the series stacked on each other."""
    sums = [sum(one.values[place] or 0 for one in series) for place in range(span.count)]
    top = find_top(sums)
    blocks = [Markup("").join(stack(series, place, span.count, top)) for place in range(span.count)]
    return frame(blocks, series, top, span, unit=unit, label=label, short=short)


def draw_spark(values: Values, *, label: str, colour: str = "running") -> Markup:
    """A line without axes, for a row of a table."""
    top = find_top([value for value in values if value is not None])
    return SPARK.format(label, label, draw_series(Series(label, colour, values), top, fill=True))


def draw_spark_blocks(series: Sequence[Series], *, label: str) -> Markup:
    """Bars without axes: the last runs of a schedule, each in its colour."""
    count = max((len(one.values) for one in series), default=0)
    top = find_top([sum(one.values[place] or 0 for one in series) for place in range(count)])
    blocks = Markup("").join(block for place in range(count) for block in stack(series, place, count, top))
    return SPARK.format(label, label, blocks)


# --- pieces


def find_top(values: Sequence[float]) -> float:
    """A round number that is not below any value."""
    most = max(values, default=0)
    if most <= 0:
        return 1
    size = 10 ** math.floor(math.log10(most))
    return next(step * size for step in STEPS if step * size >= most - 1e-9)


def points_of(values: Values, top: float) -> list[list[tuple[float, float]]]:
    """The points of a line, in stretches between gaps."""
    stretches: list[list[tuple[float, float]]] = [[]]
    width = FULL / max(1, len(values) - 1)
    for place, value in enumerate(values):
        if value is not None:
            stretches[-1].append((round(place * width, 2), round(FULL - value / top * FULL, 2)))
        elif stretches[-1]:
            stretches.append([])
    return [stretch for stretch in stretches if stretch]


def draw_series(one: Series, top: float, *, fill: bool) -> Markup:
    drawn = Markup("")
    for stretch in points_of(one.values, top):
        if len(stretch) == 1:  # a single value between gaps is a short line, or it would not be seen
            stretch = [stretch[0], (min(FULL, stretch[0][0] + 0.8), stretch[0][1])]
        line = "L".join(f"{x:g} {y:g}" for x, y in stretch)
        if fill:
            area = f"M{stretch[0][0]:g} 100L{line}L{stretch[-1][0]:g} 100Z"
            drawn += Markup('<path class="area {}" d="{}"/>').format(one.colour, area)
        drawn += Markup('<path class="stroke {}" d="M{}"/>').format(one.colour, line)
    return drawn


def stack(series: Sequence[Series], place: int, count: int, top: float) -> list[Markup]:
    width, base, blocks = FULL / max(1, count), FULL, list[Markup]()
    for one in series:
        value = one.values[place] if place < len(one.values) else None
        if value:
            height = max(1.5, value / top * FULL)
            base -= height
            blocks.append(
                Markup('<rect class="block {}" x="{:.2f}" y="{:.2f}" width="{:.2f}" height="{:.2f}"/>').format(
                    one.colour, place * width + width * 0.12, base, width * 0.76, height
                )
            )
    return blocks


def frame(
    drawn: Sequence[Markup],
    series: Sequence[Series],
    top: float,
    span: ChartSpan,
    *,
    unit: str,
    label: str,
    short: bool,
) -> Markup:
    """Axes, labels and the places that answer to the pointer, around what was drawn."""
    rules = Markup("").join(
        Markup('<line class="rule" x1="0" x2="100" y1="{0}" y2="{0}"/>').format(y) for y in (0, 50, 100)
    )
    inner = rules + Markup("").join(drawn) + draw_hits(series, span, unit)
    text = draw_scale(top, unit) + draw_moments(span) + draw_ends(series, top)
    return Markup(
        '<svg class="chart{}" role="img" aria-label="{}">'
        '<svg class="plot" width="100%" height="100%" viewBox="0 0 100 100" preserveAspectRatio="none">{}</svg>'
        '<svg class="plot" width="100%" height="100%">{}</svg></svg>'
    ).format(" short" if short else "", describe(series, unit, label), inner, text)


def describe(series: Sequence[Series], unit: str, label: str) -> str:
    """What a screen reader says instead of the picture."""
    last = ", ".join(f"{one.name} {format_value(find_last(one.values)[1])} {unit}".strip() for one in series)
    return f"{label}; at the end {last}" if last else label


def draw_hits(series: Sequence[Series], span: ChartSpan, unit: str) -> Markup:
    width, hits = FULL / max(1, span.count), Markup("")
    for place in range(span.count):
        said = ", ".join(
            f"{one.name} {format_value(one.values[place] if place < len(one.values) else None)}" for one in series
        )
        hits += HIT.format(place * width, width, span.moment(place), said, unit)
    return hits


def draw_scale(top: float, unit: str) -> Markup:
    half = format_value(top / 2) if top / 2 == int(top / 2) or top < 2 else ""  # half a task says nothing
    texts = ((0, f"{format_value(top)} {unit}"), (50, half), (100, "0"))
    return Markup("").join(
        Markup('<text x="-8" y="{}%" dy="4" text-anchor="end">{}</text>').format(y, said.strip()) for y, said in texts
    )


def draw_moments(span: ChartSpan) -> Markup:
    places = ((0, "start", span.moment(0)), (50, "middle", span.moment(span.count // 2)), (100, "end", span.end))
    return Markup("").join(
        Markup('<text x="{}%" y="100%" dy="18" text-anchor="{}">{:%H:%M}</text>').format(x, anchor, moment)
        for x, anchor, moment in places
    )


def draw_ends(series: Sequence[Series], top: float) -> Markup:
    """A dot and a label at the last point of each line; labels that would lie on each other move up."""
    ends = [(FULL - value / top * FULL, one) for one in series if (value := find_last(one.values)[1]) is not None]
    drawn, free = Markup(""), FULL
    for y, one in sorted(ends, key=lambda end: -end[0]):
        place, value = find_last(one.values)
        x = FULL * place / max(1, len(one.values) - 1)
        at = min(y, free)
        free = at - LABEL
        drawn += Markup('<circle class="dot {}" cx="{:.2f}%" cy="{:.2f}%" r="3"/>').format(one.colour, x, y)
        drawn += Markup('<text class="last" x="100%" dx="8" y="{:.2f}%" dy="4">{} {}</text>').format(
            at, format_value(value), escape(one.name)
        )
    return drawn


def find_last(values: Values) -> tuple[int, float | None]:
    """The last known value and its place."""
    for place in range(len(values) - 1, -1, -1):
        if values[place] is not None:
            return place, values[place]
    return 0, None


def format_value(value: float | None) -> str:
    if value is None:
        return "–"
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            scaled = value / (1e3 if sign == "k" else size)
            return f"{scaled:.3g}{sign}"
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.2g}"
