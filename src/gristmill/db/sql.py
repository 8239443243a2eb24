"""Reads named queries from the .sql file beside the code that runs them, and writes arrays for them."""

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import LiteralString, cast

Query = LiteralString

NAME = re.compile(r"^-- name: ([a-z_]+)\n", re.MULTILINE)


def queries(package: str, file: str) -> Mapping[str, Query]:
    """`-- name: claim` starts the query called `claim`; it ends where the next one starts."""
    parts = NAME.split(files(package).joinpath(file).read_text(encoding="utf-8"))
    names, texts = parts[1::2], parts[2::2]
    if len(set(names)) < len(names):
        raise ValueError(f"{file} names a query twice")
    # the file is part of the program, so its text is as literal as one in the code
    return {name: cast(LiteralString, text.strip().rstrip(";")) for name, text in zip(names, texts, strict=True)}


def with_numbers(query: Query, **numbers: int) -> Query:
    """Writes numbers into a query, where PostgreSQL takes no parameter or would choose another plan for one.

    An example is `{model}`, the condition of a partial index.
    """
    text: str = query
    for name, number in numbers.items():
        text = text.replace(f"{{{name}}}", str(int(number)))
    return cast(LiteralString, text)


def array(numbers: Iterable[int]) -> str:
    """An array as PostgreSQL reads it from text: five times faster than a list as parameter, and some have hundreds."""
    return "{" + ",".join(map(str, numbers)) + "}"


def text_array(texts: Iterable[str | None]) -> str:
    """The same for texts; a list as parameter takes ten times as long, a fifth of all that a worker did for a mail."""
    wanted = list(texts)
    if wanted and None not in wanted:
        joined = '","'.join(cast(list[str], wanted))
        if joined.count('"') == 2 * len(wanted) - 2 and "\\" not in joined:  # nearly always: nothing is to be escaped
            return '{"' + joined + '"}'
    escaped = ["NULL" if one is None else '"' + one.replace("\\", "\\\\").replace('"', '\\"') + '"' for one in wanted]
    return "{" + ",".join(escaped) + "}"


def bytes_array(values: Iterable[bytes | None]) -> str:
    """The same for short bytes: digests and keys."""
    return "{" + ",".join(["NULL" if one is None else f'"\\\\x{one.hex()}"' for one in values]) + "}"


def escape_for_copy(text: str) -> str:
    """A text as COPY's text format writes it."""
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r")
