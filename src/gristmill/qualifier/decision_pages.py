"""The pages of decisions: conventions with their trials, who we are, and what a replay would change."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Form, Request, Response

from gristmill.errors import Refused
from gristmill.ids import TaskId, WorkItemId
from gristmill.qualifier.conventions import (
    find_all_contradictions,
    find_contradictions_with,
    list_conventions,
    list_versions,
    load_convention,
)
from gristmill.qualifier.decision_api import (
    ConventionChange,
    ConventionWish,
    Number,
    ProfileWish,
    ReplayOrder,
    TrialWish,
    delete_convention,
    load_replay,
    patch_convention,
    post_convention,
    put_profile,
    run_trial,
    start_replay,
)
from gristmill.qualifier.decisions import load_moment
from gristmill.qualifier.profiles import list_profiles
from gristmill.qualifier.trying import Trial, suggest_from
from gristmill.serving import Caller, Manager, Viewer, answer_action, services_of

PAGES = APIRouter()
LONGEST = 2_000
Text = Annotated[str, Form(max_length=LONGEST)]
Name = Annotated[str, Form(max_length=100)]
Many = Annotated[str, Form(max_length=20_000)]
TRIED = 20  # items of a trial that are shown


@PAGES.get("/conventions")
async def show_conventions(request: Request, caller: Viewer, item: int | None = None) -> Response:
    """With `item`, the form holds a convention that is made of its decision."""
    text = ""
    if item is not None:
        async with caller.reading(services_of(request).db) as tx:
            _, text = await suggest_from(tx, WorkItemId(item))
    return await _render(request, caller, text=text, origin=item)


@PAGES.post("/conventions")
async def state_convention(
    request: Request,
    caller: Manager,
    text: Text = "",
    note: Annotated[str, Form(max_length=500)] = "",
    client: Name = "",
    project: Name = "",
    origin: Annotated[str, Form(max_length=20)] = "",
    only_try: Annotated[bool, Form()] = False,
) -> Response:
    """State it, or with `only_try` look which past items it would have held for."""
    item = int(origin) if origin.isdecimal() else None
    try:
        if only_try:
            trial = await run_trial(
                request, caller, TrialWish(text=text or " ", client=client or None, project=project or None)
            )
            return await _render(request, caller, text=text, note=note, origin=item, trial=trial)
        wish = ConventionWish(text=text or " ", note=note, client=client or None, project=project or None, origin=item)
        added = await post_convention(request, caller, wish)
    except Refused as refused:
        return await _render(request, caller, text=text, note=note, origin=item, wrong=str(refused), status=422)
    return answer_action(request, f"Convention {added.id} holds from now on.", back="/conventions", go="/conventions")


async def _render(
    request: Request,
    caller: Caller,
    *,
    text: str = "",
    note: str = "",
    origin: int | None = None,
    trial: Trial | None = None,
    wrong: str | None = None,
    status: int = 200,
) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        known, profiles = await list_conventions(tx), await list_profiles(tx)
    return services.render(
        request,
        "qualifier/conventions.html",
        status=status,
        conventions=known,
        contradictions=find_all_contradictions(known),
        profiles=profiles,
        lead_days=services.settings.qualifier.lead_days,
        text=text,
        note=note,
        origin=origin,
        trial=trial,
        tried=TRIED,
        wrong=wrong,
    )


@PAGES.get("/conventions/{id}")
async def show_convention(request: Request, caller: Viewer, id: Number) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        one, versions = await load_convention(tx, id), await list_versions(tx, id)
        found = await find_contradictions_with(tx, one.text, one.scope)
    return services.render(
        request,
        "qualifier/convention.html",
        convention=one,
        versions=versions,
        contradictions=found,
        wrong=None,
        text=one.text,
    )


@PAGES.post("/conventions/{id}/change")
async def change_convention(request: Request, caller: Manager, id: Number, text: Text) -> Response:
    try:
        await patch_convention(request, caller, id, ConventionChange(text=text or " "))
    except Refused as refused:
        services = services_of(request)
        async with caller.reading(services.db) as tx:
            one, versions = await load_convention(tx, id), await list_versions(tx, id)
        return services.render(
            request,
            "qualifier/convention.html",
            status=422,
            convention=one,
            versions=versions,
            contradictions=(),
            wrong=str(refused),
            text=text,
        )
    back = f"/conventions/{id}"
    return answer_action(request, f"Convention {id} is changed from now on.", back=back, go=back)


@PAGES.post("/conventions/{id}/enable")
async def enable_convention(request: Request, caller: Manager, id: Number) -> Response:
    await patch_convention(request, caller, id, ConventionChange(enabled=True))
    return answer_action(request, f"Convention {id} holds again.", back="/conventions")


@PAGES.post("/conventions/{id}/disable")
async def disable_convention(request: Request, caller: Manager, id: Number) -> Response:
    await patch_convention(request, caller, id, ConventionChange(enabled=False))
    return answer_action(request, f"Convention {id} rests.", back="/conventions", undo=f"/conventions/{id}/enable")


@PAGES.post("/conventions/{id}/remove")
async def remove_convention(request: Request, caller: Manager, id: Number) -> Response:
    await delete_convention(request, caller, id)
    return answer_action(request, f"Convention {id} holds no more.", back="/conventions", go="/conventions")


@PAGES.post("/profiles")
async def set_profile(
    request: Request,
    caller: Manager,
    names: Many = "",
    addresses: Many = "",
    lead_days: Annotated[str, Form(max_length=3)] = "",
    client: Name = "",
    project: Name = "",
) -> Response:
    """Names and addresses stand on lines of their own."""
    wish = ProfileWish(
        names=names.splitlines(),
        addresses=addresses.splitlines(),
        lead_days=int(lead_days) if lead_days.isdecimal() and int(lead_days) <= 365 else None,
        client=client or None,
        project=project or None,
    )
    await put_profile(request, caller, wish)
    return answer_action(request, "The profile is set.", back="/conventions", go="/conventions")


# --- replays


@PAGES.get("/replay")
async def show_replay_form(request: Request, caller: Viewer) -> Response:
    return services_of(request).render(request, "qualifier/replay.html", replay=None, wrong=None)


@PAGES.post("/replay")
async def begin_replay(request: Request, caller: Manager, days: Annotated[int, Form(ge=1, le=3_650)] = 30) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        since = await load_moment(tx) - timedelta(days=days)
    task = await start_replay(request, caller, ReplayOrder(since=since))
    return answer_action(request, "The replay has begun.", back=f"/replay/{task}", go=f"/replay/{task}")


@PAGES.get("/replay/{task}")
async def show_replay(request: Request, caller: Viewer, task: Number) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        found = await load_replay(tx, TaskId(task))
    return services.render(request, "qualifier/replay.html", replay=found, here=request.url.path, wrong=None)
