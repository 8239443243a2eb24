"""How large an input may be before it is refused."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Generous for what people write, small enough that no file can fill a disk or a day."""

    bytes: int = 256 << 20
    pages: int = 5_000
    pixels: int = 100_000_000  # of one picture, or of one page of a scan
    unpacked: int = 1 << 30  # bytes in a zip, all entries together
    ratio: int = 200  # unpacked bytes for each packed one
    parts: int = 1_000  # attachments of a mail
    messages: int = 1_000_000  # of a mailbox
    depth: int = 20  # parts within parts of a mail
