"""A text longer than a window is divided into parts, and no word of it is lost."""

from math import isclose, sqrt
from struct import pack, unpack

import pytest

from gristmill.knowledge.windows import LongTextEmbedder, mean_vector, split_windows
from gristmill.models import FakeEmbedder, tokens


@pytest.mark.parametrize(
    ("text", "most", "parts"),
    [
        ("one two three", 3, ["one two three"]),
        ("one two three four", 3, ["one two", "three four"]),
        ("one two three four five six seven", 3, ["one two three", "four five", "six seven"]),
        ("one  two\n\nthree four", 2, ["one  two", "three four"]),
        ("", 3, [""]),
    ],
)
def test_windows_are_few_and_about_as_long_as_each_other(text: str, most: int, parts: list[str]) -> None:
    assert split_windows(text, most) == parts


def test_words_stay_whole_unless_they_are_longer_than_a_window() -> None:
    text = "The embeddedness of quetzalcoatl " * 20
    parts = split_windows(text, 10)
    assert " ".join(parts).split() == text.split()
    assert max(map(tokens.count, parts)) <= 10
    assert "".join(split_windows("x" * 90, 4)) == "x" * 90


def test_a_mean_has_unit_length() -> None:
    one, other = pack("<2f", 1, 0), pack("<2f", 0, 1)
    assert mean_vector([one]) == one
    assert all(isclose(number, sqrt(0.5), abs_tol=1e-6) for number in unpack("<2f", mean_vector([one, other])))
    assert mean_vector([one, pack("<2f", -1, 0)]) == one


async def test_each_text_gets_the_mean_of_its_own_windows() -> None:
    embedder = FakeEmbedder()
    long = " ".join(f"word{n}" for n in range(400))
    found = await LongTextEmbedder(embedder).embed(["short", long, "last"])
    parts = await embedder.embed(split_windows(long, embedder.window))
    assert len(parts) > 1
    assert found == [*await embedder.embed(["short"]), mean_vector(parts), *await embedder.embed(["last"])]
    assert await LongTextEmbedder(embedder).embed([]) == []
