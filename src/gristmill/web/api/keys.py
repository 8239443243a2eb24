"""Keys over HTTP: the operator makes, lists and revokes them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from pydantic import BaseModel, Field

from gristmill.serving import Caller, Cursor, Listing, Role, read_cursor, require, services_of, write_cursor
from gristmill.web.access import keys

ROUTES = APIRouter(prefix="/keys", tags=["keys"])
Operator = Annotated[Caller, Depends(require("admin", operator=True))]
KeyId = Annotated[int, Path(ge=1, le=2**31 - 1)]
Name = Annotated[str, Field(max_length=100)]


class Key(BaseModel):
    """A key; its secret is known to its holder alone."""

    id: int
    name: str
    role: Role
    client: str | None = Field(description="The client that it is bound to; none: it sees all clients.")
    project: str | None
    created_at: datetime
    last_used_at: datetime | None = Field(description="To the minute.")
    revoked_at: datetime | None


class CreatedKey(Key):
    """A key at the only moment at which its secret is shown."""

    secret: str


class KeyWish(BaseModel):
    """What a new key is for."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    role: Role = "viewer"
    client: Name | None = None
    project: Name | None = None


@ROUTES.get("", summary="Keys in the order in which they were made")
async def list_keys(
    request: Request,
    caller: Operator,
    revoked: bool = False,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Listing[Key]:
    found, more = await load_keys(request, caller, revoked, cursor, limit)
    return Listing(items=[Key.model_validate(one, from_attributes=True) for one in found], next=more)


async def load_keys(
    request: Request, caller: Caller, revoked: bool, cursor: str | None, limit: int
) -> tuple[Sequence[keys.AccessKey], str | None]:
    """A portion of the keys, and the cursor of the next one."""
    last = read_cursor(cursor, int)
    async with caller.reading(services_of(request).db) as tx:
        found = await keys.list_keys(tx, all=revoked, after=int(last[0]) if last else 0, limit=limit + 1)
    return found[:limit], write_cursor(found[limit - 1].id) if len(found) > limit else None


@ROUTES.post("", status_code=201, summary="Make a key; its secret is shown once")
async def add_key(request: Request, response: Response, caller: Operator, wish: KeyWish) -> CreatedKey:
    response.headers["Cache-Control"] = "no-store"  # a secret: the answer is not kept for repetitions either
    async with caller.transaction(services_of(request).db) as tx:
        new = await keys.add_key(tx, caller, wish.name, wish.role, keys.read_scope(wish.client, wish.project))
    return CreatedKey.model_validate({**vars(new.key), "secret": new.secret})


@ROUTES.delete("/{key}", summary="Revoke a key: it opens nothing any more, and its sessions end")
async def revoke_key(request: Request, caller: Operator, key: KeyId) -> Key:
    async with caller.transaction(services_of(request).db) as tx:
        return Key.model_validate(await keys.revoke_key(tx, caller, key), from_attributes=True)
