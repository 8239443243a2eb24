"""Whose knowledge a page shows: the client that the address names, else the one that the caller looks at."""

from fastapi import Request

from gristmill.scopes import Scope
from gristmill.serving import Caller


def read_scope(request: Request, caller: Caller) -> Scope:
    """A client that is not the caller's is answered like one that does not exist."""
    given = request.query_params
    return caller.choose_scope(given.get("client") or None, given.get("project") or None)
