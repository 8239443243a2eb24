"""Keys: the operator makes one, sees its secret once, and revokes it."""

from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Depends, Form, Path, Request, Response

from gristmill.errors import Refused
from gristmill.serving import Caller, Cursor, MenuEntry, Role, require, services_of
from gristmill.web.access.keys import AccessKey, NewKey, add_key, read_scope, revoke_key
from gristmill.web.api.keys import load_keys
from gristmill.web.console.answering import answer_action
from gristmill.web.console.sorting import Columns, read_sort, sort_rows

PAGES = APIRouter()
PORTION = 50
MENU = (MenuEntry("/keys", "Keys", "keys", role="admin", operator=True, place=94),)
Operator = Annotated[Caller, Depends(require("admin", operator=True))]
COLUMNS: Columns[AccessKey] = {
    "name": lambda key: key.name,
    "role": lambda key: key.role,
    "bound_to": lambda key: key.bound_to,
    "created_at": lambda key: key.created_at,
    "last_used_at": lambda key: key.last_used_at,
}


@dataclass(frozen=True)
class KeyForm:
    """What the form was filled with."""

    name: str = ""
    role: Role = "viewer"
    client: str = ""
    project: str = ""


@PAGES.get("/keys")
async def show_keys(request: Request, caller: Operator, revoked: bool = False, cursor: Cursor = None) -> Response:
    return await draw_page(request, caller, KeyForm(), revoked=revoked, cursor=cursor)


@PAGES.post("/keys")
async def make_key(
    request: Request,
    caller: Operator,
    name: Annotated[str, Form(max_length=200)] = "",
    role: Annotated[Role, Form()] = "viewer",
    client: Annotated[str, Form(max_length=200)] = "",
    project: Annotated[str, Form(max_length=200)] = "",
) -> Response:
    wish = KeyForm(name.strip(), role, client.strip(), project.strip())
    try:
        async with caller.transaction(services_of(request).db) as tx:
            new = await add_key(tx, caller, wish.name, wish.role, read_scope(wish.client or None, wish.project or None))
    except Refused as refused:
        return await draw_page(request, caller, wish, wrong=str(refused))
    page = await draw_page(request, caller, KeyForm(), new=new)
    page.headers["Cache-Control"] = "no-store"  # no browser and no proxy keeps the secret
    return page


@PAGES.post("/keys/{key}/revoke")
async def revoke(request: Request, caller: Operator, key: Annotated[int, Path(ge=1, le=2**31 - 1)]) -> Response:
    async with caller.transaction(services_of(request).db) as tx:
        revoked = await revoke_key(tx, caller, key)
    return answer_action(request, f"The key {revoked.name} opens nothing any more.", back="/keys", go="/keys")


async def draw_page(
    request: Request,
    caller: Caller,
    wish: KeyForm,
    *,
    wrong: str | None = None,
    new: NewKey | None = None,
    revoked: bool = False,
    cursor: str | None = None,
) -> Response:
    services = services_of(request)
    keys, more = await load_keys(request, caller, revoked, cursor, PORTION)
    sort = read_sort(request, COLUMNS, "name")
    values = {"keys": sort_rows(keys, sort, COLUMNS), "sort": sort, "wish": wish, "wrong": wrong, "new": new}
    first = "/keys?revoked=true" if revoked else "/keys?"
    values |= {"next": more and f"{first}&cursor={more}", "first": cursor and first}
    return services.render(request, "keys.html", status=422 if wrong else 200, revoked=revoked, **values)
