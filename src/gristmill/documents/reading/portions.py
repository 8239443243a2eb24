"""What lies in a container comes in portions."""

from collections.abc import Iterator

from gristmill.documents.reading.results import Part

BYTES = 16 << 20  # of parts in one answer
PARTS = 200  # … and how many of them: all become documents in one transaction, which must not take a minute


def portion(parts: Iterator[Part]) -> tuple[Part, ...]:
    """The first of them: at least one, and then as many as fit."""
    taken: list[Part] = []
    room = BYTES
    for part in parts:
        room -= len(part.data)
        if taken and room < 0:
            break
        taken.append(part)
        if len(taken) == PARTS:
            break
    return tuple(taken)
