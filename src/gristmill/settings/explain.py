"""Explains in one sentence what is wrong with a setting, where it was set, and what is allowed."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

FILE = "gristmill.toml"
PREFIX = "GRISTMILL_"
MORE = "See docs/settings.md"
LONGEST = 60  # characters of a value that are shown

Variables = Mapping[str, tuple[str, ...]]


def map_variables(model: type[BaseModel]) -> Variables:
    """Every variable that sets something → the path of its setting: `GRISTMILL_QUEUE_LEASE` → `("queue", "lease")`."""
    names: dict[str, tuple[str, ...]] = {}
    for name, field in model.model_fields.items():
        names[f"{PREFIX}{name.upper()}"] = (name,)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            within = field.annotation.model_fields
            names |= {f"{PREFIX}{name.upper()}_{part.upper()}": (name, part) for part in within}
    return names


def find_broken_json(model: type[BaseModel], environment: Mapping[str, str]) -> str | None:
    """The first variable that must hold a table or a list as JSON, and does not."""
    for name, path in map_variables(model).items():
        text = environment.get(name)
        if text is not None and _is_structured(model, path) and not _is_json(text):
            return name
    return None


def _is_structured(model: type[BaseModel], path: Sequence[str]) -> bool:
    kind: Any = model.model_fields[path[0]].annotation
    if len(path) > 1:
        kind = cast(type[BaseModel], kind).model_fields[path[1]].annotation
    return get_origin(kind) in (tuple, dict) or (isinstance(kind, type) and issubclass(kind, BaseModel))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def explain_unknown_variables(names: Iterable[str], variables: Variables) -> list[str]:
    """One sentence for each name that begins as ours do and sets nothing."""
    return [
        f"{name} is no setting and has no effect{_suggest_name(name.upper(), variables)}. {MORE}."
        for name in sorted(names)
        if name.upper().startswith(PREFIX) and name.upper() not in variables
    ]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where settings come from: the names in the environment, the content of the file, and the variables we know."""

    names: frozenset[str]
    file: Mapping[str, Any]
    variables: Variables


def explain_error(error: ErrorDetails, sources: Sources) -> str:
    """The sentence about one error that pydantic found."""
    path = error["loc"]
    why = explain_reason(error, sources.variables)
    where = (_name_conflicting_settings(path[0], why, sources) if len(path) == 1 else "") or _name_place(path, sources)
    return f"{where} is wrong: {why}. {MORE}."


def _name_place(path: Sequence[int | str], sources: Sources) -> str:
    """Name the variable, or the key in the file, that a person has to change."""
    for name, sets in sources.variables.items():
        if name in sources.names and sets == tuple(path[: len(sets)]) and (len(sets) > 1 or len(path) == 1):
            rest = path[len(sets) :]
            return f"The setting {name}{f' ({_join_path(rest)})' if rest else ''}"
    if path and path[0] in sources.file:
        return f"{_join_path(path)} in {FILE}"
    return f"The setting {PREFIX}{'_'.join(str(part) for part in path).upper()}"


def _name_conflicting_settings(room: int | str, why: str, sources: Sources) -> str:
    """Name the settings of a room that contradict each other: of these, only the ones that somebody has set."""
    words = set(re.findall(r"\w+", why))
    parts = [sets for sets in sources.variables.values() if len(sets) == 2 and sets[0] == room and sets[1] in words]
    table = sources.file.get(str(room))
    keys = cast(dict[str, Any], table) if isinstance(table, dict) else dict[str, Any]()
    variables = [name for name, sets in sources.variables.items() if name in sources.names and sets in parts]
    in_file = [part for _, part in parts if part in keys and _make_variable_name(room, part) not in variables]
    named = [*variables, *(f"{room}.{part} in {FILE}" for part in in_file)]
    return f"The setting {' with '.join(named)}" if named else ""


def _make_variable_name(room: int | str, part: str) -> str:
    return f"{PREFIX}{room}_{part}".upper()


def explain_reason(error: ErrorDetails, variables: Variables | None = None) -> str:
    """What is allowed, in our own words; the sentences of our own validators stay as they are."""
    kind, limits = error["type"], error.get("ctx", {})
    if kind == "value_error":
        return error["msg"].removeprefix("Value error, ")
    if kind == "extra_forbidden":
        names = map(".".join, (variables or {}).values())
        near = _suggest_name(".".join(map(str, error["loc"])), names) if len(error["loc"]) < 3 else ""
        return f"there is no such setting{near}"
    if kind == "missing":
        return "it is missing"
    if kind.startswith("union_tag"):  # the rest of the table may hold a secret
        allowed = str(limits.get("expected_tags", "one of those in the documentation")).replace("'", "")
        return f"its {str(limits['discriminator']).strip(chr(39))} is “{limits.get('tag', '')}”, and must be {allowed}"
    return f"{_quote_value(error)}, {_describe_allowed(kind, limits)}"


def _describe_allowed(kind: str, limits: Mapping[str, Any]) -> str:
    match kind:
        case "greater_than_equal":
            return f"and must be at least {limits['ge']}"
        case "less_than_equal":
            return f"and must be at most {limits['le']}"
        case "literal_error":
            allowed = str(limits["expected"]).replace("'", "")
            return f"and must be {allowed}"
        case "string_pattern_mismatch":
            return f"and must be {_list_alternatives(limits['pattern'])}"
        case "string_too_short":
            return "and must have at least 1 character" if limits["min_length"] == 1 else _count_characters(limits)
        case "string_too_long":
            return f"and may have at most {limits['max_length']} characters"
        case _ if kind.startswith("int"):
            return "which is not a whole number"
        case _ if kind.startswith("bool"):
            return "which is neither true nor false"
        case _ if kind.startswith("time_delta"):
            return "which is not a duration; write for example 90s, 5min, 2h or 7d"
        case _ if kind.startswith("string"):
            return "which is not text"
        case _ if kind.startswith(("model", "dict")):
            return "which is not a table"
        case _ if kind.startswith(("tuple", "list")):
            return "which is not a list"
        case _ if kind.startswith("ip"):
            return "which is not a network such as 10.0.0.0/8"
        case _:
            return "which cannot be used here"


def _count_characters(limits: Mapping[str, Any]) -> str:
    return f"and must have at least {limits['min_length']} characters"


def _list_alternatives(pattern: str) -> str:
    """Turn `^(a|b|c)$` into `a, b or c`."""
    words = pattern.removeprefix("^(").removesuffix(")$").split("|")
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else pattern


def _quote_value(error: ErrorDetails) -> str:
    """Quote the value, unless it may be a secret."""
    if any("key" in str(part) for part in error["loc"]):
        return "it is set to something"
    text = str(error["input"])
    return f"it is “{text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}”"


def _join_path(path: Iterable[int | str]) -> str:
    """`gpu_backends[1].url`: entries are counted from one, as people count."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _suggest_name(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), n=1, cutoff=0.85)
    return f"; perhaps {near[0]} is meant" if near else ""
