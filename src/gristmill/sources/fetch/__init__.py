"""The one safe way to the web: addresses are checked, domains are visited slowly, answers have limits."""

from gristmill.sources.fetch.answers import NotThere
from gristmill.sources.fetch.fetcher import FetchedPage, Fetcher, Posted
from gristmill.sources.fetch.location import Location, check_address, read_location

__all__ = ["FetchedPage", "Fetcher", "Location", "NotThere", "Posted", "check_address", "read_location"]
