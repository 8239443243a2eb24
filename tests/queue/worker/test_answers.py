"""What a handler may return, and the sentence for what it may not."""

from datetime import timedelta
from typing import Any

import pytest
from engine import Bake

from gristmill.errors import Permanent
from gristmill.queue import Done, Envelope, Skip, Snooze
from gristmill.queue.outcome import BARE
from gristmill.queue.worker.answers import read_answer, read_batch


async def write(tx: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (None, BARE),
        (Done(), BARE),
        (0, Done(result=0)),
        ("", Done(result="")),
        ([1], Done(result=[1])),
        (Done(write), Done(write)),
        (Done(then=[Bake(1), Envelope(Bake(2))]), Done(then=[Bake(1), Envelope(Bake(2))])),
        (Done(result=Bake(3)), Done(result={"loaf": 3})),
        (Skip("empty"), Skip("empty")),
        (Snooze(timedelta(0)), Snooze(timedelta(0))),
    ],
)
def test_what_is_returned_is_an_outcome(answer: Any, outcome: Any) -> None:
    assert read_answer(answer) == outcome


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (Snooze(5), "returned Snooze(wait=5, reason=None): its wait must be a timedelta, such as timedelta(seconds=5)"),  # type: ignore[arg-type]
        (Snooze(timedelta(days=-1)), "its wait must be between nothing and ten years"),
        (Snooze(timedelta.max), "its wait must be between nothing and ten years"),
        (
            Done(then=("x",)),
            "returned Done(write=None, then=('x',), result=None, seals=()): its then must be a sequence of letters",
        ),  # type: ignore[arg-type]
        (Done(then="x"), "its then must be a sequence of letters"),  # type: ignore[arg-type]
        (Done(then=Bake(1)), "its then must be a sequence of letters"),  # type: ignore[arg-type]
        (Done(write=3), "its write must be a function of a transaction"),  # type: ignore[arg-type]
        (Skip(None), "returned Skip(reason=None, write=None, then=()): its reason must be text"),  # type: ignore[arg-type]
        (Skip("no", then=[1]), "its then must be a sequence of letters"),  # type: ignore[list-item]
        (Done, "returned the class Done: return an object of it, Done(…)"),
        (object(), "which cannot be kept as JSON"),
        (Done(result="x" * 2_000_000), "is too large"),
    ],
)
def test_what_cannot_be_an_outcome_is_told_with_what_is_expected(answer: Any, sentence: str) -> None:
    with pytest.raises(Permanent) as told:
        read_answer(answer)
    assert sentence in str(told.value)
    assert len(str(told.value)) < 300


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        (None, "returned None: a batch is answered with a list"),
        ("ab", "returned 'ab': a batch is answered with a list"),
        ([1], "answered 1 of 2 letters: a batch is answered in full"),
    ],
)
def test_a_batch_is_answered_with_a_list_in_full(answers: Any, sentence: str) -> None:
    with pytest.raises(Permanent, match=r"the handler of mill\.grind ") as told:
        read_batch(answers, 2, "mill.grind")
    assert sentence in str(told.value)
