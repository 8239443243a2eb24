"""Knowledge: chunks, search over them, and the graph of who and what is in them."""

from gristmill.knowledge import graph

__all__ = ["graph"]
