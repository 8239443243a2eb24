"""Reads the words by which unsafe links are known, from words.toml beside this file."""

import tomllib
from functools import cache
from importlib.resources import files


def load_words(name: str) -> frozenset[str]:
    return frozenset(_load_file()[name].split())


@cache
def _load_file() -> dict[str, str]:
    return tomllib.loads(files("gristmill.sources.link").joinpath("words.toml").read_text(encoding="utf-8"))
