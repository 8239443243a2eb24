"""The gate: everything that happens to a request before a route sees it, and to an answer before it leaves."""
