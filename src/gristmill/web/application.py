"""The application: the routes and pages of all rooms behind one gate."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.requests import Request
from fastapi.responses import Response
from jinja2 import Environment
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import BaseRoute

from gristmill.db import Database
from gristmill.documents import PageImages, ProgressWatcher
from gristmill.errors import GristmillError
from gristmill.knowledge import Finder
from gristmill.rooms import Room
from gristmill.serving import MenuEntry, Problem, Services, WebPart
from gristmill.settings import Settings
from gristmill.web import assets, health
from gristmill.web.access.audit import change_in_parts, record
from gristmill.web.gate.asking import AskingNotes
from gristmill.web.gate.bodies import BodyLimit
from gristmill.web.gate.callers import CallerCheck
from gristmill.web.gate.entrance import LinkEntrance
from gristmill.web.gate.failures import FailureShield, answer_problem, explain_failure
from gristmill.web.gate.freshness import Freshness
from gristmill.web.gate.headers import SecurityHeaders
from gristmill.web.gate.observing import Observer, RequestMetrics
from gristmill.web.gate.origins import OriginCheck
from gristmill.web.gate.rates import RateLimit
from gristmill.web.gate.second_try import SecondTry, may_be_repeated
from gristmill.web.gate.writes import WritesOnce
from gristmill.web.openapi import describe_api
from gristmill.web.parts import find_parts
from gristmill.web.rendering import make_environment, make_render

TITLE = "Gristmill"
EXPECTED = (Problem, GristmillError, RequestValidationError, HTTPException, UnicodeEncodeError)


@dataclass(frozen=True)
class Surface:
    """Everything that is served, whatever the database: the routes, the menu, the templates."""

    routes: Sequence[BaseRoute]
    menu: Sequence[MenuEntry]
    environment: Environment

    @cached_property
    def document(self) -> dict[str, Any]:
        """The OpenAPI document."""
        return describe_api(TITLE, self.routes)


def create_app(db: Database, settings: Settings, rooms: Sequence[Room], finder: Finder) -> FastAPI:
    """Everything that is served, over a database and a finder that are open for as long as it is used.

    `app.state.services.close()` ends the processes that it has started.
    """
    app = FastAPI(title=TITLE, docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    surface = build_surface(tuple(room.name for room in rooms))
    render = make_render(surface.environment, surface.menu)
    images, watcher = PageImages(db, settings), ProgressWatcher(db)
    app.state.services = Services(db, settings, finder, rooms, render, record, change_in_parts, images, watcher)
    app.router.routes.extend(surface.routes)
    app.state.metrics = RequestMetrics()
    app.openapi = lambda: surface.document
    for kind in EXPECTED:
        app.add_exception_handler(kind, answer_failure)
    put_gate_before(app, db, settings)
    return app


@cache
def build_surface(rooms: tuple[str, ...]) -> Surface:
    """The surface of the rooms with these names. It takes half a second: once for all applications of a process."""
    parts = find_parts(rooms)
    tree = APIRouter()
    include_parts(tree, parts)
    tree.include_router(assets.ROUTES)
    tree.include_router(health.ROUTES)
    return Surface(tree.routes, [entry for part in parts for entry in part.menu], make_environment(rooms))


def include_parts(tree: APIRouter, parts: Sequence[WebPart]) -> None:
    # each at the first level: FastAPI looks through all routes once for each level on the way to one
    for router in (router for part in parts for router in part.api):
        tree.include_router(router, prefix="/api")
    for router in (router for part in parts for router in (*part.console, *part.foreign)):
        tree.include_router(router, include_in_schema=False)


def put_gate_before(app: FastAPI, db: Database, settings: Settings) -> None:
    """From the outside to the inside."""
    app.user_middleware = [
        Middleware(Observer, app.state.metrics, app.routes),
        Middleware(SecurityHeaders),
        Middleware(FailureShield),
        Middleware(SecondTry),
        Middleware(OriginCheck, settings.web),
        Middleware(LinkEntrance),
        Middleware(CallerCheck, db, settings.web),
        Middleware(BodyLimit, settings, app.routes),  # it asks who calls
        Middleware(RateLimit, db, settings.web),
        Middleware(AskingNotes, db),
        Middleware(WritesOnce, db),
        Middleware(Freshness),
    ]


async def answer_failure(request: Request, error: Exception) -> Response:
    if may_be_repeated(request.scope, error):
        raise error
    return answer_problem(request, explain_failure(error, request.scope))
