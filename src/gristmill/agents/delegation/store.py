"""Keeps delegations: how far each one is, its full output, and what each agent has cost and managed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from gristmill.agents.delegation.model import AgentOutput, DelegationMessage, DelegationStatus
from gristmill.agents.runs import Cost, clean_text, hold_run, write_keepable
from gristmill.db import Tx, queries
from gristmill.ids import RunId

SQL = queries("gristmill.agents.delegation", "delegations.sql")
KEEP = timedelta(days=90)
NO_COST = Cost()


@dataclass(frozen=True)
class Delegation:
    """A row of `agent_delegation`."""

    delegation: str
    parent: str | None
    depth: int
    agent: str
    task: str
    state: DelegationStatus
    attempts: int  # of its agent, since it got the delegation or a person let it try again
    earlier: int  # before a person let it try again
    asked: int
    question: str | None
    tried: Sequence[str]
    complaints: Sequence[str]
    output: Mapping[str, Any] | None
    summary: str
    tokens: int
    calls: int
    parts: int
    success: bool
    started_at: datetime
    finished_at: datetime | None

    @property
    def is_over(self) -> bool:
        return self.finished_at is not None

    def read_output(self) -> AgentOutput | None:
        return AgentOutput.model_validate(self.output) if self.output is not None else None


@dataclass(frozen=True)
class AgentMetrics:
    """What an agent did in all delegations that are kept; `seconds` is how long one took on average."""

    agent: str
    delegations: int
    succeeded: int
    failed: int
    open: int
    tokens: int
    calls: int
    parts: int
    seconds: float
    last_at: datetime


async def begin_delegation(tx: Tx, run: RunId, fence: int, message: DelegationMessage) -> Delegation:
    """The delegation as it stands; one that is over stays so."""
    await hold_run(tx, run, fence)
    found = await tx.one(
        SQL["begin_delegation"],
        Delegation,
        run=run,
        delegation=message.delegation_id,
        parent=message.parent_delegation_id,
        depth=message.depth,
        agent=message.agent_name,
        task=clean_text(message.task_summary),
    )
    assert found is not None, "a run that is held is there"
    return found


async def list_delegations(tx: Tx, run: RunId) -> list[Delegation]:
    """The oldest first."""
    return await tx.all(SQL["list_delegations"], Delegation, run=run)


async def count_visits(tx: Tx, run: RunId) -> int:
    """How many nodes a run has visited, each attempt at a delegation being one, too."""
    return await tx.value(SQL["count_visits"], int, run=run) or 0


async def note_attempt(tx: Tx, run: RunId, fence: int, row: Delegation, cost: Cost = NO_COST) -> None:
    """An attempt was judged, or a person has answered: `row` says how it goes on."""
    await hold_run(tx, run, fence)
    await tx.execute(
        SQL["note_attempt"],
        run=run,
        delegation=row.delegation,
        agent=row.agent,
        attempts=row.attempts,
        earlier=row.earlier,
        asked=row.asked,
        question=None if row.question is None else clean_text(row.question),
        tried=list(row.tried),
        complaints=[clean_text(one) for one in row.complaints],
        output=None if row.output is None else write_keepable(row.output),
        tokens=cost.tokens_in + cost.tokens_out,
        calls=cost.calls,
    )


async def interrupt_delegation(tx: Tx, run: RunId, fence: int, delegation: str) -> None:
    await hold_run(tx, run, fence)
    await tx.execute(SQL["interrupt_delegation"], run=run, delegation=delegation)


async def settle_delegation(tx: Tx, run: RunId, fence: int, row: Delegation, cost: Cost = NO_COST) -> None:
    """The delegation is over: completed, or failed."""
    await hold_run(tx, run, fence)
    await tx.execute(
        SQL["settle_delegation"],
        run=run,
        delegation=row.delegation,
        state=str(row.state),
        success=row.success,
        output=write_keepable(row.output),
        summary=clean_text(row.summary),
        complaints=[clean_text(one) for one in row.complaints],
        tokens=cost.tokens_in + cost.tokens_out,
        calls=cost.calls,
    )


async def list_agent_metrics(tx: Tx, since: datetime | None = None) -> list[AgentMetrics]:
    """What each agent did, by name; only of delegations that began after `since`."""
    return await tx.all(SQL["list_agent_metrics"], AgentMetrics, since=since)


async def drop_old_delegations(tx: Tx) -> None:
    await tx.execute(SQL["drop_old_delegations"], keep=KEEP)
