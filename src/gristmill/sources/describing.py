"""Looks into items, in a child process: a hostile item costs its own process, and no more."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gristmill.documents import Limits, ReadAhead, read_ahead
from gristmill.errors import Permanent
from gristmill.sources.link import extract_links
from gristmill.sources.model import Describe, Description, Fetched
from gristmill.wording import quote_reason


@dataclass(frozen=True)
class Described:
    """What an item is and, if it is small, what its document says: so that it is opened only once."""

    found: Description
    ahead: ReadAhead | None


def describe_items(work: Sequence[tuple[Describe, Fetched]], limits: Limits) -> list[Described | Permanent]:
    """What each item is, or why it cannot be read."""
    return [describe_item(describe, item, limits) for describe, item in work]


def describe_item(describe: Describe, item: Fetched, limits: Limits) -> Described | Permanent:
    try:
        found = describe(item)
        content = item.content if found.content is None else found.content
        ahead = read_ahead(content, found.name, found.reading, limits)
        # the text was needed for the links alone: it need not travel back to the parent process
        return Described(replace(found, text="", links=extract_links(found.text)), ahead)
    except Permanent as error:
        return error
    except RecursionError:
        return Permanent("It is nested too deep to be read.")
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        # whatever a parser stumbles over lies in the item: the same bytes would do it again
        return Permanent(f"It cannot be read ({type(error).__name__}: {quote_reason(error)}).")
