"""Texts that programs write down over HTTP: one chunk at a time, or a whole text with all that is made of it."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from gristmill.db import Tx
from gristmill.documents import (
    NOTHING,
    IngestText,
    WholeText,
    check_item,
    find_written,
    has_worker,
    prepare_chunk,
    put_chunk,
)
from gristmill.errors import Refused
from gristmill.ids import TaskId
from gristmill.qualifier import find_identity, load_moment, load_profiles
from gristmill.queue import Task, get_task, send
from gristmill.scopes import Scope, find_scope, scope_id
from gristmill.serving import Caller, Manager, Problem, Services, services_of
from gristmill.sources import check_address
from gristmill.web.api.knowledge_answers import ChunkStored, ChunkWish, IngestAnswer, IngestWish, TaskStarted

ROUTES = APIRouter(prefix="/kb", tags=["knowledge"])
PATIENCE = 60.0  # seconds that a synchronous call waits …
LONELY = 2.0  # … and after which it waits no longer if no worker is there that could do it
LOOKS = (0.05, 0.1, 0.2, 0.4)  # seconds between looks at the task, the last one again and again
DONE = ("completed", "skipped")


@ROUTES.post("/chunks", status_code=201, summary="Keep one chunk as it is, and link it with a node")
async def store_chunk(request: Request, caller: Manager, wish: ChunkWish) -> ChunkStored:
    """`storeChunk`: it can be found when the answer comes; the same chunk of the same document is kept once."""
    services = services_of(request)
    note = await prepare_chunk(
        services.db,
        services.finder.embedders,
        wish.document_id,
        wish.content,
        knowledge_type=wish.knowledge_type,
        scope=caller.choose_scope(wish.client, wish.project),
    )
    async with caller.transaction(services.db) as tx:
        chunk = await put_chunk(tx, note, wish.node_key, entity_types=wish.entity_types, graph_refs=wish.graph_refs)
        await services.record(tx, caller, "store", f"chunk {chunk}", urn=wish.document_id, node=wish.node_key)
    return ChunkStored(chunk=chunk)


@ROUTES.post(
    "/ingest/full",
    summary="Keep a whole text: chunks, nodes, edges, a summary",
    responses={202: {"model": TaskStarted, "description": "It is being done."}},
)
async def ingest_full(
    request: Request,
    response: Response,
    caller: Manager,
    wish: IngestWish,
    asynchronous: Annotated[bool, Query(alias="async", description="Do not wait: answer 202 with a task.")] = False,
) -> IngestAnswer | TaskStarted:
    """A text under the same `source_urn` takes the place of the one before; the same text is kept once.

    A worker does it. A call that waits longer than a minute, or finds no worker, is answered as an asynchronous one.
    `hints` say what the text asks, of whom and until when, each with its words. They route nothing: the qualifier does.
    `callback_url` gets a POST with the result when the task is done; its address must be one of the public Internet.
    """
    services = services_of(request)
    scope = caller.choose_scope(wish.client, wish.project)
    if wish.callback_url:
        check_address(wish.callback_url, services.settings.fetch)
    async with caller.transaction(services.db) as tx:
        task = await send_text(tx, scope, wish, foreground=not asynchronous)
        await services.record(tx, caller, "ingest", f"text {wish.source_urn}", task=task)
    ended = None if asynchronous else await wait_for(services, caller, task)
    if ended is None:
        response.status_code = 202
        return TaskStarted(task=task)
    return await describe_ingested(services, caller, ended, scope)


async def send_text(tx: Tx, scope: Scope, wish: IngestWish, *, foreground: bool) -> TaskId:
    """What is wrong with it is said at once, not by a task that fails."""
    title = wish.title or wish.source_urn[:300]
    check_item(
        WholeText(
            wish.source_urn, title, wish.content, NOTHING, scope, wish.knowledge_type, wish.written_at, wish.metadata
        )
    )
    own = await scope_id(tx, scope)
    last = await find_written(tx, own, wish.source_urn)
    if last and last.from_file:
        raise Refused(f"{wish.source_urn} was read from a file (document {last.id}): choose a URN of its own.")
    me = find_identity(await load_profiles(tx, [scope.client]), scope)
    letter = IngestText(
        wish.source_urn,
        title,
        wish.content,
        scope.client,
        scope.project,
        wish.knowledge_type.casefold(),
        wish.written_at.isoformat() if wish.written_at else None,
        wish.metadata,
        wish.callback_url or "",
        (wish.written_at or await load_moment(tx)).isoformat(),
        list(me.names),
        list(me.addresses),
    )
    return await send(tx, letter, foreground=foreground, scope=own)


async def wait_for(services: Services, caller: Caller, task: TaskId) -> Task | None:
    """The task when it has ended; None if that takes too long."""
    loop = asyncio.get_running_loop()
    began, looks = loop.time(), 0
    while loop.time() < began + PATIENCE:
        async with caller.reading(services.db) as tx:
            found = await get_task(tx, task)
        if found.status in DONE:
            return found
        if found.status in ("failed", "cancelled"):
            raise Problem(422, f"The text could not be kept: {found.error or found.status}", task=task)
        if loop.time() > began + LONELY and not await is_attended(services):
            return None
        await asyncio.sleep(LOOKS[min(looks, len(LOOKS) - 1)])
        looks += 1
    return None


async def is_attended(services: Services) -> bool:
    async with services.db.reading() as tx:
        return await has_worker(tx)


async def describe_ingested(services: Services, caller: Caller, task: Task, scope: Scope) -> IngestAnswer:
    result: dict[str, Any] = dict(task.result or {})
    async with caller.reading(services.db) as tx:
        own = await find_scope(tx, scope)
        written = await find_written(tx, own, str(result["urn"])) if own is not None else None
    return IngestAnswer(task=task.id, document=written.id if written else None, **result)
