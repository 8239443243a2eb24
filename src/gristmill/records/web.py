"""The part of records in the web: routes for files and records, endpoints for cron, pages for people."""

from gristmill.records import api, cron, pages
from gristmill.serving import Entry, WebPart

WEB = WebPart(
    api=(api.ROUTES, cron.ROUTES),
    console=(pages.PAGES,),
    menu=(
        Entry("/records", "Records", "records", place=28),
        Entry("/admin/queue-monitor", "Queue monitor", "monitor", role="manager", place=80),
    ),
)
