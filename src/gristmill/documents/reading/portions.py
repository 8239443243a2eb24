"""The parts of a container are handed over in portions."""

from collections.abc import Iterator

from gristmill.documents.reading.results import Part

BYTES = 16 << 20  # of parts in one answer
PARTS = 200  # … and how many of them: all become documents in one transaction, which must not take a minute


def portion(parts: Iterator[Part]) -> tuple[Part, ...]:
    """The first of them: at least one, and then as many as fit."""
    taken: list[Part] = []
    space = BYTES
    for part in parts:
        space -= len(part.data)
        if taken and space < 0:
            break
        taken.append(part)
        if len(taken) == PARTS:
            break
    return tuple(taken)
