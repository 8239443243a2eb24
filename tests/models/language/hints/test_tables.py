"""The written tables: every date is found, no other is, and every item gets the hints that lead to its decision."""

import sys
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from gristmill.models import Hints, TextFacts, make_hints

sys.path.append(str(Path(__file__).parents[4]))

from bench.reading_texts import compare_dates, find_false_dates, load_rows, make_about, measure_dates, read_item

LEAD = timedelta(days=2)
ITEMS = [*load_rows("items.jsonl"), *load_rows("more_items.jsonl")]


def test_the_tables_are_as_long_as_the_page_says() -> None:
    assert [len(load_rows(name)) for name in ("dates.jsonl", "no_dates.jsonl", "items.jsonl")] == [300, 500, 200]
    assert len({row["text"] for row in load_rows("dates.jsonl")}) == 300
    assert len({row["text"] for row in load_rows("no_dates.jsonl")}) == 500


def test_dates_are_found_and_deadlines_told_from_them() -> None:
    wrong = [(row["text"], expected, found) for row, expected, found in compare_dates() if expected != found]
    assert wrong == []
    assert measure_dates()["dates_f1"] >= 0.95


def test_no_date_is_found_where_none_is() -> None:
    assert find_false_dates() == []


def test_what_was_written_later_is_read_as_well() -> None:
    assert measure_dates("fresh_dates.jsonl")["dates_f1"] >= 0.95
    assert find_false_dates("fresh_no_dates.jsonl") == []


def test_of_the_items_that_were_written_later_none_is_lost() -> None:
    rows = load_rows("fresh_items.jsonl")
    routes = [(row, route(make_hints(read_item(row), make_about(row)), row)) for row in rows]
    assert [row["id"] for row, to in routes if to == "info_only" != row["expected"]["to"]] == []
    assert sum(to == row["expected"]["to"] for row, to in routes) >= 0.95 * len(rows)


def test_of_the_payments_that_were_written_later_all_are_seen() -> None:
    rows = [row for row in load_rows("fresh_items.jsonl") if row["expected"]["payment"]]
    assert [row["id"] for row in rows if read_item(row).payment is None] == []


def route(hints: Hints, row: dict[str, Any]) -> str:
    """The tree of the requirement."""
    deadline = hints.suggested_deadline.value
    if not hints.has_actionable_content.value:
        return "info_only"
    if hints.is_assigned_to_me.value or deadline is None:
        return "now"
    return "later" if (deadline - LEAD).date() > make_about(row).written_at.date() else "now"


def describe_payment(facts: TextFacts) -> dict[str, str | None] | None:
    payment = facts.payment
    if payment is None:
        return None
    amount = payment.amount
    return {
        "amount": f"{amount.value:.2f}" if amount else None,
        "currency": amount.currency if amount else None,
        "due": f"{payment.due}" if payment.due else None,
    }


@pytest.mark.parametrize("row", ITEMS, ids=[row["id"] for row in ITEMS])
def test_an_item_gets_the_hints_of_its_decision(row: dict[str, Any]) -> None:
    facts = read_item(row)
    hints = make_hints(facts, make_about(row))
    expected = row["expected"]
    assert route(hints, row) == expected["to"]
    assert describe_payment(facts) == expected["payment"]
    if expected["to"] != "info_only":
        deadline = hints.suggested_deadline.value
        assert (deadline and deadline.date()) == (
            date.fromisoformat(expected["deadline"]) if expected["deadline"] else None
        )
    if expected["to"] != "info_only" and row["type"] != "user_input" and not row["fields"]:
        assert hints.has_actionable_content.evidence
