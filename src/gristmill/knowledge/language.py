"""Tells in which language a text is written, where that is certain enough."""

from functools import cache
from typing import Any

CERTAIN = 0.8  # below that, a wrong stem would do more harm than none
LETTERS = 20  # of fewer nothing is certain
ENOUGH = 200  # characters: more of them cost time and change little
PAGE = 800


def language_of(text: str, most: int = ENOUGH) -> str | None:
    """Its ISO 639-1 code, or None."""
    sample = text[:most]
    if sum(map(str.isalpha, sample)) < LETTERS:
        return None
    language, certainty = _identifier().classify(sample)
    return language if certainty >= CERTAIN else None


def language_of_page(text: str) -> str | None:
    """What speaks for its short lines and tables, too."""
    return language_of(text, PAGE)


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 half a second, and not every process asks

    known: Any = LanguageIdentifier  # it has no types
    return known.from_model_file(MODEL_FILE, norm_probs=True)
