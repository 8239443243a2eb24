"""Charts are SVG that a strict policy allows, and that says what it shows."""

from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

import pytest

from gristmill.web.console.charts import (
    ChartSpan,
    Series,
    draw_blocks,
    draw_lines,
    draw_spark,
    draw_spark_blocks,
    find_top,
    format_value,
    points_of,
)

HOUR = ChartSpan(datetime(2026, 11, 17, 12, tzinfo=UTC), timedelta(minutes=1), 4)


@pytest.mark.parametrize(
    ("values", "top"), [([], 1), ([0, 0], 1), ([0.3], 0.3), ([7], 8), ([99], 100), ([100], 100), ([1_234], 1_500)]
)
def test_an_axis_ends_at_a_round_number_above_every_value(values: list[float], top: float) -> None:
    assert find_top(values) == pytest.approx(top)


def test_a_gap_in_the_values_is_a_gap_in_the_line() -> None:
    assert points_of([1, 2, None, 4], top=4) == [[(0, 75), (33.33, 50)], [(100, 0)]]


def test_a_chart_says_its_unit_its_last_values_and_every_value_under_the_pointer() -> None:
    drawn = draw_lines([Series("done", "done", [1, None, 3, 4])], HOUR, unit="/min", label="Tasks per minute")
    assert 'aria-label="Tasks per minute; at the end done 4 /min"' in drawn
    assert "4 done" in drawn
    assert "11:57:00  done – /min" in drawn
    assert "4 /min" in drawn


def test_names_in_a_chart_cannot_become_markup() -> None:
    drawn = draw_blocks([Series("<script>", "done", [1, 2, 3, 4])], HOUR, unit="", label='"><script>')
    assert "<script>" not in drawn


@pytest.mark.parametrize("values", [[], [None], [None, None, 1], [0, 0], [5]])
def test_every_chart_is_well_formed_and_without_inline_style(values: list[float | None]) -> None:
    series = [Series("a", "done", values), Series("b", "failed", values)]
    span = ChartSpan(HOUR.end, HOUR.step, len(values))
    for drawn in (
        draw_lines(series, span, unit="s", label="x"),
        draw_blocks(series, span, unit="s", label="x"),
        draw_spark(values, label="x"),
        draw_spark_blocks(series, label="x"),
    ):
        ElementTree.fromstring(drawn)
        assert "style=" not in drawn


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0, "0"), (0.25, "0.25"), (7.5, "7.5"), (1234, "1,234"), (12_300, "12.3k"), (4_500_000, "4.5M")],
)
def test_values_are_short(value: float | None, text: str) -> None:
    assert format_value(value) == text
