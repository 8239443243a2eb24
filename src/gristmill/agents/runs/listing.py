"""Lists of runs and questions, the newest first; what is stored beside does not make them slower."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from gristmill.agents.runs.model import STATES, Run, RunState
from gristmill.agents.runs.questions import Question
from gristmill.db import Tx, queries
from gristmill.ids import RunId, ScopeId

SQL = queries("gristmill.agents.runs", "listing.sql")
LOOK = 2_000  # runs whose words one portion looks through
NEWEST = 2**63 - 1


@dataclass(frozen=True)
class WantedRuns:
    """Which runs a list shows; None does not matter."""

    states: Sequence[RunState] | None = None
    client: str | None = None
    project: str | None = None
    text: str | None = None  # in the request


ALL_RUNS = WantedRuns()


class RunPortion(NamedTuple):
    """Some runs; `next` is the run behind which the list goes on, None at its end."""

    runs: list[Run]
    next: int | None


async def list_runs(
    tx: Tx, wanted: WantedRuns = ALL_RUNS, *, before: int | None = None, limit: int = 100
) -> RunPortion:
    """Runs, newest first; words are searched in a fixed number of runs: a portion may be short and not the last."""
    look = max(LOOK, limit + 1) if wanted.text else limit + 1
    ids = await _find_runs(tx, wanted, before=NEWEST if before is None else before, look=look)
    found = await tx.all(SQL["fitting_runs"], Run, ids=ids, text=wanted.text or None, limit=limit + 1)
    if len(found) > limit:
        return RunPortion(found[:limit], found[limit - 1].id)
    return RunPortion(found, ids[-1] if len(ids) == look else None)


async def _find_runs(tx: Tx, wanted: WantedRuns, **where: int) -> list[int]:
    scopes = await _choose_scopes(tx, wanted.client, wanted.project)
    states = list(wanted.states or STATES)
    if scopes is None:
        return await tx.values(SQL["newest_runs"], int, states=states, **where)
    return await tx.values(SQL["newest_runs_of_scopes"], int, scopes=scopes, states=states, **where)


async def list_questions(
    tx: Tx, *, run: RunId | None = None, is_open: bool = True, before: int | None = None, limit: int = 100
) -> list[Question]:
    """The newest first; `is_open` leaves out those that need no answer any more."""
    where = {"before": NEWEST if before is None else before, "limit": limit}
    if run is not None:
        return await tx.all(SQL["questions_of_run"], Question, run=run, is_open=is_open, **where)
    if (scopes := await _choose_scopes(tx)) is None:
        stream = SQL["open_questions"] if is_open else SQL["newest_questions"]
        ids = await tx.values(stream, int, **where)
    else:
        stream = SQL["open_questions_of_scopes"] if is_open else SQL["newest_questions_of_scopes"]
        ids = await tx.values(stream, int, scopes=scopes, **where)
    return await tx.all(SQL["these_questions"], Question, ids=ids)


async def _choose_scopes(tx: Tx, client: str | None = None, project: str | None = None) -> list[ScopeId] | None:
    """The scopes that a list looks at; None for an operator who wants all of them."""
    is_tenant = tx.seen_from is not None
    if not is_tenant and client is None and project is None:
        return None
    return await tx.only_value(
        SQL["scopes_looked_at"], list[ScopeId], client=client, project=project, is_tenant=is_tenant
    )
