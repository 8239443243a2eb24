"""Whose work goes first: people before batches, and of everybody's work the first of it before the rest."""

from dataclasses import dataclass

FEW = 20  # documents that come together before it is a batch
SCAN = 100  # how many pages that carry their text are read in the time that one picture of a page takes
STEPS = (10, 100, 1_000)  # units of work: a letter, a report, a book …
MUCH = STEPS[-1]  # … and what is a batch by itself


@dataclass(frozen=True)
class Urgency:
    """Where work stands in line."""

    foreground: bool = False  # a person waits for it
    priority: int = 0


ORDINARY = Urgency()
BATCH = Urgency(priority=-10)


def of_arrival(place: int, given: Urgency = ORDINARY) -> Urgency:
    """Of the document that comes with so many before it: whoever brings many does not look at each."""
    return given if place < FEW else BATCH


def of_unit(given: Urgency, work: int) -> Urgency:
    """Of a page or chunk of a document: `work` is how much of the document is done when this is.

    So a letter does not wait for a book, nor for a scan that takes as long; and the rest of much is a batch, whoever
    waits for it.
    """
    base = BATCH if work > MUCH else given
    return Urgency(base.foreground, base.priority - sum(work > step for step in STEPS))
