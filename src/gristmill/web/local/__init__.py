"""A small service for commands of the same user: a running `gristmill up` answers searches, its model is warm."""

from gristmill.web.local.client import ask_local, ask_search
from gristmill.web.local.messages import SearchRequest
from gristmill.web.local.service import LocalService, open_search_service

__all__ = ["LocalService", "SearchRequest", "ask_local", "ask_search", "open_search_service"]
