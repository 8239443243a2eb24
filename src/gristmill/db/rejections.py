"""What the database rejects because of the values that it was given, in one sentence for the person who gave them."""

from psycopg import DataError
from psycopg.errors import InsufficientPrivilege, ProgramLimitExceeded

from gristmill.errors import GristmillError, Permanent, Refused


def explain_rejection(error: Exception) -> GristmillError | None:
    """One of our errors for bad input that only the database found out; None for anything else."""
    match error:
        case InsufficientPrivilege():
            return Refused("This belongs to somebody else: it can be seen from here, but not changed.")
        case DataError() | ProgramLimitExceeded():
            return Permanent("A value cannot be kept: it holds a zero byte, or is too large or too far away.")
        case _:
            return None
