"""Whether this server lives and can serve, and its metrics: for probes and dashboards."""

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from pydantic import BaseModel

from gristmill.db import Database
from gristmill.errors import Transient
from gristmill.hosts import is_loopback
from gristmill.serving import Problem, require, services_of
from gristmill.web.gate.observing import RequestMetrics

ROUTES = APIRouter(tags=["health"])
PATIENCE = 3.0  # seconds for the database to answer a probe
REMEMBERED = 30.0  # seconds for which tables that fit are not compared again
AGAIN = {"Retry-After": "5"}


class ServerHealth(BaseModel):
    """A server that answers."""

    status: Literal["ok"] = "ok"


@ROUTES.get("/healthz", summary="Whether the server lives")
async def tell_health() -> ServerHealth:
    return ServerHealth()


@ROUTES.get("/readyz", summary="Whether the server can serve: its database answers and has the right tables")
async def tell_readiness(request: Request) -> ServerHealth:
    try:
        async with asyncio.timeout(PATIENCE):
            await _check_database(request.app, services_of(request).db)
    except (Transient, TimeoutError):
        raise Problem(503, "The database does not answer: run gristmill doctor.", headers=AGAIN) from None
    return ServerHealth()


async def _check_database(app: FastAPI, db: Database) -> None:
    async with db.reading() as tx:
        await tx.value("SELECT 1")
    now = asyncio.get_running_loop().time()
    if now < getattr(app.state, "fits_until", 0.0):  # probes are frequent, and tables change with a new version alone
        return
    if not (await db.examine_schema()).fits:
        raise Problem(503, "The tables of the database are of another version: gristmill db migrate.", headers=AGAIN)
    app.state.fits_until = now + REMEMBERED


async def allow_metrics(request: Request) -> None:
    """Programs on the same machine need no key; what came through a proxy may come from anywhere."""
    is_direct = "x-forwarded-for" not in request.headers and "forwarded" not in request.headers
    settings = services_of(request).settings.web
    if not (is_loopback(settings.host) and is_direct and not settings.proxies):
        await require("viewer", operator=True)(request)


@ROUTES.get("/metrics", summary="Metrics, as Prometheus reads them", response_class=Response)
async def tell_metrics(request: Request, allowed: Annotated[None, Depends(allow_metrics)]) -> Response:
    metrics: RequestMetrics = request.app.state.metrics
    return Response(metrics.render(), media_type="text/plain; version=0.0.4; charset=utf-8")
