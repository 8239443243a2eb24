"""Decisions for programs: why an item was decided so, conventions, profiles, replays."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field

from gristmill.db import Tx
from gristmill.errors import Unknown
from gristmill.ids import TaskId, WorkItemId
from gristmill.qualifier.conventions import (
    Contradiction,
    Convention,
    add_convention,
    change_convention,
    find_all_contradictions,
    find_contradictions_with,
    list_conventions,
    list_versions,
    load_convention,
    remove_convention,
)
from gristmill.qualifier.conventions.model import Fate
from gristmill.qualifier.decisions import load_moment
from gristmill.qualifier.explaining import Explanation, explain_item
from gristmill.qualifier.letters import ReplayHistory
from gristmill.qualifier.profiles import Profile, list_profiles, remove_profile, set_profile
from gristmill.qualifier.trying import Trial, suggest_from, try_convention
from gristmill.queue import get_task, send
from gristmill.scopes import scope_id
from gristmill.serving import Caller, Listing, Manager, Viewer, services_of

ROUTES = APIRouter(tags=["decisions"])
Number = Annotated[int, Path(ge=1, le=2**63 - 1)]
Name = Annotated[str | None, Field(max_length=100)]
Text = Annotated[str, Field(min_length=1, max_length=2_000, examples=['when sender is "*@news.example" then ignore'])]
Since = Annotated[datetime | None, Field(description="From when on; with a time zone. Without: the last 30 days.")]
Client = Annotated[str | None, Query(max_length=100)]
SPAN = timedelta(days=30)


# --- why


class ShownWords(BaseModel):
    """Words that a rule went by: `start` and `stop` are characters of the item's text, or it stands in a field."""

    words: str
    start: int | None
    stop: int | None
    where: str


class ShownDecisionStep(BaseModel):
    """One rule that spoke."""

    rule: str
    sentence: str
    words: list[ShownWords]


class ShownDecision(BaseModel):
    """Why an item is where it is; `inputs` are everything that the decision went by."""

    item: int
    state: str
    decision: int | None
    decided_at: datetime | None
    author: Literal["rules", "convention", "llm"] | None
    route: str | None
    urgency: str | None
    deadline: datetime | None
    scheduled_at: datetime | None
    target: int | None
    assign: str | None
    sentence: str
    waits: str | None
    path: list[ShownDecisionStep]
    inputs: Mapping[str, Any]


def show_why(found: Explanation) -> ShownDecision:
    one = found.decision
    return ShownDecision(
        item=found.item.id,
        state=found.item.state,
        decision=one.id if one else None,
        decided_at=one.decided_at if one else None,
        author=one.author if one else None,
        route=one.route if one else None,
        urgency=one.urgency if one else None,
        deadline=one.deadline if one else None,
        scheduled_at=one.scheduled_at if one else None,
        target=one.target if one else None,
        assign=one.assign if one else None,
        sentence=found.sentence,
        waits=found.waits,
        path=[ShownDecisionStep.model_validate(step, from_attributes=True) for step in found.steps],
        inputs=one.inputs if one else {},
    )


@ROUTES.get("/items/{id}/why", summary="The rules that decided about an item, each with its words")
async def get_why(request: Request, caller: Viewer, id: Number) -> ShownDecision:
    async with caller.reading(services_of(request).db) as tx:
        return show_why(await explain_item(tx, WorkItemId(id)))


# --- conventions


class ShownConvention(BaseModel):
    """A convention, how often it held, and with which others it may contradict itself."""

    id: int
    client: str
    project: str
    text: str
    version: int
    enabled: bool
    note: str
    origin: int | None
    created_at: datetime
    created_by: str
    changed_at: datetime
    fired: int
    fired_at: datetime | None
    contradictions: list[str] = []


class ShownVersion(BaseModel):
    """What a convention said at some time."""

    version: int
    text: str
    enabled: bool
    at: datetime
    by: str


class ConventionWithVersions(ShownConvention):
    """A convention, and what it said before."""

    versions: Sequence[ShownVersion]


class ConventionWish(BaseModel):
    """A convention that is to hold."""

    text: Text
    note: Annotated[str, Field(max_length=500)] = ""
    client: Name = None
    project: Name = None
    origin: Annotated[int | None, Field(ge=1, le=2**63 - 1, description="The item that it was made of.")] = None


