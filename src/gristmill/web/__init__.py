"""The web: the API and the console, and what the commands of the same user ask of a running `gristmill up`."""

from gristmill.web.access.keys import AccessKey, NewKey, add_key, find_key, list_keys, revoke_key
from gristmill.web.access.signing_in import make_link
from gristmill.web.local import LocalService, SearchRequest, ask_local, ask_search, open_search_service
from gristmill.web.server import Serving, format_link, open_web

__all__ = [
    "AccessKey",
    "LocalService",
    "NewKey",
    "SearchRequest",
    "Serving",
    "add_key",
    "ask_local",
    "ask_search",
    "find_key",
    "format_link",
    "list_keys",
    "make_link",
    "open_search_service",
    "open_web",
    "revoke_key",
]
