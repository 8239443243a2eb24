"""Dead letters over HTTP: how many, which, in which clusters; replay them, or remove them."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from gristmill.ids import TaskId
from gristmill.queue import TaskFilter, dead, find_tasks
from gristmill.serving import Cursor, Listing, Manager, Problem, Viewer, services_of
from gristmill.web.api.bulk import BulkDetail, BulkStart, begin_bulk
from gristmill.web.api.tasks import TaskListing, show_found
from gristmill.web.task_filters import BIGINT, Limit, Name, TaskWish, read_spot

ROUTES = APIRouter(prefix="/dead", tags=["dead letters"])
QueueFilter = Annotated[str | None, Query(max_length=63)]
ClusterFilter = Annotated[str | None, Query(max_length=500)]


class DeadNumbers(BaseModel):
    """How many dead letters there are, from counters."""

    model_config = ConfigDict(from_attributes=True)

    total: int
    by_queue: dict[str, int]
    oldest: datetime | None
    alert: bool = Field(description="There are as many as raise an alarm.")


class ClusterView(BaseModel):
    """Dead letters with the same error but for its particulars."""

    model_config = ConfigDict(from_attributes=True)

    cluster: str = Field(validation_alias="fingerprint")
    error: str
    count: int
    queues: list[str]
    kinds: list[str]
    first: datetime
    last: datetime
    examples: list[int]


class ReplayWish(BaseModel):
    """Which dead letters: some by their ids, or all of a queue, of a cluster, or of a filter."""

    model_config = ConfigDict(extra="forbid")

    ids: Annotated[list[Annotated[int, Field(ge=0, le=BIGINT)]], Field(max_length=1_000)] | None = None
    queue: Name | None = None
    cluster: Name | None = None
    filter: TaskWish | None = None


class PurgeWish(BaseModel):
    """Which dead letters go for ever: those of a queue, of a cluster, or of a filter."""

    model_config = ConfigDict(extra="forbid")

    queue: Name | None = None
    cluster: Name | None = None
    filter: TaskWish | None = None


class Replayed(BaseModel):
    """How many are pending again; of many, the bulk action that goes on with them."""

    tasks: int | None
    bulk: BulkDetail | None


@ROUTES.get("", summary="How many dead letters there are")
async def read_numbers(request: Request, caller: Viewer) -> DeadNumbers:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        return DeadNumbers.model_validate(await dead.stats(tx, threshold=services.settings.queue.dead_alert))


@ROUTES.get("/letters", summary="Dead letters, the latest first")
async def list_letters(
    request: Request,
    caller: Viewer,
    queue: QueueFilter = None,
    cluster: ClusterFilter = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> TaskListing:
    start, wanted = read_spot(cursor), TaskFilter(status="failed", queue=queue, fingerprint=cluster)
    async with caller.reading(services_of(request).db) as tx:
        return show_found(await find_tasks(tx, wanted, limit=limit, start=start))


@ROUTES.get("/clusters", summary="Dead letters by their error, the largest cluster first")
async def list_clusters(
    request: Request, caller: Viewer, queue: QueueFilter = None, limit: Annotated[int, Query(ge=1, le=1_000)] = 200
) -> Listing[ClusterView]:
    async with caller.reading(services_of(request).db) as tx:
        found = await dead.clusters(tx, queue, limit=limit)
    return Listing(items=[ClusterView.model_validate(one) for one in found])


@ROUTES.post("/replay", status_code=202, summary="Try them again: some at once, many as a bulk action")
async def replay(request: Request, caller: Manager, wish: ReplayWish) -> Replayed:
    if wish.ids is None:
        wanted = choose_letters(wish.queue, wish.cluster, wish.filter)
        return Replayed(tasks=None, bulk=await begin_bulk(request, caller, BulkStart(action="retry", filter=wanted)))
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        tasks = await dead.replay(tx, ids=[TaskId(one) for one in wish.ids])
        await services.record(tx, caller, "replay", "dead letters", tasks=tasks)
    return Replayed(tasks=tasks, bulk=None)


@ROUTES.post("/purge", status_code=202, summary="Remove them for ever, as a bulk action")
async def purge(request: Request, caller: Manager, wish: PurgeWish) -> BulkDetail:
    wanted = choose_letters(wish.queue, wish.cluster, wish.filter)
    return await begin_bulk(request, caller, BulkStart(action="purge", filter=wanted))


def choose_letters(queue: str | None, cluster: str | None, wanted: TaskWish | None) -> TaskWish:
    if queue is None and cluster is None and wanted is None:
        raise Problem(422, "Say which dead letters you mean: ids, a queue, a cluster or a filter.")
    chosen = wanted or TaskWish()
    if chosen.status not in (None, "failed"):
        raise Problem(422, f"Dead letters are failed tasks, not {chosen.status} ones.")
    more = {"queue": queue or chosen.queue, "cluster": cluster or chosen.cluster, "status": "failed"}
    return chosen.model_copy(update=more)
