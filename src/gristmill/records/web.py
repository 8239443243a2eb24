"""The part of records in the web: routes for files and records, endpoints for cron, pages for people."""

from gristmill.records import api, cron, pages
from gristmill.serving import MenuEntry, WebPart

WEB = WebPart(
    api=(api.ROUTES, cron.ROUTES),
    console=(pages.PAGES,),
    menu=(
        MenuEntry("/records", "Records", "records", place=28),
        MenuEntry("/admin/queue-monitor", "Queue monitor", "monitor", role="manager", place=80),
    ),
)
