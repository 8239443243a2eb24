"""The audit log: every change of the caller's client, or of all for the operator, newest first."""

from dataclasses import asdict, dataclass, replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from gristmill.serving import Administrator, Cursor, MenuEntry, read_cursor, services_of, write_cursor
from gristmill.web.access.audit import LOOK, ChangeFilter, list_changes
from gristmill.wording import format_count

PAGES = APIRouter()
MENU = (MenuEntry("/audit", "Audit log", "audit", role="admin", place=96),)
PORTION = 100
Text = Annotated[str, Query(max_length=500)]


@dataclass(frozen=True)
class Links:
    """Addresses that narrow the log further down."""

    wanted: ChangeFilter

    def caller(self, name: str) -> str:
        return make_address(replace(self.wanted, caller=name))

    def action(self, name: str) -> str:
        return make_address(replace(self.wanted, action=name))

    def subject(self, name: str) -> str:
        return make_address(replace(self.wanted, subject=name))


@PAGES.get("/audit")
async def show_audit(
    request: Request,
    user: Administrator,
    caller: Text = "",
    action: Text = "",
    subject: Text = "",
    cursor: Cursor = None,
) -> Response:
    services, last = services_of(request), read_cursor(cursor, int)
    wanted = ChangeFilter(caller.strip() or None, action.strip() or None, subject.strip() or None)
    async with user.reading(services.db) as tx:
        before = int(last[0]) if last else None
        found = await list_changes(tx, user.bound_to, wanted, before=before, limit=PORTION)
    return services.render(
        request,
        "audit.html",
        changes=found.changes,
        wanted=wanted,
        is_filtered=wanted != ChangeFilter(),
        looked_at=format_count(LOOK, "change"),
        links=Links(wanted),
        next=make_address(wanted, write_cursor(found.next)) if found.next is not None else None,
        first=make_address(wanted) if cursor else None,
    )


def make_address(wanted: ChangeFilter, cursor: str | None = None) -> str:
    given = {name: value for name, value in {**asdict(wanted), "cursor": cursor}.items() if value}
    return f"/audit?{urlencode(given)}" if given else "/audit"
