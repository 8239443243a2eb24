"""Says in one sentence what is wrong with a setting, where it was set, and what is allowed."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, cast, get_origin

from pydantic import BaseModel
from pydantic_core import ErrorDetails

FILE = "gristmill.toml"
PREFIX = "GRISTMILL_"
MORE = "See docs/settings.md"
LONGEST = 60  # characters of a value that are shown


def names_of(model: type[BaseModel]) -> dict[str, tuple[str, ...]]:
    """Every variable of the environment that sets something, with the path of what it sets."""
    names: dict[str, tuple[str, ...]] = {}
    for name, field in model.model_fields.items():
        names[f"{PREFIX}{name.upper()}"] = (name,)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            within = field.annotation.model_fields
            names |= {f"{PREFIX}{name.upper()}_{part.upper()}": (name, part) for part in within}
    return names


def broken_json(model: type[BaseModel], environment: Mapping[str, str]) -> str | None:
    """The first variable that should hold a table or a list, as JSON, and does not."""
    for name, path in names_of(model).items():
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


def strangers(given: Iterable[str], known: Iterable[str]) -> list[str]:
    """A sentence for each variable that looks like ours and sets nothing."""
    names = list(known)
    return [
        f"{name} is no setting and has no effect{_near(name.upper(), names)}. {MORE}."
        for name in sorted(given)
        if name.upper().startswith(PREFIX) and name.upper() not in names
    ]


def complaint(error: ErrorDetails, *, environment: Mapping[str, str], file: Mapping[str, Any], known: Any) -> str:
    """The sentence about one error; `known` is what `names_of` found."""
    path = error["loc"]
    why = reason(error, known)
    where = _where(path, environment, file, known)
    if len(path) == 1 and (blamed := _blamed(path, why, environment, file, known)):
        where = blamed
    return f"{where} is wrong: {why}. {MORE}."


def _where(path: Sequence[int | str], environment: Mapping[str, str], file: Mapping[str, Any], known: Any) -> str:
    """The variable, or the key in the file, that a person has to change."""
    given = {name.upper() for name in environment}
    for name, sets in known.items():
        if name in given and sets == tuple(path[: len(sets)]) and (len(sets) > 1 or len(path) == 1):
            rest = path[len(sets) :]
            return f"The setting {name}{f' ({_dotted(rest)})' if rest else ''}"
    if path and path[0] in file:
        return f"{_dotted(path)} in {FILE}"
    return f"The setting {PREFIX}{'_'.join(str(part) for part in path).upper()}"


def _blamed(
    path: Sequence[Any], reason: str, environment: Mapping[str, str], file: Mapping[str, Any], known: Any
) -> str:
    """Where settings do not go together: those of them that somebody set."""
    room, words = path[0], set(re.findall(r"\w+", reason))
    parts = [sets for sets in known.values() if len(sets) == 2 and sets[0] == room and sets[1] in words]
    given = {name.upper() for name in environment}
    inside = cast(dict[str, Any], file[room]) if isinstance(file.get(room), dict) else dict[str, Any]()
    variables = [name for name, sets in known.items() if name in given and sets in parts]
    keys = [part for _, part in parts if part in inside and _variable(room, part) not in variables]
    named = [*variables, *(f"{room}.{part} in {FILE}" for part in keys)]
    return f"The setting {' with '.join(named)}" if named else ""


def _variable(room: str, part: str) -> str:
    return f"{PREFIX}{room}_{part}".upper()


def reason(error: ErrorDetails, known: Mapping[str, tuple[str, ...]] | None = None) -> str:
    """What is allowed, in words of ours; our own validators speak for themselves."""
    kind, limits = error["type"], error.get("ctx", {})
    if kind == "value_error":
        return error["msg"].removeprefix("Value error, ")
    if kind == "extra_forbidden":
        names = map(".".join, (known or {}).values())
        near = _near(".".join(map(str, error["loc"])), names) if len(error["loc"]) < 3 else ""
        return f"there is no such setting{near}"
    if kind == "missing":
        return "it is missing"
    return f"{_shown(error)}, {_wanted(kind, limits)}"


def _wanted(kind: str, limits: Mapping[str, Any]) -> str:
    match kind:
        case "greater_than_equal":
            return f"and must be at least {limits['ge']}"
        case "less_than_equal":
            return f"and must be at most {limits['le']}"
        case "literal_error":
            allowed = str(limits["expected"]).replace("'", "")
            return f"and must be {allowed}"
        case "string_pattern_mismatch":
            return f"and must be {_alternatives(limits['pattern'])}"
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


def _alternatives(pattern: str) -> str:
    """`^(a|b|c)$` as people say it."""
    words = pattern.removeprefix("^(").removesuffix(")$").split("|")
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else pattern


def _shown(error: ErrorDetails) -> str:
    """The value, unless it may be a secret."""
    if any("key" in str(part) for part in error["loc"]):
        return "it is set to something"
    text = str(error["input"])
    return f"it is “{text if len(text) <= LONGEST else text[: LONGEST - 1] + '…'}”"


def _dotted(path: Iterable[int | str]) -> str:
    """`gpu_backends[1].url`: entries are counted from one, as people do."""
    text = ""
    for part in path:
        text += f"[{part + 1}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _near(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), n=1, cutoff=0.85)
    return f"; perhaps {near[0]} is meant" if near else ""