class ConventionChange(BaseModel):
    """What is to be different; what is not named stays."""

    text: Annotated[str | None, Field(min_length=1, max_length=2_000)] = None
    enabled: bool | None = None


class TrialWish(BaseModel):
    """A convention that is to be tried on past items."""

    text: Text
    client: Name = None
    project: Name = None
    since: Since = None


class ShownFitting(BaseModel):
    """A past item that fits."""

    item: int
    title: str
    route: str
    words: list[ShownWords]


class ShownTrial(BaseModel):
    """What a convention would have held for; nothing was changed."""

    text: str
    looked_at: int
    fitting: list[ShownFitting]
    contradictions: list[str]


class Suggestion(BaseModel):
    """A convention that decides items like this one."""

    text: str
    client: str
    project: str


class RemovedAnswer(BaseModel):
    """It is gone."""

    removed: bool = True


def show_convention(one: Convention, found: Sequence[Contradiction] = ()) -> ShownConvention:
    told = [pair.sentence for pair in found if one.id in (pair.first, pair.second)]
    return ShownConvention(contradictions=told, **vars(one))


@ROUTES.get("/conventions", summary="All conventions, with how often they held and which contradict each other")
async def get_conventions(request: Request, caller: Viewer) -> Listing[ShownConvention]:
    async with caller.reading(services_of(request).db) as tx:
        known = await list_conventions(tx)
    found = find_all_contradictions(known)
    return Listing(items=[show_convention(one, found) for one in known])


@ROUTES.get("/conventions/{id}", summary="One convention, and what it said before")
async def get_convention(request: Request, caller: Viewer, id: Number) -> ConventionWithVersions:
    async with caller.reading(services_of(request).db) as tx:
        one, versions = await load_convention(tx, id), await list_versions(tx, id)
        found = await find_contradictions_with(tx, one.text, one.scope)
    shown = [ShownVersion(**vars(each)) for each in versions]
    return ConventionWithVersions(versions=shown, **show_convention(one, found).model_dump())


@ROUTES.post("/conventions", status_code=201, summary="State a convention: it holds from now on")
async def post_convention(request: Request, caller: Manager, wish: ConventionWish) -> ShownConvention:
    services = services_of(request)
    scope = caller.choose_scope(wish.client, wish.project)
    origin = WorkItemId(wish.origin) if wish.origin else None
    async with caller.transaction(services.db) as tx:
        one = await add_convention(tx, scope, wish.text, caller.name, note=wish.note, origin=origin)
        await services.record(tx, caller, "state", f"convention {one.id}", text=one.text)
        return show_convention(one, await find_contradictions_with(tx, one.text, scope))


@ROUTES.patch("/conventions/{id}", summary="Let a convention say something else, or switch it on or off")
async def patch_convention(request: Request, caller: Manager, id: Number, change: ConventionChange) -> ShownConvention:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        one = await change_convention(tx, id, caller.name, text=change.text, enabled=change.enabled)
        await services.record(tx, caller, "change", f"convention {id}", text=one.text, enabled=one.enabled)
        return show_convention(one, await find_contradictions_with(tx, one.text, one.scope))


@ROUTES.delete("/conventions/{id}", summary="Take a convention back; what was decided by it stays")
async def delete_convention(request: Request, caller: Manager, id: Number) -> RemovedAnswer:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        text = await remove_convention(tx, id)
        await services.record(tx, caller, "remove", f"convention {id}", text=text)
    return RemovedAnswer()


@ROUTES.post("/conventions/test", summary="Try a convention on past items; nothing is changed")
async def post_trial(request: Request, caller: Viewer, wish: TrialWish) -> ShownTrial:
    return show_trial(await run_trial(request, caller, wish))


async def run_trial(request: Request, caller: Caller, wish: TrialWish) -> Trial:
    scope = caller.choose_scope(wish.client, wish.project)
    async with caller.reading(services_of(request).db) as tx:
        return await try_convention(tx, wish.text, scope, await choose_since(tx, wish.since))


def show_trial(trial: Trial) -> ShownTrial:
    return ShownTrial(
        text=trial.text,
        looked_at=trial.looked_at,
        fitting=[ShownFitting.model_validate(one, from_attributes=True) for one in trial.fitting],
        contradictions=[one.sentence for one in trial.contradictions],
    )


