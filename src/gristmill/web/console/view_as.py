"""The switch of clients: an operator looks at everything, or through the eyes of one client."""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request, Response

from gristmill.scopes import Scope, list_clients
from gristmill.serving import Caller, Problem, Viewer, answer_action, services_of
from gristmill.web.gate.callers import is_encrypted, name_view_cookie

PAGES = APIRouter()


def check_operator(caller: Caller) -> None:
    if not caller.is_operator and not caller.is_narrowed:
        raise Problem(403, f"Your key is bound to {caller.bound_to}: you always see what this client sees.")


@PAGES.get("/view-as")
async def show_clients(request: Request, caller: Viewer) -> Response:
    check_operator(caller)
    services = services_of(request)
    async with services.db.reading() as tx:  # the operator's own eyes: a narrowed caller would see one client
        clients = await list_clients(tx)
    return services.render(request, "view_as.html", clients=clients)


@PAGES.post("/view-as")
async def choose_client(request: Request, caller: Viewer, client: Annotated[str, Form()] = "") -> Response:
    check_operator(caller)
    seen = str(Scope(client)) if client else ""
    answer = answer_action(request, f"You see what {seen} sees." if seen else "You see all clients.", back="/", go="/")
    name, secure = name_view_cookie(request.scope), is_encrypted(request.scope)
    if seen:
        answer.set_cookie(name, quote(seen), secure=secure, httponly=True, samesite="strict", path="/")
    else:
        answer.delete_cookie(name, secure=secure, httponly=True, samesite="strict", path="/")
    return answer
