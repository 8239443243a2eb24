"""Scopes: whose a thing is, who sees it, and who may change it."""

from gristmill.scopes.scope import GLOBAL, GLOBAL_ID, Scope, find_scope, list_clients, scope_id, visible

__all__ = ["GLOBAL", "GLOBAL_ID", "Scope", "find_scope", "list_clients", "scope_id", "visible"]
