"""How things are done in a project: procedures that people stated, and those that runs succeeded with."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

from gristmill.agents.memory.matching import measure_fit, measure_strength
from gristmill.agents.memory.model import (
    FORGOTTEN,
    LONGEST_ACTION,
    LONGEST_PATTERN,
    MOST_LEARNED,
    MOST_STEPS,
    Meaning,
    ProcedureNode,
    ProcedureSource,
    ProcedureStep,
)
from gristmill.agents.memory.sessions import SQL
from gristmill.agents.runs import Run, clean_text, write_keepable
from gristmill.db import Database, Tx, Vector
from gristmill.errors import GristmillError, Refused, Unknown
from gristmill.knowledge import Embedders, vectors
from gristmill.scopes import Scope, scope_id
from gristmill.telemetry import log

AGENT = re.compile(r"[a-z][a-z_]{1,39}")
MOST_CANDIDATES = 1_000
MOST_FILLED = 50  # vectors that are made in one round
LONGEST_PARAMETERS = 2_000  # characters
Steps = Sequence[ProcedureStep]


@dataclass(frozen=True)
class _Row:
    id: int
    client_id: str
    project: str
    trigger_pattern: str
    steps: list[dict[str, Any]]
    source: ProcedureSource
    stated_by: str | None
    successes: int
    failures: int
    last_used: datetime | None
    created_at: datetime
    idle: float

    def read(self) -> ProcedureNode:
        values = {one.name: getattr(self, one.name) for one in fields(_Row) if one.name != "steps"}
        return ProcedureNode(**values, procedure_steps=[ProcedureStep(**step) for step in self.steps])


@dataclass(frozen=True)
class _Candidate(_Row):
    similarity: float | None


@dataclass(frozen=True)
class _Learned:
    id: int
    scope: int
    successes: int
    failures: int
    idle: float

    @property
    def strength(self) -> float:
        return measure_strength(self.successes, self.failures, timedelta(seconds=self.idle))


class _Bare(NamedTuple):
    id: int
    trigger_pattern: str


async def grasp(embedders: Embedders, text: str) -> Meaning | None:
    """The vector of a text, made before a transaction; None where no model answers: then words alone count."""
    for embedder in vectors.available_embedders(embedders):
        try:
            return Meaning(embedder.name, await embedder.embed_question(text[:2_000]))
        except GristmillError as error:
            log.warning("no vector for a procedure", model=embedder.name, error=str(error))
    return None


async def fill_meanings(db: Database, embedders: Embedders) -> int:
    """Give procedures a vector of the model that is used now, if they have none; how many got one."""
    (ours, *_) = vectors.available_embedders(embedders)
    async with db.reading() as tx:
        bare = await tx.all(SQL["list_without_meaning"], _Bare, model=ours.name, limit=MOST_FILLED)
    filled = 0
    for one in bare:
        meaning = await grasp(ours, one.trigger_pattern)
        if meaning is None:
            break  # the model does not answer now: the next round tries again
        async with db.transaction() as tx:
            await tx.execute(SQL["set_meaning"], id=one.id, model=meaning.model, vector=Vector(meaning.vector))
        filled += 1
    return filled


async def find_procedures(
    tx: Tx, scope: Scope, request: str, *, meaning: Meaning | None = None, limit: int = 3
) -> Sequence[ProcedureNode]:
    """The procedures that fit a request: first those that people stated, then the strongest. A look is not counted."""
    candidates = await tx.all(
        SQL["find_candidates"],
        _Candidate,
        client=scope.client,
        project=scope.project,
        model=meaning.model if meaning else None,
        near=Vector(meaning.vector) if meaning else None,
        limit=MOST_CANDIDATES,
    )
    found = [(measure_fit(one.trigger_pattern, request, one.similarity), one.read()) for one in candidates]
    fitting = [(fit, one) for fit, one in found if fit > 0]
    return [one for _, one in sorted(fitting, key=_rank)][:limit]


def _rank(found: tuple[float, ProcedureNode]) -> tuple[bool, int, float]:
    """Stated ones before learned ones, the project's before its client's before everybody's, then the better ones."""
    fit, one = found
    distance = 0 if one.project else 1 if one.client_id else 2
    return one.source == "learned", distance, -fit * one.strength


def write_procedure(one: ProcedureNode) -> str:
    """A procedure as a text for a model that plans."""
    who = f"stated by {one.stated_by}" if one.stated_by else f"succeeded {one.successes} of {one.usage_count} times"
    steps = "\n".join(f"  {n}. {step.agent}: {step.action}" for n, step in enumerate(one.procedure_steps, 1))
    return f"For requests like “{one.trigger_pattern}” ({who}):\n{steps}"


# --- what people state


async def state_procedure(
    tx: Tx, scope: Scope, pattern: str, steps: Steps, by: str, *, meaning: Meaning | None = None
) -> ProcedureNode:
    """A person says how something is done."""
    id_ = await _add(tx, await scope_id(tx, scope), pattern, check_steps(steps), meaning, stated_by=by)
    if id_ is None:
        raise Refused("Exactly this procedure is there already: gristmill procedure ls shows it.")
    return await load_procedure(tx, id_)


def read_step(text: str) -> ProcedureStep:
    """`git: make the branch agent/release`, as a person writes a step."""
    agent, colon, action = text.partition(":")
    if not colon:
        raise Refused(f"“{text[:80]}” is no step: write which agent does what, for example “test: run the tests”.")
    return ProcedureStep(agent.strip(), action.strip())


