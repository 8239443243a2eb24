"""MCP: what is stored, as tools for other agents; over stdio or on the web server."""
