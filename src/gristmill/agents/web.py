"""Agents over HTTP: ask and its conversations, the page, the OpenAI-compatible endpoint, and MCP."""

from gristmill.agents.ask import api, openai, pages
from gristmill.agents.mcp import http as mcp
from gristmill.serving import Entry, WebPart

WEB = WebPart(
    api=[api.ROUTES],
    console=[pages.PAGES],
    foreign=[openai.ROUTES, mcp.ROUTES],
    menu=[Entry("/ask", "Ask", "ask", place=35)],
)
