"""How templates say numbers, times and states, and how tables are ordered."""

from datetime import UTC, datetime, timedelta

import pytest
from fastapi import Request

from gristmill.web.console.drawing import format_ago, format_json, is_within, lay_out, look_of
from gristmill.web.console.markdown import draw_markdown
from gristmill.web.console.sorting import read_sort, sort_rows

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "now"), (4, "4 s ago"), (72, "1 min ago"), (-7200, "in 2 h"), (86_400 * 3, "3 d ago"), (1e8, "2023-09-17")],
)
def test_a_moment_is_told_by_its_distance(seconds: float, text: str) -> None:
    assert format_ago(NOON - timedelta(seconds=seconds), NOON) == text


def test_every_status_has_a_colour_an_icon_and_a_word_and_an_unknown_one_says_its_name() -> None:
    assert (look_of("processing").colour, look_of("processing").word) == ("running", "running")
    assert look_of("odd").word == "odd"


def test_a_bar_never_leaves_its_box_and_never_hides_a_failure() -> None:
    laid = lay_out([("done", 9_999), ("failed", 1)], 9_000)
    assert sum(part.width for part in laid) <= 100
    laid = lay_out([("failed", 1), ("done", 99_998)], 100_000)
    assert laid[0].width >= 1.5
    assert lay_out([("done", 1)], 0) == []


def test_a_page_belongs_to_the_entry_above_it() -> None:
    assert is_within("/tasks/12", "/tasks")
    assert not is_within("/tasks", "/")
    assert not is_within("/tasksets", "/tasks")


def test_payloads_are_shown_as_people_read_them() -> None:
    assert format_json({"a": [1, "ü"]}) == '{\n  "a": [\n    1,\n    "ü"\n  ]\n}'


def test_a_report_has_the_structure_that_its_markdown_says_below_the_headings_of_its_page() -> None:
    drawn = draw_markdown("# Mill\n\nIt is **done**:\n- one\n- two\n\n|a|b|\n|:-:|--|\n|1|2|")
    assert "<h3>Mill</h3>" in drawn
    assert "<strong>done</strong>" in drawn
    assert "<li>two</li>" in drawn
    assert "<td>1</td>" in drawn
    assert "style=" not in drawn


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "a <b onclick=x()>b</b>",
        "[click](https://evil.test/?q=secret)",
        "![](https://evil.test/pixel)",
        "<https://evil.test>",
        "[a]: https://evil.test\n\n[a]",
        "[x](javascript:alert(1))",
    ],
)
def test_what_an_agent_repeats_of_a_page_is_read_and_never_followed(text: str) -> None:
    drawn = draw_markdown(text)
    assert not any(sign in drawn for sign in ("<a", "<img", "<script", "<b ", "href="))
    assert drawn.striptags().replace("\n", " ").split() == text.split()


def test_no_character_of_a_report_hides_not_even_behind_its_number() -> None:
    assert "⟨U+202E⟩" in draw_markdown("pay \u202eevil")
    assert "\u202e" not in draw_markdown("pay &#x202e;evil")


def ask(query: str) -> Request:
    return Request({"type": "http", "method": "GET", "path": "/queues", "query_string": query.encode(), "headers": []})


def test_the_order_of_a_table_is_in_its_address_and_other_parameters_stay() -> None:
    sort = read_sort(ask("state=open&sort=-depth&cursor=x"), ["name", "depth"], "name")
    assert (sort.key, sort.falling) == ("depth", True)
    assert sort.link("depth") == "/queues?state=open&sort=depth"
    assert sort.link("name") == "/queues?state=open&sort=name"


def test_an_unknown_column_gives_the_usual_order() -> None:
    assert read_sort(ask("sort=nonsense"), ["name"], "-name").falling


def test_rows_without_a_value_come_last_in_both_directions() -> None:
    columns = {"depth": lambda row: row}
    for query, expected in (("sort=depth", [1, 3, None]), ("sort=-depth", [3, 1, None])):
        assert sort_rows([3, None, 1], read_sort(ask(query), columns, "depth"), columns) == expected