@ROUTES.get("/items/{id}/convention", summary="A convention that is made of the decision about an item")
async def get_suggestion(
    request: Request,
    caller: Viewer,
    id: Number,
    then: Annotated[Fate | None, Query(description="What becomes of items like it, if not the same.")] = None,
) -> Suggestion:
    async with caller.reading(services_of(request).db) as tx:
        scope, text = await suggest_from(tx, WorkItemId(id), then)
    return Suggestion(text=text, client=scope.client, project=scope.project)


# --- profiles


class ShownProfile(BaseModel):
    """Who “we” are in a scope; without lead days, those of the level above hold."""

    client: str
    project: str
    names: list[str]
    addresses: list[str]
    lead_days: int | None
    changed_at: datetime
    changed_by: str


class ProfileWish(BaseModel):
    """Who the people of a scope are; it replaces what was said before."""

    names: Annotated[list[str], Field(max_length=200)] = []
    addresses: Annotated[list[str], Field(max_length=200)] = []
    lead_days: Annotated[int | None, Field(ge=0, le=365)] = None
    client: Name = None
    project: Name = None


def show_profile(one: Profile) -> ShownProfile:
    return ShownProfile.model_validate(one, from_attributes=True)


@ROUTES.get("/profiles", summary="Who we are, for each client and project")
async def get_profiles(request: Request, caller: Viewer) -> Listing[ShownProfile]:
    async with caller.reading(services_of(request).db) as tx:
        return Listing(items=[show_profile(one) for one in await list_profiles(tx)])


@ROUTES.put("/profiles", summary="Say who we are for a client or project")
async def put_profile(request: Request, caller: Manager, wish: ProfileWish) -> ShownProfile:
    services = services_of(request)
    scope = caller.choose_scope(wish.client, wish.project)
    async with caller.transaction(services.db) as tx:
        one = await set_profile(
            tx, scope, caller.name, names=wish.names, addresses=wish.addresses, lead_days=wish.lead_days
        )
        await services.record(tx, caller, "set", f"profile {scope}", lead_days=one.lead_days)
    return show_profile(one)


@ROUTES.delete("/profiles", summary="Forget who we are for a client or project")
async def delete_profile(
    request: Request, caller: Manager, client: Client = None, project: Client = None
) -> RemovedAnswer:
    services = services_of(request)
    scope = caller.choose_scope(client, project)
    async with caller.transaction(services.db) as tx:
        await remove_profile(tx, scope)
        await services.record(tx, caller, "remove", f"profile {scope}")
    return RemovedAnswer()


# --- replays


class ReplayOrder(BaseModel):
    """Which past items are decided again."""

    since: Since = None
    client: Name = None
    project: Name = None


class ShownReplay(BaseModel):
    """How far a replay is; `report` is there when its status is completed."""

    task: int
    status: str
    error: str | None
    report: Mapping[str, Any] | None


@ROUTES.post("/replays", status_code=202, summary="Decide about past items again; nothing is changed")
async def post_replay(request: Request, caller: Manager, order: ReplayOrder) -> ShownReplay:
    task = await start_replay(request, caller, order)
    return ShownReplay(task=task, status="pending", error=None, report=None)


@ROUTES.get("/replays/{task}", summary="How far a replay is, and what it found")
async def get_replay(request: Request, caller: Viewer, task: Number) -> ShownReplay:
    async with caller.reading(services_of(request).db) as tx:
        return await load_replay(tx, TaskId(task))


async def start_replay(request: Request, caller: Caller, order: ReplayOrder) -> TaskId:
    services = services_of(request)
    scope = caller.choose_scope(order.client, order.project)
    everything = caller.is_operator and not order.client
    async with caller.transaction(services.db) as tx:
        letter = ReplayHistory(
            (await choose_since(tx, order.since)).isoformat(),
            None if everything else scope.client,
            None if everything else scope.project or None,
        )
        task = await send(tx, letter, foreground=True, scope=await scope_id(tx, scope))
        await services.record(tx, caller, "replay", f"decisions since {letter.since}", task=task)
    return task


async def load_replay(tx: Tx, id_: TaskId) -> ShownReplay:
    task = await get_task(tx, id_)
    if task.kind != ReplayHistory.kind:
        raise Unknown(f"There is no replay {id_}.")
    return ShownReplay(task=id_, status=task.status, error=task.error, report=task.result)


async def choose_since(tx: Tx, since: datetime | None) -> datetime:
    moment = await load_moment(tx)
    if since is None:
        return moment - SPAN
    return since if since.tzinfo else since.replace(tzinfo=moment.tzinfo)
