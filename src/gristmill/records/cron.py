"""Worker endpoints for hosting by cron: each call does a few jobs within its time, with the handlers of all workers."""

import hmac
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel

from gristmill.hosts import is_loopback
from gristmill.models import ModelPool
from gristmill.queue import BoundedRun, clean, run_bounded
from gristmill.records.imports import remove_old_drafts
from gristmill.records.letters import INGESTION, VECTORIZATION
from gristmill.rooms import Tools, bind_rooms, prepare_rooms
from gristmill.serving import Problem, Services, services_of
from gristmill.settings import Settings, environment

ROUTES = APIRouter(prefix="/workers", tags=["workers"])
INGESTION_JOBS, VECTORIZATION_JOBS = 3, 2  # of one call
KNOWLEDGE = "knowledge"  # the queue that keeps the terms of search in order: nobody else does where only cron runs
FOLDS = 20
LEAST = timedelta(seconds=8)  # with less time left, no worker is started


class WorkerRun(BaseModel):
    """What one call did, and why it did no more."""

    worker: str
    started: int
    finished: int
    failed: int
    handed_back: int
    ended_by: Literal["idle", "jobs", "time"]
    seconds: float


class CleanupRun(BaseModel):
    """What one cleanup removed; `more` if its time was over before everything was removed."""

    worker: str
    jobs: int
    drafts: int
    more: bool
    seconds: float


async def check_cron(request: Request) -> None:
    """A caller must know the secret. If none is set: only this machine may call, and only a server on loopback."""
    settings = services_of(request).settings
    secret = find_secret(settings)
    if secret is None:
        check_machine(request, settings)
        return
    given = request.headers.get("authorization", "").encode()
    if not hmac.compare_digest(given, f"Bearer {secret}".encode()):
        raise Problem(401, "Send CRON_SECRET as “Authorization: Bearer …”.", headers={"WWW-Authenticate": "Bearer"})


def check_machine(request: Request, settings: Settings) -> None:
    """A program of this machine asks itself: no proxy passes it on, and no web page sends a browser here."""
    address = request.client.host if request.client else ""
    is_passed_on = any(name == "forwarded" or name.startswith("x-forwarded-") for name in request.headers)
    if is_passed_on or not is_loopback(settings.web.host) or not is_loopback(address):
        raise Problem(403, "Set CRON_SECRET: this server can be reached from elsewhere.")
    if request.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Problem(403, "Pages of other sites may not call this server.")
    if request.method != "POST":
        raise Problem(403, "Send a POST, or set CRON_SECRET.")


def find_secret(settings: Settings) -> str | None:
    """The secret of the settings, or the variable that hosts of serverless functions set by themselves."""
    own = settings.records.cron_secret
    return own.get_secret_value() if own else environment().get("CRON_SECRET", "").strip() or None


Cron = Annotated[None, Depends(check_cron)]


@ROUTES.get("/ingestion", summary="Load files, three jobs at most")
@ROUTES.post("/ingestion", summary="Load files, three jobs at most")
async def run_ingestion(request: Request, _: Cron) -> WorkerRun:
    return await work(services_of(request), INGESTION, INGESTION_JOBS)


@ROUTES.get("/vectorization", summary="Embed records, two jobs at most")
@ROUTES.post("/vectorization", summary="Embed records, two jobs at most")
async def run_vectorization(request: Request, _: Cron) -> WorkerRun:
    return await work(services_of(request), VECTORIZATION, VECTORIZATION_JOBS, beside=(KNOWLEDGE,))


@ROUTES.get("/cleanup", summary="Remove completed and failed jobs of last week")
@ROUTES.post("/cleanup", summary="Remove completed and failed jobs of last week")
async def run_cleanup(request: Request, _: Cron) -> CleanupRun:
    services, began = services_of(request), time.monotonic()
    keep = services.settings.records.keep_for
    own = {INGESTION: keep, VECTORIZATION: keep}  # the other queues keep theirs as their own settings say
    until = began + services.settings.records.budget.total_seconds() / 2
    jobs, more = 0, True
    while more and time.monotonic() < until:
        async with services.db.transaction() as tx:
            cleaned = await clean(tx, services.settings.queue, sooner=own)
        jobs, more = jobs + cleaned.tasks + cleaned.grouped + cleaned.dead, cleaned.more
    drafts = await remove_old_drafts(services.db)
    return CleanupRun(worker="cleanup", jobs=jobs, drafts=drafts, more=more, seconds=measure(began))


async def work(services: Services, queue: str, jobs: int, *, beside: Sequence[str] = ()) -> WorkerRun:
    """Do the jobs of a queue; what time is left goes to the queues beside it."""
    began = time.monotonic()
    async with ModelPool(services.settings) as models:
        handlers = bind_rooms(services.rooms, Tools(services.db, services.settings, models))
        await prepare_rooms(services.rooms, services.db, services.settings, handlers)

        async def run(queues: Sequence[str], jobs: int) -> BoundedRun:
            left = services.settings.records.budget - timedelta(seconds=time.monotonic() - began)
            if left < LEAST:
                return BoundedRun(ended_by="time")
            own = {kind: one for kind, one in handlers.items() if one.queue in queues}
            name = f"cron {queues[0]}"
            return await run_bounded(
                services.db, own, services.settings.queue, queues=queues, jobs=jobs, budget=left, name=name
            )

        done = await run([queue], jobs)
        if beside and done.ended_by != "time":
            with suppress(ValueError):  # handlers of other kinds are for workers alone
                await run(beside, FOLDS)
    return WorkerRun(worker=queue, **vars(done), seconds=measure(began))


def measure(began: float) -> float:
    return round(time.monotonic() - began, 2)
