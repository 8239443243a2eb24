"""Agents over HTTP: ask and its conversations, runs with their ledger, questions, policies, memory, and MCP."""

from gristmill.agents import api as acting
from gristmill.agents import live_api
from gristmill.agents import pages as acting_pages
from gristmill.agents.ask import api, openai, pages
from gristmill.agents.mcp import http as mcp
from gristmill.agents.memory import api as memory
from gristmill.agents.memory import pages as memory_pages
from gristmill.serving import MenuEntry, WebPart

WEB = WebPart(
    api=[api.ROUTES, acting.RUNS, live_api.ROUTES, acting.QUESTIONS, acting.POLICIES, memory.MEMORY, memory.PROCEDURES],
    console=[pages.PAGES, acting_pages.RUNS, acting_pages.QUESTIONS, memory_pages.PAGES],
    foreign=[openai.ROUTES, mcp.ROUTES],
    menu=[
        MenuEntry("/ask", "Ask", "ask", place=20),
        MenuEntry("/runs", "Runs", "agents", place=40),
        MenuEntry("/questions", "Questions", "questions", place=42),
        MenuEntry("/memory", "Memory", "memory", place=44),
    ],
)
