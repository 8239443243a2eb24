"""Runs, their effects, questions to a person, and policies over HTTP."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from gristmill.agents.checkpoints import CheckpointSize, measure_checkpoints
from gristmill.agents.effects import Changes, EffectRow, EffectState, answer_question, list_effects
from gristmill.agents.policy import Policy, drop_policy, find_policy, load_policy, set_policy
from gristmill.agents.runs import (
    AgentStep,
    Question,
    QuestionKind,
    Run,
    RunState,
    RunWish,
    WantedRuns,
    list_questions,
    list_runs,
    list_steps,
    load_question,
    load_run,
)
from gristmill.agents.starting import LONGEST_WISH, begin_run
from gristmill.agents.stopping import end_run
from gristmill.ids import QuestionId, RunId
from gristmill.scopes import Scope
from gristmill.serving import (
    Administrator,
    Caller,
    Cursor,
    Listing,
    Manager,
    Viewer,
    read_cursor,
    services_of,
    write_cursor,
)

RUNS = APIRouter(prefix="/runs", tags=["runs"])
QUESTIONS = APIRouter(prefix="/questions", tags=["questions"])
POLICIES = APIRouter(prefix="/policy", tags=["policy"])
PORTION = 50
Number = Annotated[int, Field(ge=1, le=2**63 - 1)]
Limit = Annotated[int, Query(ge=1, le=500)]
Wanted = Annotated[str | None, Query(max_length=100)]
Entries = Annotated[list[str], Field(max_length=200)]


class ShownRun(BaseModel):
    """A run."""

    id: int
    client: str
    project: str
    request: str
    asked_by: str | None
    item: int | None
    item_type: str | None
    repository: str | None
    foreground: bool
    state: RunState
    task: int | None
    host: str | None
    report: str | None
    error: str | None
    stopped_by: str | None
    calls: int
    tokens_in: int
    tokens_out: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    unreached: str | None = Field(description="Of a completed run: “no goal reached”, or how many of them were not.")


class ShownRunDetail(ShownRun):
    """A run, and what its checkpoints take in the database."""

    checkpoints: int
    checkpoint_bytes: int


class ShownRunStep(BaseModel):
    """A step of a run."""

    id: int
    parent: int | None
    node: str
    title: str
    input: Any
    output: Any
    error: str | None
    model: str | None
    calls: int
    tokens_in: int
    tokens_out: int
    started_at: datetime
    finished_at: datetime | None


class ShownEffect(BaseModel):
    """Something that a run changed, or wants to change."""

    id: int
    run: int
    key: str
    tool: str
    summary: str
    arguments: Mapping[str, Any]
    prepared: Mapping[str, Any]
    changes: Changes
    repeatable: bool
    files: Sequence[str]
    origins: Sequence[Mapping[str, Any]]
    reasons: Sequence[str]
    state: EffectState
    attempt: int
    approved_by: str | None
    result: Mapping[str, Any] | None
    error: str | None
    intended_at: datetime
    approved_at: datetime | None
    started_at: datetime | None
    settled_at: datetime | None


class ShownQuestion(BaseModel):
    """A question that only a person can answer."""

    id: int
    run: int
    client: str
    project: str
    kind: QuestionKind
    sentence: str
    details: Mapping[str, Any]
    choices: Sequence[str]
    effect: int | None
    state: Literal["open", "answered", "withdrawn"]
    asked_at: datetime
    answered_at: datetime | None
    answered_by: str | None
    choice: str | None
    answer: str


class NewRun(BaseModel):
    """What shall be done."""

    request: str = Field(min_length=1, max_length=LONGEST_WISH)
    client: str | None = Field(default=None, max_length=100)
    project: str | None = Field(default=None, max_length=100)
    repository: str | None = Field(default=None, max_length=63, description="The git source to work on.")
    background: bool = Field(default=False, description="Nobody waits for it: whatever a person waits for goes first.")


class GivenAnswer(BaseModel):
    """One of the choices, or words where there are none; words may stand beside a choice, too."""

    choice: str | None = Field(default=None, max_length=100)
    answer: str = Field(default="", max_length=20_000)


class ShownPolicy(BaseModel):
    """What agents may do without asking. `is_own`: it was set for exactly this client and project."""

    client: str
    project: str
    is_own: bool
    branches: Sequence[str]
    forbidden_files: Sequence[str]
    max_files: int
    auto_push: bool
    recipients: Sequence[str]
    domains: Sequence[str]
    commands: Sequence[str]
    tools: Sequence[str]


class PolicyChange(BaseModel):
    """What is left out stays as it is."""

    client: str | None = Field(default=None, max_length=100)
    project: str | None = Field(default=None, max_length=100)
    branches: Entries | None = None
    forbidden_files: Entries | None = None
    max_files: Annotated[int, Field(ge=0, le=100_000)] | None = None
    auto_push: bool | None = None
    recipients: Entries | None = None
    domains: Entries | None = None
    commands: Entries | None = None
    tools: Entries | None = None


def show_run(run: Run) -> ShownRun:
    return ShownRun.model_validate({name: getattr(run, name) for name in ShownRun.model_fields})


def show_step(step: AgentStep) -> ShownRunStep:
    return ShownRunStep(**vars(step))


def show_effect(effect: EffectRow) -> ShownEffect:
    return ShownEffect.model_validate({name: getattr(effect, name) for name in ShownEffect.model_fields})


def show_question(question: Question) -> ShownQuestion:
    return ShownQuestion.model_validate({name: getattr(question, name) for name in ShownQuestion.model_fields})


def show_policy(policy: Policy, scope: Scope, *, is_own: bool) -> ShownPolicy:
    return ShownPolicy(client=scope.client, project=scope.project, is_own=is_own, **vars(policy))


# --- runs


@RUNS.get("")
async def get_runs(
    request: Request,
    caller: Viewer,
    state: Annotated[RunState | None, Query(description="Only runs in this state.")] = None,
    client: Wanted = None,
    project: Wanted = None,
    q: Annotated[str | None, Query(max_length=200, description="Words of the request.")] = None,
    cursor: Cursor = None,
    limit: Limit = PORTION,
) -> Listing[ShownRun]:
    """The newest runs first; with `q`, 2,000 runs are searched at a time: a short portion may still have a `next`."""
    wanted = WantedRuns([state] if state else None, client, project, q)
    found, more = await load_runs(request, caller, wanted, cursor, limit)
    return Listing(items=[show_run(one) for one in found], next=more)


@RUNS.post("", status_code=201)
async def post_run(request: Request, caller: Manager, body: NewRun) -> ShownRun:
    """Let agents do something; what changes the outside is asked for first."""
    scope = caller.choose_scope(body.client, body.project)
    wanted = RunWish(
        body.request, caller.name, scope, repository=body.repository or None, foreground=not body.background
    )
    return show_run(await start(request, caller, wanted))


@RUNS.get("/{id}")
async def get_run(request: Request, caller: Viewer, id: Number) -> ShownRunDetail:
    """One run."""
    run, size = await load_sized_run(request, caller, RunId(id))
    return ShownRunDetail(**show_run(run).model_dump(), checkpoints=size.checkpoints, checkpoint_bytes=size.bytes)


@RUNS.get("/{id}/steps")
async def get_steps(
    request: Request, caller: Viewer, id: Number, cursor: Cursor = None, limit: Limit = PORTION
) -> Listing[ShownRunStep]:
    """The steps of a run in the order in which they began."""
    after = read_cursor(cursor, int)
    async with caller.reading(services_of(request).db) as tx:
        run = await load_run(tx, RunId(id))
        found = await list_steps(tx, run.id, after=int(after[0]) if after else 0, limit=limit + 1)
    more = write_cursor(found[limit - 1].id) if len(found) > limit else None
    return Listing(items=[show_step(one) for one in found[:limit]], next=more)


@RUNS.get("/{id}/effects")
async def get_effects(
    request: Request, caller: Viewer, id: Number, cursor: Cursor = None, limit: Limit = PORTION
) -> Listing[ShownEffect]:
    """The ledger of a run: what it changed and wants to change, in the order of intention."""
    after = read_cursor(cursor, int)
    async with caller.reading(services_of(request).db) as tx:
        run = await load_run(tx, RunId(id))
        found = await list_effects(tx, run.id, after=int(after[0]) if after else 0, limit=limit + 1)
    more = write_cursor(found[limit - 1].id) if len(found) > limit else None
    return Listing(items=[show_effect(one) for one in found[:limit]], next=more)


@RUNS.post("/{id}/stop")
async def post_stop(request: Request, caller: Manager, id: Number) -> ShownRun:
    """End a run: it begins nothing more."""
    return show_run(await stop(request, caller, RunId(id)))


# --- questions


@QUESTIONS.get("")
async def get_questions(
    request: Request,
    caller: Viewer,
    run: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    all: Annotated[bool, Query(description="Also those that need no answer any more.")] = False,
    cursor: Cursor = None,
    limit: Limit = PORTION,
) -> Listing[ShownQuestion]:
    """Questions that wait for a person, the newest first."""
    found, more = await load_questions(request, caller, run, not all, cursor, limit)
    return Listing(items=[show_question(one) for one in found], next=more)


@QUESTIONS.get("/{id}")
async def get_question(request: Request, caller: Viewer, id: Number) -> ShownQuestion:
    """One question."""
    async with caller.reading(services_of(request).db) as tx:
        return show_question(await load_question(tx, QuestionId(id)))


@QUESTIONS.post("/{id}/answer")
async def post_answer(request: Request, caller: Manager, id: Number, body: GivenAnswer) -> ShownQuestion:
    """Answer a question; when none of its questions is open any more, the run goes on."""
    return show_question(await answer(request, caller, QuestionId(id), body.choice, body.answer))


# --- policies


@POLICIES.get("")
async def get_policy(request: Request, caller: Viewer, client: Wanted = None, project: Wanted = None) -> ShownPolicy:
    """What holds for a project: its own policy, its client's, or everybody's."""
    scope = caller.choose_scope(client, project)
    async with caller.reading(services_of(request).db) as tx:
        is_own = await find_policy(tx, scope) is not None
        return show_policy(await load_policy(tx, scope), scope, is_own=is_own)


@POLICIES.put("")
async def put_policy(request: Request, caller: Administrator, body: PolicyChange) -> ShownPolicy:
    """Change what agents may do in a project; the answer says what holds from now on."""
    services = services_of(request)
    scope = caller.choose_scope(body.client, body.project)
    changes = body.model_dump(exclude={"client", "project"}, exclude_none=True)
    async with caller.transaction(services.db) as tx:
        await set_policy(tx, scope, caller.name, **changes)
        await services.record(tx, caller, "set policy", str(scope), **changes)
        return show_policy(await load_policy(tx, scope), scope, is_own=True)


@POLICIES.delete("")
async def delete_policy(
    request: Request, caller: Administrator, client: Wanted = None, project: Wanted = None
) -> ShownPolicy:
    """Let a project have the policy of its client, or of everybody, again."""
    services = services_of(request)
    scope = caller.choose_scope(client, project)
    async with caller.transaction(services.db) as tx:
        if await drop_policy(tx, scope):
            await services.record(tx, caller, "drop policy", str(scope))
        return show_policy(await load_policy(tx, scope), scope, is_own=False)


# --- for pages, too


async def start(request: Request, caller: Caller, wanted: RunWish) -> Run:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        run = await begin_run(tx, wanted)
        await services.record(tx, caller, "start", f"run {run.id}", request=run.title)
    return run


async def load_sized_run(request: Request, caller: Caller, id_: RunId) -> tuple[Run, CheckpointSize]:
    """A run that the caller sees. Clients may not read checkpoints: the server counts them."""
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        run = await load_run(tx, id_)
    async with services.db.reading() as tx:
        return run, await measure_checkpoints(tx, id_)


async def load_runs(
    request: Request, caller: Caller, wanted: WantedRuns, cursor: str | None, limit: int
) -> tuple[list[Run], str | None]:
    """A portion of the list, and the cursor of the next one."""
    last = read_cursor(cursor, int)
    async with caller.reading(services_of(request).db) as tx:
        found, more = await list_runs(tx, wanted, before=int(last[0]) if last else None, limit=limit)
    return found, write_cursor(more) if more is not None else None


async def load_questions(
    request: Request, caller: Caller, run: int | None, is_open: bool, cursor: str | None, limit: int
) -> tuple[list[Question], str | None]:
    last = read_cursor(cursor, int)
    of_run = RunId(run) if run is not None else None
    async with caller.reading(services_of(request).db) as tx:
        before = int(last[0]) if last else None
        found = await list_questions(tx, run=of_run, is_open=is_open, before=before, limit=limit + 1)
    return found[:limit], write_cursor(found[limit - 1].id) if len(found) > limit else None


async def answer(request: Request, caller: Caller, id_: QuestionId, choice: str | None, words: str) -> Question:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        question = await answer_question(tx, id_, choice=choice, answer=words, by=caller.name)
        details = {"run": question.run, "choice": choice, "kind": question.kind}
        await services.record(tx, caller, "answer", f"question {id_}", **details)
    return question


async def stop(request: Request, caller: Caller, id_: RunId) -> Run:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        if await end_run(tx, id_, caller.name):
            await services.record(tx, caller, "stop", f"run {id_}")
        return await load_run(tx, id_)
