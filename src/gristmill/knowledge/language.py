"""Tells in which language a text is written, where that is certain enough."""

from functools import cache
from typing import Any

CERTAIN = 0.8  # below that, a wrong stem would do more harm than no stem
LETTERS = 20  # with fewer, no language is certain
ENOUGH = 200  # characters of a chunk: more cost time and change little
PAGE = 800  # characters of a page


def language_of(text: str, most: int = ENOUGH) -> str | None:
    """The ISO 639-1 code of the language, or None."""
    sample = text[:most]
    if sum(map(str.isalpha, sample)) < LETTERS:
        return None
    language, certainty = _identifier().classify(sample)
    return language if certainty >= CERTAIN else None


def language_of_page(text: str) -> str | None:
    """The language of a page, which also holds for its short lines and tables."""
    return language_of(text, PAGE)


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # noqa: PLC0415 it takes half a second, and few processes need it

    known: Any = LanguageIdentifier  # it has no types
    return known.from_model_file(MODEL_FILE, norm_probs=True)
