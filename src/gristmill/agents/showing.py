"""What a person must see before a question is answered, in lines of plain text: pure functions."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import orjson

from gristmill.agents.runs import Question

TOLD_ELSEWHERE = ("reasons", "origins", "tool", "arguments", "prepared")
WITHIN_SENTENCE = ("epic_plan", "generative_design")  # their sentence shows the whole draft


def list_facts(question: Question) -> Iterator[str]:
    """Why it is asked, who said each value that chooses a target, and exactly what would be done. Nothing is cut."""
    details = question.details
    yield from (f"because {reason}" for reason in details.get("reasons", ()))
    for one in details.get("origins", ()):
        yield f"{one['argument']} {one['value']!r}: {one['sentence']}"
    if "arguments" in details:
        yield f"exactly this would be done: {details.get('tool', '')}"
        yield from list_values(details["arguments"])
        prepared: Mapping[str, Any] = details.get("prepared") or {}
        yield from list_values(prepared.get("data") or {})
    if question.kind not in WITHIN_SENTENCE:
        yield from list_values({name: value for name, value in details.items() if name not in TOLD_ELSEWHERE})


def list_values(values: Mapping[str, Any]) -> Iterator[str]:
    """Each value in lines of its own; behind a bar, so that no line of a text looks like one of ours."""
    for name, value in values.items():
        lines = _write(value)
        if len(lines) == 1 and isinstance(value, str | int | float | bool):
            yield f"{name}: {lines[0]}"
        elif lines:
            yield f"{name}:"
            yield from (f"  | {line}" for line in lines)


def _write(value: Any) -> Sequence[str]:
    if value is None or value in ("", [], {}):
        return ()
    if isinstance(value, str):
        return value.splitlines()
    if isinstance(value, list):
        entries = cast(list[Any], value)
        return [" ".join(_write(one)) if isinstance(one, str) else _write_json(one) for one in entries]
    return [str(value)] if isinstance(value, int | float) else _write_json(value).splitlines()


def _write_json(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS, default=str).decode()
