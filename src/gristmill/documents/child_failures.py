"""Explains to the person whose file it was why a reading process died."""

from gristmill.processes import Crashed, OutOfMemory, TimedOut
from gristmill.wording import format_bytes, format_count

ChildFailure = Crashed | OutOfMemory | TimedOut
CHILD_FAILURES = (Crashed, OutOfMemory, TimedOut)


def explain(error: ChildFailure, what: str, doing: str, *, seconds: float, memory: int) -> ChildFailure:
    """The same error with a sentence: `what` could not be done (`doing`) within these limits."""
    match error:
        case TimedOut():
            how = f"took longer than {format_seconds(seconds)} to {doing}"
            perhaps = "documents.timeout is too short for it"
        case OutOfMemory():
            how = f"needs more than {format_bytes(memory)} of memory to {doing}"
            perhaps = "documents.memory is too little for it"
        case Crashed():
            how = f"crashed what was to {doing} it ({_how_it_ended(error)})"
            perhaps = f"it needs more memory than the {format_bytes(memory)} of documents.memory"
    new = type(error)(f"{what} {how}: it may be damaged, or {perhaps}.")
    new.__cause__ = error
    return new


def explain_attachment(*, seconds: float, memory: int) -> str:
    """One sentence for all causes: a reader of PDFs that lacks memory dies without saying so."""
    limits = f"{format_seconds(seconds)} and {format_bytes(memory)} of memory"
    return f"The attachment cannot be unpacked within {limits}: it is too large, or damaged."


def format_seconds(seconds: float) -> str:
    """`2 minutes`, `1 second`, `0.5 seconds`."""
    minutes, rest = divmod(seconds, 60)
    if minutes and not rest:
        return format_count(int(minutes), "minute")
    return "1 second" if seconds == 1 else f"{seconds:g} seconds"


def _how_it_ended(error: Crashed) -> str:
    """How the process ended, without the guess about its memory, which the sentence has already."""
    return str(error).split(", perhaps")[0]
