"""Every error we raise on purpose, sorted by what the caller should do.

GristmillError
├── Transient        the world is busy or broken: try again later
│   ├── Overloaded   … and it said when (retry_after)
│   │   └── NoTurn   … it is one of our own limiters: to wait for it is no failure
│   ├── OutOfCredit  the account at a provider is empty: wait until somebody fills it, and count no attempt
│   ├── Unsent       the other side was not reached: nothing was begun there
│   ├── BadAnswer    a model gave an answer that cannot be used: ask again
│   └── Unreachable  the database does not answer
│       ├── Disconnected  it hung up in the middle: ask again, on another connection
│       └── NoSpace  it answers, but its disk is full: nothing can be written for now
├── Permanent        the input is bad: trying again changes nothing
│   └── Unsafe       an address of the web leads to a place that we never call
├── LeaseLost        the task is not ours any more: write nothing
├── Cancelled        somebody asked us to stop this task: stop
└── Refused          a person asked for something we will not do: one sentence, non-zero exit
    └── Unknown      … because there is no such thing, or none that this person may see
"""

from datetime import timedelta


class GristmillError(Exception):
    """The base of all our errors; the text of each is one sentence for a person."""


class Transient(GristmillError):
    """The world is busy or broken; the same call may succeed later."""


class Overloaded(Transient):
    """The other side asked us to come back after `retry_after`."""

    def __init__(self, message: str, retry_after: timedelta) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NoTurn(Overloaded):
    """A named limiter has no free turn soon; the task comes back when there is one, and no attempt is counted."""


class OutOfCredit(Transient):
    """A provider does nothing more until its account is filled; that is no fault of the task."""


class Unsent(Transient):
    """The other side was not reached, or had not been told what to do: nothing was begun there."""


class BadAnswer(Transient):
    """A model's answer is empty, cut off or in the wrong form; it must never pass for a result."""


class Unreachable(Transient):
    """The database does not answer."""


class Disconnected(Unreachable):
    """The database hung up in the middle: what only reads may ask again at once."""


class NoSpace(Unreachable):
    """The disk of the database is full; it goes on when somebody frees some space."""


class Permanent(GristmillError):
    """The input cannot be processed, however often it is tried."""


class Unsafe(Permanent):
    """An address of the web is malformed, or leads into a network of our own: it is not called."""


class LeaseLost(GristmillError):
    """The task was taken back from this worker; its result must not be written."""


class Cancelled(GristmillError):
    """The task was cancelled while it ran."""


class Refused(GristmillError):
    """A request that is refused: the text says what is wrong and what to do."""


class Unknown(Refused):
    """There is no such thing; a thing of another client is answered with the same sentence.

    `listed_by` is the command that lists the things that there are: told in a terminal, and to no program over HTTP.
    """

    def __init__(self, sentence: str, *, listed_by: str = "") -> None:
        super().__init__(sentence)
        self.listed_by = listed_by
