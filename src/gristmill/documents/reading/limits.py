"""How large an input may be before it is refused."""

from dataclasses import dataclass

from gristmill.errors import Permanent
from gristmill.wording import format_bytes

HARMLESS = 64 << 20  # bytes: whatever they were packed into


@dataclass(frozen=True)
class Limits:
    """Generous for what people write, small enough that no file can fill a disk or a day."""

    bytes: int = 256 << 20
    pages: int = 5_000
    pixels: int = 100_000_000  # of one picture, or of one page of a scan
    unpacked: int = 1 << 30  # bytes of all entries of a zip, or of all attachments of a PDF, together
    ratio: int = 200  # unpacked bytes for each packed one
    parts: int = 100_000  # of a container: attachments of a mail or a PDF, messages of a mailbox
    depth: int = 20  # parts within parts of a mail


def check_unpacked(total: int, packed: int, limits: Limits, what: str = "the file") -> None:
    """Raises when so many bytes came out of so few that somebody means harm, or more than there is room for."""
    if total > limits.unpacked:
        most = format_bytes(limits.unpacked)
        raise Permanent(f"Unpacked, {what} is larger than the {most} that are read (setting documents.max_unpacked).")
    if total > limits.ratio * packed and total > HARMLESS:
        named = what[0].upper() + what[1:]
        raise Permanent(f"{named} unpacks to more than {limits.ratio} times its size: it may be a zip bomb.")