def check_steps(steps: Steps) -> Steps:
    if not 1 <= len(steps) <= MOST_STEPS:
        raise Refused(f"A procedure has from 1 to {MOST_STEPS} steps, not {len(steps)}.")
    for step in steps:
        if not AGENT.fullmatch(step.agent):
            raise Refused(f"“{step.agent[:80]}” is no name of an agent: write for example coding, test or general.")
        if not step.action.strip() or len(step.action) > LONGEST_ACTION:
            raise Refused(f"What {step.agent} does is said in 1 to {LONGEST_ACTION} characters.")
        if len(write_keepable(dict(step.parameters))) > LONGEST_PARAMETERS:
            raise Refused(f"The parameters of {step.agent} have more than {LONGEST_PARAMETERS:,} characters.")
    return steps


async def load_procedure(tx: Tx, id_: int) -> ProcedureNode:
    found = await tx.one(SQL["load_procedure"], _Row, id=id_)
    if found is None:
        raise Unknown(f"There is no procedure {id_}.", listed_by="gristmill procedure ls")
    return found.read()


async def list_procedures(tx: Tx, scope: Scope | None = None, *, limit: int = 200) -> list[ProcedureNode]:
    """Those that people stated first; of one client or project, or all that are seen."""
    client, project = (scope.client, scope.project) if scope is not None else (None, None)
    rows = await tx.all(SQL["list_procedures"], _Row, client=client, project=project, limit=limit)
    return [row.read() for row in rows]


async def remove_procedure(tx: Tx, id_: int) -> None:
    if await tx.value(SQL["remove_procedure"], id=id_) is None:
        raise Unknown(f"There is no procedure {id_}.", listed_by="gristmill procedure ls")


# --- what runs teach


async def learn(tx: Tx, run: Run, steps: Steps, *, meaning: Meaning | None = None) -> int | None:
    """Learn from a run that succeeded: by which agents it was done, for requests like its own.

    A procedure that fits and has the same steps is used once more; its number is returned. Nothing is
    learned from a run that nobody asked for: the sender of a mail could otherwise teach us what to do. Of the
    parameters only those are kept that the person named.
    """
    if run.asked_by is None or not steps:
        return None
    kept = [_reduce(step, run.request) for step in steps[:MOST_STEPS]]
    shape = [(step.agent, step.action) for step in kept]
    for one in await find_procedures(tx, run.place, run.request, meaning=meaning, limit=MOST_CANDIDATES):
        if [(step.agent, step.action) for step in one.procedure_steps] == shape:
            await note_use(tx, one.id, run, succeeded=True)
            return one.id
    id_ = await _add(tx, run.scope, run.title, kept, meaning)
    if id_ is not None:
        await note_use(tx, id_, run, succeeded=True)
    return id_


async def note_use(tx: Tx, id_: int, run: Run, *, succeeded: bool) -> None:
    """A run followed a procedure; each run counts once."""
    await tx.execute(SQL["count_use"], id=id_, run=run.id, successes=int(succeeded), failures=int(not succeeded))


def _reduce(step: ProcedureStep, request: str) -> ProcedureStep:
    """A step without values that no person named: they may come from a text that was read."""
    named = {name: value for name, value in step.parameters.items() if _is_named(value, request)}
    agent = step.agent if AGENT.fullmatch(step.agent) else "general"
    action = " ".join(clean_text(step.action).split())[:LONGEST_ACTION] or "do it"
    return ProcedureStep(agent, action, named)


def _is_named(value: Any, request: str) -> bool:
    if isinstance(value, str):
        return bool(value) and value in request
    return isinstance(value, bool | int | float)


async def _add(
    tx: Tx, scope: int, pattern: str, steps: Steps, meaning: Meaning | None, *, stated_by: str | None = None
) -> int | None:
    line = " ".join(clean_text(pattern).split())
    if not 1 <= len(line) <= LONGEST_PATTERN:
        raise Refused(f"Requests that a procedure is for are described in 1 to {LONGEST_PATTERN} characters.")
    written = write_keepable([_write_step(step) for step in steps])
    return await tx.value(
        SQL["add_procedure"],
        int,
        scope=scope,
        trigger_pattern=line,
        steps=written,
        hash=sha256(f"{line}\n{written}".encode()).digest(),
        source="user_defined" if stated_by else "learned",
        stated_by=stated_by,
        model=meaning.model if meaning else None,
        vector=Vector(meaning.vector) if meaning else None,
    )


def _write_step(step: ProcedureStep) -> Mapping[str, Any]:
    return {"agent": step.agent, "action": step.action, "parameters": dict(step.parameters)}


async def tidy_procedures(tx: Tx) -> None:
    """Forget learned procedures that have faded, and the weakest where there are too many."""
    by_scope: dict[int, list[_Learned]] = {}
    for one in await tx.all(SQL["list_learned"], _Learned):
        by_scope.setdefault(one.scope, []).append(one)
    gone: list[int] = []
    for learned in by_scope.values():
        ranked = sorted(learned, key=lambda one: one.strength, reverse=True)
        gone += [one.id for n, one in enumerate(ranked) if n >= MOST_LEARNED or one.strength < FORGOTTEN]
    if gone:
        await tx.execute(SQL["drop_learned"], ids=gone)
