"""Looks into an item, in a child process: a hostile item costs its own process, and no more."""

from dataclasses import replace

from gristmill.errors import Permanent
from gristmill.sources.link import extract_links
from gristmill.sources.model import Describe, Description, Fetched


def describe_item(describe: Describe, item: Fetched) -> Description:
    """What an item is; Permanent if it cannot be read."""
    try:
        found = describe(item)
        return replace(found, text="", links=extract_links(found.text))  # the text has served its purpose
    except Permanent:
        raise
    except RecursionError as error:
        raise Permanent("It is nested too deep to be read.") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        # whatever a parser stumbles over lies in the item: the same bytes would do it again
        raise Permanent(f"It cannot be read ({type(error).__name__}: {error}).") from error
