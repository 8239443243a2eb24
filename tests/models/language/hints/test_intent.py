"""The small model for English requests: its file fits the code, and it learned what the rules do not know."""

import pytest

from gristmill.models.language.hints.intent import WEIGHTS, find_features, is_request, score_request
from gristmill.models.language.hints.weights import BUCKETS


@pytest.mark.parametrize(
    "sentence",
    [
        "Please send me the report.",
        "Can you call me back this afternoon?",
        "Would be ideal if we can get this data on Thursday.",
        "I need the numbers for Q2 before the board meets.",
    ],
)
def test_a_request_is_recognised(sentence: str) -> None:
    assert is_request(sentence)


@pytest.mark.parametrize("sentence", ["The weather was nice.", "We shipped version 2.", "", "12 345", "ž" * 5000])
def test_other_sentences_are_not(sentence: str) -> None:
    assert not is_request(sentence)


def test_features_fit_the_weights_and_are_the_same_for_ever() -> None:
    features = find_features("Could you, please, send 3 copies?")
    assert features == find_features("could you, please, send 7 copies?")  # all numbers are one
    assert all(0 <= one < BUCKETS for one in features)
    assert 0 < score_request("Could you, please, send 3 copies?") < 1


def test_the_weights_are_small() -> None:
    assert WEIGHTS.stat().st_size < 300_000
