"""Pages about runs: the list, one run with its graph, steps and ledger, and the questions that wait for a person."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Path, Query, Request, Response

from gristmill.agents import api
from gristmill.agents.effects import list_effects
from gristmill.agents.picture import draw_run
from gristmill.agents.runs import (
    LOOK,
    STATES,
    Run,
    RunState,
    RunWish,
    StepLine,
    WantedRuns,
    list_questions,
    list_step_lines,
    load_question,
    load_run,
    load_step,
)
from gristmill.agents.starting import LONGEST_WISH
from gristmill.agents.step_tree import grow_tree, keep_last, keep_node, walk
from gristmill.ids import QuestionId, RunId, StepId
from gristmill.scopes import list_clients
from gristmill.serving import Cursor, Manager, Viewer, answer_action, is_partial, services_of, stay_here
from gristmill.sources import list_sources
from gristmill.wording import format_bytes, format_count

QUESTIONS = APIRouter(prefix="/questions")
RUNS = APIRouter(prefix="/runs")
Number = Annotated[int, Path(ge=1, le=2**63 - 1)]
Name = Annotated[str, Form(max_length=100)]
MOST_EFFECTS = 500  # on the page of a run
MOST_STEPS = 60  # the last ones, unless somebody asks for all


# --- the list


@dataclass(frozen=True)
class AskedRuns:
    """Which runs the list shows; all of it is in the address."""

    state: RunState | None = None
    client: str = ""
    q: str = ""

    @property
    def params(self) -> dict[str, str]:
        return {name: value for name, value in vars(self).items() if value}

    @property
    def wanted(self) -> WantedRuns:
        return WantedRuns([self.state] if self.state else None, self.client or None, None, self.q or None)

    def link(self, **changed: str | None) -> str:
        kept = {name: value for name, value in {**self.params, **changed}.items() if value}
        return f"/runs?{urlencode(kept)}" if kept else "/runs"


@RUNS.get("")
async def show_runs(
    request: Request,
    caller: Viewer,
    state: Annotated[RunState | str, Query(max_length=20)] = "",
    client: Annotated[str, Query(max_length=100)] = "",
    q: Annotated[str, Query(max_length=200)] = "",
    cursor: Cursor = None,
) -> Response:
    services = services_of(request)
    asked = AskedRuns(next((one for one in STATES if one == state), None), client.strip(), q.strip())
    found, more = await api.load_runs(request, caller, asked.wanted, cursor, api.PORTION)
    async with caller.reading(services.db) as tx:
        clients = await list_clients(tx) if caller.is_operator else []
    return services.render(
        request,
        "agents/runs.html",
        runs=found,
        asked=asked,
        states=STATES,
        clients=clients,
        next=more and asked.link(cursor=more),
        looked_at=format_count(LOOK, "run"),
        is_first=cursor is None,
    )


# --- a new one


@RUNS.get("/new")
async def show_new(request: Request, caller: Manager) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        clients = await list_clients(tx) if caller.is_operator else []
        repositories = [one for one in await list_sources(tx) if one.kind == "git"]
    return services.render(
        request,
        "agents/run_new.html",
        clients=clients,
        repositories=repositories,
        longest=LONGEST_WISH,
        partial=is_partial(request),
    )


@RUNS.post("")
async def start_run(
    request: Request,
    caller: Manager,
    wish: Annotated[str, Form(max_length=LONGEST_WISH)] = "",
    client: Name = "",
    project: Name = "",
    repository: Name = "",
    background: Annotated[bool, Form()] = False,
) -> Response:
    scope = caller.choose_scope(client or None, project or None)
    wanted = RunWish(wish, caller.name, scope, repository=repository or None, foreground=not background)
    run = await api.start(request, caller, wanted)
    return answer_action(request, f"Run {run.id} is on its way.", back="/runs", go=f"/runs/{run.id}")


# --- one run


@RUNS.get("/{id}")
async def show_run(
    request: Request,
    caller: Viewer,
    id: Number,
    node: Annotated[str, Query(max_length=200)] = "",
    all: Annotated[bool, Query()] = False,
) -> Response:
    services = services_of(request)
    run, size = await api.load_sized_run(request, caller, RunId(id))
    async with caller.reading(services.db) as tx:
        effects = await list_effects(tx, run.id, limit=MOST_EFFECTS)
        steps = await list_step_lines(tx, run.id)
        questions = await list_questions(tx, run=run.id)
    fits = keep_node(steps, node) if node else steps
    shown = fits if all else keep_last(fits, MOST_STEPS)
    return services.render(
        request,
        "agents/run.html",
        run=run,
        effects=effects,
        questions=questions[::-1],  # the one that was asked first comes first
        picture=draw_run(run, steps),
        node=node,
        all=all,
        here=_write_address(run, node, all),
        steps=len(steps),
        size=size,
        sized=format_bytes(size.bytes),
        hidden=len(fits) - len(shown),
        **_arrange(run, steps, shown),
    )


def _write_address(run: Run, node: str, all_: bool) -> str:
    params = {name: value for name, value in (("node", node), ("all", "true" if all_ else "")) if value}
    return f"/runs/{run.id}{'?' if params else ''}{urlencode(params)}"


def _arrange(run: Run, steps: Sequence[StepLine], shown: Sequence[StepLine]) -> dict[str, Any]:
    numbers = {one.id: number for number, one in enumerate(steps, 1)}
    times = [one.started_at for one in steps] + [one.finished_at for one in steps if one.finished_at]
    ended = run.finished_at or max(times, default=None)
    took = ended - run.started_at if ended and run.started_at and run.state != "running" else None
    return {"twigs": list(walk(grow_tree(run, shown, numbers))), "took": took}


@RUNS.get("/{id}/steps/{step}")
async def show_step(request: Request, caller: Viewer, id: Number, step: Number) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        run = await load_run(tx, RunId(id))
        found = await load_step(tx, run.id, StepId(step))
    return services.render(request, "agents/step.html", step=found, run=run, partial=is_partial(request))


@RUNS.post("/{id}/stop")
async def stop_run(request: Request, caller: Manager, id: Number) -> Response:
    await api.stop(request, caller, RunId(id))
    return answer_action(request, f"Run {id} is stopped: it begins nothing more.", back=f"/runs/{id}")


# --- questions


@QUESTIONS.get("")
async def show_questions(
    request: Request, caller: Viewer, all: Annotated[bool, Query()] = False, cursor: Cursor = None
) -> Response:
    found, more = await api.load_questions(request, caller, None, not all, cursor, api.PORTION)
    which = "?all=true" if all else "?"
    return services_of(request).render(
        request,
        "agents/questions.html",
        questions=found,
        all=all,
        next=more and f"/questions{which}&cursor={more}",
        first=cursor and f"/questions{which}",
        here=f"/questions{which}",
    )


@QUESTIONS.get("/{id}")
async def show_question(request: Request, caller: Viewer, id: Number) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        question = await load_question(tx, QuestionId(id))
        run = await load_run(tx, question.run)
    return services.render(request, "agents/question.html", question=question, run=run)


@QUESTIONS.post("/{id}/answer")
async def answer_question(
    request: Request,
    caller: Manager,
    id: Number,
    choice: Annotated[str | None, Form(max_length=100)] = None,
    answer: Annotated[str, Form(max_length=20_000)] = "",
    back: Annotated[str, Form(max_length=500)] = "",
) -> Response:
    """Answer in place; from the page of the question alone, the way leads back to the others."""
    question = await api.answer(request, caller, QuestionId(id), choice, answer)
    async with caller.reading(services_of(request).db) as tx:
        left = len(await list_questions(tx, run=question.run))
        is_over = (await load_run(tx, question.run)).has_ended
    goes_on = "is over" if is_over else "goes on"
    said = f"Run {question.run} {f'waits for {left} more' if left else goes_on}."
    address = stay_here(back, "/questions")
    return answer_action(request, f"Question {id} is answered. {said}", back=address, go=None if back else "/questions")
