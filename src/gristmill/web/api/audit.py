"""The audit log over HTTP."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from pydantic import AwareDatetime, BaseModel

from gristmill.serving import Administrator, Cursor, Listing, Role, read_cursor, services_of, write_cursor
from gristmill.web.access.audit import ChangeFilter, list_changes

ROUTES = APIRouter(prefix="/audit", tags=["audit"])
Text = Annotated[str | None, Query(max_length=500)]


class AuditEntry(BaseModel):
    """A change: when, who, what, from where."""

    id: int
    at: datetime
    caller: str
    key: int | None
    role: Role
    client: str
    project: str
    action: str
    subject: str
    details: dict[str, Any]
    address: str


@ROUTES.get("", summary="What was changed, newest first: of a client what its own keys changed")
async def list_audit(
    request: Request,
    user: Administrator,
    caller: Text = None,
    action: Text = None,
    subject: Text = None,
    since: AwareDatetime | None = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Listing[AuditEntry]:
    last = read_cursor(cursor, int)
    wanted = ChangeFilter(caller, action, subject, since)
    async with user.reading(services_of(request).db) as tx:
        found = await list_changes(tx, user.bound_to, wanted, before=int(last[0]) if last else None, limit=limit)
    items = [AuditEntry.model_validate(one, from_attributes=True) for one in found.changes]
    return Listing(items=items, next=None if found.next is None else write_cursor(found.next))
