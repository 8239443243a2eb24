"""Whose work goes first: people before batches, and the first pages of every document before the rest."""

from dataclasses import dataclass

FEW = 20  # documents that come together before it is a batch
SCAN = 100  # how many pages that carry their text are read in the time that one picture of a page takes
STEPS = (10, 100, 1_000)  # units of work: a letter, a report, a book …
MUCH = STEPS[-1]  # … and a document so long that it is a batch by itself


@dataclass(frozen=True)
class Urgency:
    """Where work stands in line."""

    foreground: bool = False  # a person waits for it
    priority: int = 0


ORDINARY = Urgency()
BATCH = Urgency(priority=-10)


def of_arrival(place: int, given: Urgency = ORDINARY) -> Urgency:
    """The urgency of a document that comes with so many before it: nobody waits for each of many."""
    return given if place < FEW else BATCH


def of_unit(given: Urgency, work: int) -> Urgency:
    """The urgency of a page or chunk: `work` is how much of its document is done when this unit is.

    So a letter does not wait for a book, nor for a scan that takes as long. The later part of a long document is a
    batch, whoever waits for it.
    """
    base = BATCH if work > MUCH else given
    return Urgency(base.foreground, base.priority - sum(work > step for step in STEPS))
