"""What ended a reader, in words for the person whose file it was."""

from gristmill.documents.reading import refusals
from gristmill.processes import Crashed, OutOfMemory, TimedOut
from gristmill.wording import format_count

Mishap = Crashed | OutOfMemory | TimedOut
MISHAPS = (Crashed, OutOfMemory, TimedOut)


def told(error: Mishap, what: str, doing: str, *, seconds: float, memory: int) -> Mishap:
    """The same error, as one says it of `what` one was `doing` within these limits."""
    match error:
        case TimedOut():
            how = f"took longer than {lasting(seconds)} to {doing}"
            perhaps = "documents.timeout is too short for it"
        case OutOfMemory():
            how = f"needs more than {refusals.amount(memory)} of memory to {doing}"
            perhaps = "documents.memory is too little for it"
        case Crashed():
            how = f"crashed what was to {doing} it ({_death(error)})"
            perhaps = f"it needs more memory than the {refusals.amount(memory)} of documents.memory"
    new = type(error)(f"{what} {how}: it may be damaged, or {perhaps}.")
    new.__cause__ = error
    return new


def told_of_attachment(*, seconds: float, memory: int) -> str:
    """Whatever it was: a reader of PDFs that lacks memory is not asked, but dies."""
    limits = f"{lasting(seconds)} and {refusals.amount(memory)} of memory"
    return f"The attachment cannot be unpacked within {limits}: it is too large, or damaged."


def lasting(seconds: float) -> str:
    """In minutes, if they are whole."""
    minutes, rest = divmod(seconds, 60)
    if minutes and not rest:
        return format_count(int(minutes), "minute")
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"


def _death(error: Crashed) -> str:
    """Without what it perhaps was for lack of, which is said anyway."""
    return str(error).split(", perhaps")[0]
