"""The web: what other programs ask of a running Gristmill. So far these are the commands of the same user."""

from gristmill.web.local import LocalService, SearchRequest, ask_search, open_search_service

__all__ = ["LocalService", "SearchRequest", "ask_search", "open_search_service"]
