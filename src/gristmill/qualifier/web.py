"""The part of the qualifier in the web: items and decisions for programs, and pages for people."""

from gristmill.qualifier import api, decision_api, decision_pages, inbox_pages
from gristmill.serving import MenuEntry, WebPart

WEB = WebPart(
    api=(api.ROUTES, decision_api.ROUTES),
    console=(inbox_pages.PAGES, decision_pages.PAGES),
    menu=(
        MenuEntry("/inbox", "Inbox", "inbox", place=10),
        MenuEntry("/conventions", "Conventions", "filter", place=44),
        MenuEntry("/replay", "Replay", "retry", role="manager", place=46),
    ),
)
