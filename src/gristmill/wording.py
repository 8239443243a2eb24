"""Numbers and texts of others, as people read them."""

import unicodedata
from collections.abc import Iterable
from datetime import timedelta
from itertools import takewhile

LONGEST_REASON = 160  # characters of the words of a library


def format_count(n: int, thing: str) -> str:
    """`1 page`, `2,000 pages`."""
    return f"{n:,} {thing}{'' if n == 1 else 's'}"


def format_nth(n: int) -> str:
    """`1st`, `2nd`, `11th`."""
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"


def join_sentences(sentences: Iterable[str]) -> str:
    """Sentences one after the other, each with one stop at its end."""
    return " ".join(
        one if one.endswith((".", "!", "?", "…")) else f"{one}." for one in map(str.strip, sentences) if one
    )


def format_bytes(size: int) -> str:
    """`512 bytes`, `3 MB`."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1024:
            return f"{size} {unit}"
        size //= 1024
    return f"{size} GB"


def format_span(value: timedelta) -> str:
    """A duration to two figures or so: `300 ms`, `4.2 s`, `12 min`, `1.5 d`."""
    seconds = value.total_seconds()
    if seconds < 0:
        return f"-{format_span(-value)}"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86400:.1f} d"


def show_unseen(text: str) -> str:
    """A text in which nothing hides: characters that are not seen, or that turn others around, by their numbers."""
    return "".join(f"⟨U+{ord(one):04X}⟩" if _is_unseen(one) else one for one in str(text))


def show_in_line(text: str) -> str:
    """The same in one line: a line break or a tab in a name would look like the next row of a table."""
    return show_unseen(text).replace("\n", "⟨U+000A⟩").replace("\t", "⟨U+0009⟩")


def quote_reason(error: object) -> str:
    """The words of a library about bytes that it cannot read: one short line, without the bytes that it quotes."""
    said = str(error)[:10_000]
    words = "".join(takewhile(lambda one: not _is_garbage(one), said))
    if words != said:  # the quotation begins before the first character that no text has
        words = words.rpartition(": ")[0] or words
    line = " ".join(words.split())
    return (line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}…").rstrip(" :'\"([")


def _is_garbage(character: str) -> bool:
    return character == "\ufffd" or _is_unseen(character) or unicodedata.category(character) == "Cs"


def _is_unseen(character: str) -> bool:
    return character not in "\n\t" and unicodedata.category(character) in ("Cc", "Cf", "Co", "Cn", "Zl", "Zp")
