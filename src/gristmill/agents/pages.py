"""Pages about runs: questions that wait for a person, the runs, and the ledger of each."""

from typing import Annotated

from fastapi import APIRouter, Form, Path, Query, Request, Response

from gristmill.agents import api
from gristmill.agents.effects import list_effects
from gristmill.agents.runs import RunState, list_questions, list_steps, load_question, load_run
from gristmill.ids import QuestionId, RunId
from gristmill.serving import Cursor, Manager, Viewer, answer_action, services_of

QUESTIONS = APIRouter(prefix="/questions")
RUNS = APIRouter(prefix="/runs")
Number = Annotated[int, Path(ge=1, le=2**63 - 1)]
MOST_SHOWN = 500  # effects or steps of a run on its page


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
) -> Response:
    question = await api.answer(request, caller, QuestionId(id), choice, answer)
    async with caller.reading(services_of(request).db) as tx:
        left = len(await list_questions(tx, run=question.run))
    said = f"Run {question.run} goes on." if not left else f"Run {question.run} waits for {left} more."
    return answer_action(request, f"Question {id} is answered. {said}", back="/questions", go="/questions")


@RUNS.get("")
async def show_runs(
    request: Request, caller: Viewer, state: Annotated[RunState | None, Query()] = None, cursor: Cursor = None
) -> Response:
    found, more = await api.load_runs(request, caller, state, cursor, api.PORTION)
    which = f"?state={state}" if state else "?"
    return services_of(request).render(
        request,
        "agents/runs.html",
        runs=found,
        state=state,
        next=more and f"/runs{which}&cursor={more}",
        first=cursor and f"/runs{which}",
        here=f"/runs{which}",
    )


@RUNS.get("/{id}")
async def show_run(request: Request, caller: Viewer, id: Number) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        run = await load_run(tx, RunId(id))
        effects = await list_effects(tx, run.id, limit=MOST_SHOWN)
        steps = await list_steps(tx, run.id, limit=MOST_SHOWN)
        questions = await list_questions(tx, run=run.id)
    return services.render(request, "agents/run.html", run=run, effects=effects, steps=steps, questions=questions)


@RUNS.post("/{id}/stop")
async def stop_run(request: Request, caller: Manager, id: Number) -> Response:
    await api.stop(request, caller, RunId(id))
    return answer_action(request, f"Run {id} is stopped: it begins nothing more.", back=f"/runs/{id}", go=f"/runs/{id}")
