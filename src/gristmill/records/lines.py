"""Reads the lines of a text file from any place on, and knows the byte at which the next line begins."""

from codecs import getincrementaldecoder
from collections.abc import Iterator
from io import StringIO
from typing import BinaryIO

from gristmill.errors import Permanent

BLOCK = 1 << 20  # bytes read at a time
LONGEST = 32 << 20  # characters of one line

# Bytes that are no text become half a character, which encodes to the same bytes: the place of every line stays exact.
ERRORS = {"utf-16-le": "surrogatepass", "utf-16-be": "surrogatepass"}


class Lines:
    """Iterates over lines with their ends, whichever of the three kinds these are."""

    def __init__(self, file: BinaryIO, encoding: str, offset: int) -> None:
        self._file = file
        self._encoding = encoding
        self._errors = ERRORS.get(encoding, "surrogateescape")
        self._decoder = getincrementaldecoder(encoding)(self._errors)
        self._text = StringIO("", newline="")
        self._begins_at = offset  # the byte at which the text in memory begins
        self._rest = ""  # the beginning of a line whose end is not read yet
        file.seek(offset)

    def __iter__(self) -> Iterator[str]:
        while True:
            yield from self._text
            if not self._load():
                return

    @property
    def place(self) -> int:
        """The byte at which the next line begins."""
        return self._begins_at + self.measure(self._text.getvalue()[: self._text.tell()])

    def close(self) -> None:
        self._file.close()

    def measure(self, text: str) -> int:
        """How many bytes of the file this text takes."""
        return len(text.encode(self._encoding, self._errors))

    def _load(self) -> bool:
        """Bring as many whole lines into memory as the next blocks have; whether there are any."""
        self._begins_at = self.place
        text = self._rest
        while True:
            block = self._file.read(BLOCK)
            text += self._decoder.decode(block)
            end = len(text) if not block else max(text.rfind("\n"), text.rfind("\r", 0, len(text) - 1)) + 1
            if end or not block:
                break
            if len(text) > LONGEST:
                raise Permanent(f"A line has more than {LONGEST:,} characters: this is no table of records.")
        self._text, self._rest = StringIO(text[:end], newline=""), text[end:]
        return end > 0
