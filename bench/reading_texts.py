"""How well texts are read by rules: dates and sentences without a date, against the tables of `tests/data/qualifier`.

    .venv/bin/python bench/reading_texts.py

prints dates_f1, deadlines_right, false_dates, intent_f1 and how many items a minute one core reads.
`bench/qualifier.py` calls the same functions.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[0] = str(ROOT)  # not this folder: its queue.py would stand before Python's own

import json  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from datetime import UTC, date, datetime  # noqa: E402
from time import process_time  # noqa: E402
from typing import Any  # noqa: E402

from bench.train_intent import measure_intent  # noqa: E402

from gristmill.models import About, ClientIdentity, TextFacts, make_hints, read_facts  # noqa: E402

DATA = ROOT / "tests" / "data" / "qualifier"
ME = ClientIdentity(("Anna Novak", "Anna"), ("anna.novak@mill.example",))  # of all items of the data set
ROUNDS = 5


def load_rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def make_about(row: dict[str, Any]) -> About:
    """What is known of an item of `items.jsonl` beside its words."""
    return About(
        datetime.fromisoformat(row["written"]),
        type=row["type"],
        subject=row["subject"],
        sender=row["sender"],
        headers=row["headers"],
        fields=row["fields"],
        me=ME,
    )


def read_item(row: dict[str, Any]) -> TextFacts:
    new = None if row["new"] is None else [(start, stop) for start, stop in row["new"]]
    return read_facts(row["text"], make_about(row), new=new)


Found = tuple[date, str | None]


def compare_dates(name: str = "dates.jsonl") -> Iterator[tuple[dict[str, Any], dict[Found, bool], dict[Found, bool]]]:
    """Each row of the table with the dates that it has and the dates that were found, and which are deadlines."""
    for row in load_rows(name):
        facts = read_facts(row["text"], About(datetime.fromisoformat(row["written"]), type="email"))
        expected = {(date.fromisoformat(one["day"]), one["clock"]): one["deadline"] for one in row["dates"]}
        found: dict[Found, bool] = {}
        for one in facts.dates:
            key = (one.day, f"{one.clock:%H:%M}" if one.clock else None)
            found[key] = found.get(key, False) or one.is_deadline
        yield row, expected, found


def measure_dates(name: str = "dates.jsonl") -> dict[str, float]:
    """F1 over all dates (day and time must be right), and how many of these are rightly called deadlines or not."""
    hits = wanted = given = deadlines = 0
    for _, expected, found in compare_dates(name):
        right = expected.keys() & found.keys()
        hits, wanted, given = hits + len(right), wanted + len(expected), given + len(found)
        deadlines += sum(expected[one] == found[one] for one in right)
    return {"dates_f1": round(2 * hits / (wanted + given), 4), "deadlines_right": round(deadlines / max(1, hits), 4)}


def find_false_dates(name: str = "no_dates.jsonl") -> list[tuple[str, str]]:
    """Sentences without a date in which one was found, with the words that were taken for it."""
    written = About(datetime(2026, 6, 1, 9, tzinfo=UTC), type="email")
    rows = [row["text"] for row in load_rows(name)]
    return [(text, one.evidence.words) for text in rows for one in read_facts(text, written).dates]


def measure_speed() -> int:
    """Items a minute through the rules on one core: facts and hints."""
    rows = load_rows("items.jsonl")
    began = process_time()
    for _ in range(ROUNDS):
        for row in rows:
            make_hints(read_item(row), make_about(row))
    return round(60 * ROUNDS * len(rows) / (process_time() - began))


def main() -> None:
    print(
        json.dumps(
            {
                **measure_dates(),
                "false_dates": len(find_false_dates()),
                "intent_f1": measure_intent(),
                "items_per_min": measure_speed(),
            }
        )
    )


if __name__ == "__main__":
    main()
