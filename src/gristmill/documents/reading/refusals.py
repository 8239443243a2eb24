"""The sentences with which inputs are refused."""

from gristmill.errors import Permanent


def empty() -> Permanent:
    return Permanent("The file is empty.")


def too_large(size: int, limit: int) -> Permanent:
    return Permanent(f"The file has {size:,} bytes, and at most {limit:,} are read (setting documents.max_bytes).")


def no_bytes() -> Permanent:
    return Permanent("The attachment is empty, or too damaged to be unpacked.")


def no_more(missing: int) -> Permanent:
    return Permanent(f"{missing} attachments of the PDF could not be taken out: no more are unpacked.")


def refuse_encrypted(what: str = "file") -> Permanent:
    return Permanent(f"The {what} is encrypted: remove its password and add it again.")


def corrupt(what: str, why: str = "") -> Permanent:
    return Permanent(f"The {what} is damaged and cannot be opened{f' ({why})' if why else ''}.")


def no_text(what: str) -> Permanent:
    return Permanent(f"There is no text in the {what}.")


def too_many(what: str, found: int, limit: int) -> Permanent:
    """`what` are pages, or parts: attachments, messages."""
    setting = "max_pages" if what == "pages" else "max_parts"
    return Permanent(f"The file has {found:,} {what}; at most {limit:,} are read (setting documents.{setting}).")


def too_long(found: int, limit: int) -> Permanent:
    """Of a text, which has no pages of its own: its author never saw any."""
    return Permanent(
        f"The text is too long: it makes {found:,} pages, and at most {limit:,} are read (setting documents.max_pages)."
    )


def no_such_page(number: int, pages: int) -> Permanent:
    return Permanent(f"There is no page {number}: the file has {pages}.")
