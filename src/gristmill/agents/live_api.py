"""Runs as they go on, over HTTP: one step with all that went in and came out, and a stream of what is new."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, Field

from gristmill.agents import api
from gristmill.agents.effects import Changes, EffectState
from gristmill.agents.runs import load_run, load_step
from gristmill.agents.watching import RunNews, has_heard_all, watch_run
from gristmill.ids import RunId, StepId
from gristmill.serving import Caller, Services, Viewer, answer_events, services_of

ROUTES = APIRouter(prefix="/runs", tags=["runs"])
LONGEST_STREAM = 3_600.0  # seconds; a listener that names the last event goes on where it was
RECONNECT = 2_000  # milliseconds until a browser comes back


class ShownLine(BaseModel):
    """A step without what went in and what came out; `waits`: it ended because a person is asked."""

    id: int
    parent: int | None
    node: str
    title: str
    error: str | None
    waits: bool
    model: str | None
    tokens_in: int
    tokens_out: int
    started_at: datetime
    finished_at: datetime | None
    note: str | None = Field(default=None, description="What it waits for now.")


class ShownMove(BaseModel):
    """An effect without its arguments and its result."""

    id: int
    key: str
    tool: str
    summary: str
    changes: Changes
    state: EffectState
    attempt: int
    approved_by: str | None
    error: str | None
    intended_at: datetime
    settled_at: datetime | None


class ShownNews(BaseModel):
    """What is new of a run: steps that began or ended, effects that moved, and all questions that wait."""

    run: api.ShownRun
    steps: Sequence[ShownLine]
    effects: Sequence[ShownMove]
    questions: Sequence[api.ShownQuestion]


@ROUTES.get("/{id}/steps/{step}")
async def get_step(request: Request, caller: Viewer, id: api.Number, step: api.Number) -> api.ShownRunStep:
    """One step of a run, with what went in and what came out."""
    async with caller.reading(services_of(request).db) as tx:
        return api.show_step(await load_step(tx, (await load_run(tx, RunId(id))).id, StepId(step)))


@ROUTES.get(
    "/{id}/events",
    summary="What is new of a run as server-sent events, until it is over",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {}}}, 204: {"description": "It is over, and you know it."}},
)
async def get_events(
    request: Request,
    caller: Viewer,
    id: api.Number,
    last_event_id: Annotated[str | None, Header(max_length=100)] = None,
) -> Response:
    """`progress` while it goes on or waits for a person, then `ended`.

    The first event has everything. With `Last-Event-ID` a stream goes on behind that event. A browser that comes back
    after the end gets a 204 and stays away.
    """
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        run = await load_run(tx, RunId(id))
        if await has_heard_all(tx, run, last_event_id):
            return Response(status_code=204)
    return answer_events(list_events(services, caller, run.id, last_event_id), longest=LONGEST_STREAM)


async def list_events(services: Services, caller: Caller, run: RunId, last_id: str | None) -> AsyncGenerator[str]:
    yield f"retry: {RECONNECT}\n\n"
    async with aclosing(watch_run(partial(caller.reading, services.db), run, last_id)) as all_news:
        async for news in all_news:
            name = "ended" if news.is_last else "progress"
            yield f"id: {news.id}\nevent: {name}\ndata: {show_news(news).model_dump_json()}\n\n"


def show_news(news: RunNews) -> ShownNews:
    return ShownNews(
        run=api.show_run(news.run),
        steps=[ShownLine(**vars(one)) for one in news.steps],
        effects=[ShownMove(**vars(one)) for one in news.effects],
        questions=[api.show_question(one) for one in news.questions],
    )
