"""What a person is explain of a file that ends its readers."""

import pytest

from gristmill.documents import place_error
from gristmill.documents.child_failures import ChildFailure, explain, format_seconds
from gristmill.processes import Crashed, OutOfMemory, TimedOut


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            TimedOut("it was not done after 120 s and its process was killed"),
            "Page 7 took longer than 2 minutes to read: it may be damaged, or documents.timeout is too short for it.",
        ),
        (
            OutOfMemory("it ran out of memory"),
            "Page 7 needs more than 2 GB of memory to read: it may be damaged, or documents.memory is too little "
            "for it.",
        ),
        (
            Crashed("its process was killed by SIGSEGV, perhaps for lack of memory: it may use 2048 MiB"),
            "Page 7 crashed what was to read it (its process was killed by SIGSEGV): it may be damaged, or it needs "
            "more memory than the 2 GB of documents.memory.",
        ),
    ],
)
def test_what_ended_a_reader_is_told_in_words_for_people(error: ChildFailure, sentence: str) -> None:
    new = explain(error, "Page 7", "read", seconds=120.0, memory=2 << 30)
    assert (str(new), type(new), new.__cause__) == (sentence, type(error), error)
    assert place_error(7, str(new)) == sentence, "the page is not named twice"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "1 second"),
        (20, "20 seconds"),
        (0.5, "0.5 seconds"),
        (60, "1 minute"),
        (90, "90 seconds"),
        (120, "2 minutes"),
    ],
)
def test_a_limit_is_told_in_minutes_if_they_are_whole(seconds: float, words: str) -> None:
    assert format_seconds(seconds) == words
