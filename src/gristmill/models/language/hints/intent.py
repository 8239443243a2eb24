"""Scores an English sentence as a request with a small model: hashed words, one weight each.

The weights are data (`intent.bin`), trained by `bench/train_intent.py`. Rules find what is plainly asked; the model
adds what experience says: `We would probably need the budget on Thursday`.
"""

import re
from itertools import pairwise
from pathlib import Path

from gristmill.models.language.hints.asking import drop_idle_phrases, is_asking
from gristmill.models.language.hints.weights import hash_feature, load_weights, make_probability
from gristmill.models.language.hints.words import fold

WEIGHTS = Path(__file__).with_name("intent.bin")
LONGEST = 60  # words of a sentence that are looked at
TOKEN = re.compile(r"\$?[a-z]+(?:'[a-z]+)?|\d+|[?!:;@$]|\.{3}")
PIECE = re.compile(r"[\w']+|[^\w\s]")
YOU = frozenset({"you", "your", "u", "ur", "yours"})
I_OR_WE = frozenset({"i", "we", "me", "us", "my", "our", "i'm", "i'd", "i'll", "we'd", "we're"})


def is_request(sentence: str) -> bool:
    """Whether the model takes an English sentence for a request."""
    return score_request(sentence) >= 0.5


def score_request(sentence: str) -> float:
    """How surely an English sentence asks for something, from 0 to 1; from 0.5 on it does."""
    return make_probability(load_weights(WEIGHTS).weigh(find_features(sentence)))


def find_features(sentence: str) -> list[int]:
    """The features of a sentence, each as the number of its bucket and only once."""
    low = fold(sentence)
    tokens = ["0" if one.isdecimal() else one for one in TOKEN.findall(low)[:LONGEST]]
    padded = ["^", *tokens, "$"]
    found = {hash_feature(f"1 {one}") for one in tokens}
    found.update(hash_feature(f"2 {one} {other}") for one, other in pairwise(padded))
    found.update(hash_feature(f"3 {' '.join(padded[n : n + 3])}") for n in range(len(padded) - 2))
    found.update(hash_feature(f"= {one}") for one in tokens[:4])
    found.update(hash_feature(f"{n} {one}") for n, one in enumerate(tokens[:3]))
    found.update(hash_feature(f"^ {' '.join(tokens[:n])}") for n in (2, 3))
    for rule in _apply_rules(low, tokens):
        found.update((hash_feature(f"r {rule}"), hash_feature(f"R {rule}")))  # twice: a rule says more than a word
    return sorted(found)


def _apply_rules(low: str, tokens: list[str]) -> list[str]:
    """What the rules say of the sentence."""
    spaced = " ".join(PIECE.findall(low))
    meant = drop_idle_phrases(spaced, "en")
    said = [f"length {min(len(tokens) // 4, 8)}", f"last {tokens[-1] if tokens else ''}"]
    said += ["asking"] if is_asking(meant, "en") else []
    said += ["idle"] if meant != spaced.strip(" .,;!") else []
    said += ["question"] if low.rstrip(" \"')").endswith("?") else []
    said += ["link"] if "$link" in low or "http" in low or "www." in low else []
    said += [] if YOU.isdisjoint(tokens) else ["you"]
    said += [] if I_OR_WE.isdisjoint(tokens) else ["i"]
    return said
