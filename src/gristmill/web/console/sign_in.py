"""Signing in and out: with a key, or with the one-time link that `gristmill up` prints."""

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from fastapi.responses import RedirectResponse, Response

from gristmill.errors import GristmillError, Overloaded
from gristmill.serving import Services, Viewer, services_of
from gristmill.web.access.signing_in import sign_in_with_key, sign_in_with_link, sign_out
from gristmill.web.gate.callers import address_of, is_encrypted, name_cookie, name_view_cookie

PAGES = APIRouter()
Token = Annotated[str, Query(min_length=1, max_length=100)]


@PAGES.get("/sign-in")
async def show_sign_in(request: Request) -> Response:
    return services_of(request).render(request, "sign_in.html", error=None)


@PAGES.post("/sign-in")
async def sign_in(request: Request, key: Annotated[str, Form(max_length=200)] = "") -> Response:
    services = services_of(request)
    try:
        secret = await sign_in_with_key(services.db, services.settings.web, key.strip(), address_of(request.scope))
    except GristmillError as error:
        return refuse_sign_in(request, services, error)
    return begin_session(request, services, secret)


@PAGES.get("/sign-in/link")
async def follow_link(request: Request, token: Token) -> Response:
    """The token leaves the address at once: the page that it leads to has none."""
    services = services_of(request)
    try:
        secret = await sign_in_with_link(services.db, services.settings.web, token, address_of(request.scope))
    except GristmillError as error:
        return refuse_sign_in(request, services, error)
    return begin_session(request, services, secret)


@PAGES.post("/sign-out")
async def leave(request: Request, caller: Viewer) -> Response:
    services = services_of(request)
    if secret := getattr(request.state, "session", None):
        async with services.db.transaction() as tx:
            await sign_out(tx, secret)
    response = RedirectResponse("/sign-in", 303)
    secure = is_encrypted(request.scope)
    for name in (name_cookie(request.scope), name_view_cookie(request.scope)):
        response.delete_cookie(name, path="/", secure=secure, httponly=True, samesite="strict")
    return response


def refuse_sign_in(request: Request, services: Services, error: GristmillError) -> Response:
    status, headers = 401, dict[str, str]()
    if isinstance(error, Overloaded):
        status, headers = 429, {"Retry-After": str(round(error.retry_after.total_seconds()))}
    page = services.render(request, "sign_in.html", status=status, error=str(error))
    page.headers.update(headers)
    return page


def begin_session(request: Request, services: Services, secret: str) -> Response:
    response = RedirectResponse("/", 303)
    response.set_cookie(
        name_cookie(request.scope),
        secret,
        max_age=int(services.settings.web.session.total_seconds()),
        path="/",
        secure=is_encrypted(request.scope),
        httponly=True,
        samesite="strict",
    )
    return response
