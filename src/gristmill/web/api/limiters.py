"""Limiters over HTTP: how often the outside is called, how it stands, and how it is set."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from gristmill.db import Tx
from gristmill.durations import format_duration
from gristmill.queue import LimiterStatus, list_limiters, set_limit
from gristmill.serving import Caller, Listing, Problem, require, services_of
from gristmill.web.limits import read_limit, write_gap

ROUTES = APIRouter(prefix="/limiters", tags=["queues"])
Operator = Annotated[Caller, Depends(require("viewer", operator=True))]
Keeper = Annotated[Caller, Depends(require("admin", operator=True))]
LimiterName = Annotated[str, Path(max_length=200)]


class LimiterView(BaseModel):
    """A limit for calls to the outside that all workers share; null is no limit."""

    name: str = Field(examples=["llm", "domain:example.org"])
    concurrency: int | None = Field(description="How many at once.")
    rate: str | None = Field(description="How many in a period, such as 5/60s.")
    gap: str | None = Field(description="Time between two calls: 1s, or 3s-5s for a random one.")
    held: int = Field(description="How many calls run now.")
    recent: int = Field(description="How many turns were given within the period of the rate.")
    next_at: datetime | None = Field(description="When the next turn is, at the soonest.")


class LimiterWish(BaseModel):
    """What to change; null takes a limit away, what is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    concurrency: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    rate: Annotated[str, Field(max_length=50)] | None = Field(default=None, examples=["5/60s"])
    gap: Annotated[str, Field(max_length=50)] | None = Field(default=None, examples=["1s", "3s-5s"])


@ROUTES.get("", summary="All limiters, and how much of them is taken")
async def list_all(request: Request, caller: Operator) -> Listing[LimiterView]:
    async with caller.reading(services_of(request).db) as tx:
        return Listing(items=[show_limiter(one) for one in await list_limiters(tx)])


@ROUTES.get("/{name}", summary="One limiter")
async def read_limiter(request: Request, caller: Operator, name: LimiterName) -> LimiterView:
    async with caller.reading(services_of(request).db) as tx:
        return show_limiter(await find_limiter(tx, name))


@ROUTES.patch("/{name}", summary="Change a limiter, for all workers at once; calls that have a turn keep it")
async def change_limiter(request: Request, caller: Keeper, name: LimiterName, wish: LimiterWish) -> LimiterView:
    changes = wish.model_dump(exclude_unset=True)
    if not changes:
        raise Problem(422, "Nothing to change: name concurrency, rate or gap.")
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        now = show_limiter(await find_limiter(tx, name))
        wanted = {"concurrency": now.concurrency, "rate": now.rate, "gap": now.gap, **changes}
        limit = read_limit({key: str(value) for key, value in wanted.items() if value is not None})
        await set_limit(tx, name, limit)
        await services.record(tx, caller, "set", f"limiter {name}", **changes)
        return show_limiter(await find_limiter(tx, name))


async def find_limiter(tx: Tx, name: str) -> LimiterStatus:
    for one in await list_limiters(tx):
        if one.name == name:
            return one
    raise Problem(404, f"There is no limiter {name}.")


def show_limiter(found: LimiterStatus) -> LimiterView:
    rate = found.limit.rate
    return LimiterView(
        name=found.name,
        concurrency=found.limit.concurrency,
        rate=f"{rate.count}/{format_duration(rate.period)}" if rate else None,
        gap=write_gap(found.limit) or None,
        held=found.held,
        recent=found.recent,
        next_at=found.next_at,
    )
