"""What a plan of the database costs, for tests that no list reads a whole table."""

from typing import Any


def count_rows(plan: dict[str, Any]) -> float:
    """How many rows all nodes of an executed plan looked at."""
    here = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return here + sum(count_rows(child) for child in plan.get("Plans", []))
