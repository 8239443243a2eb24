"""The LLM router: one endpoint for every client, priorities, and preemption that loses nothing."""

from gristmill.router.server import serve

__all__ = ["serve"]
