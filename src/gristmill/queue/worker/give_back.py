"""Gives back claims that never started: they are pending again, and no attempt is used."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from gristmill.db import Tx, array, queries
from gristmill.ids import TaskId, WorkerId
from gristmill.queue.claim import Claim
from gristmill.queue.operate.cancel import cancel

SQL = queries("gristmill.queue.worker", "give_back.sql")


class _GivenBack(NamedTuple):
    """How many tasks were given back, and which of them somebody had asked to cancel."""

    n: int
    cancelled: list[TaskId] | None


async def give_back_claims(tx: Tx, worker: WorkerId, claims: Sequence[Claim]) -> None:
    """Give back these tasks."""
    ids, leases = array(claim.id for claim in claims), array(claim.lease for claim in claims)
    row = await tx.one(SQL["give_back_claims"], _GivenBack, worker=worker, ids=ids, leases=leases)
    if row is not None and row.cancelled:  # asked for while we held it: nobody else was told
        await cancel(tx, row.cancelled)


async def give_back_leases(tx: Tx, worker: WorkerId, leases: Collection[int]) -> int:
    """Give back all tasks of these leases, whichever they are; how many there were."""
    row = await tx.one(SQL["give_back_leases"], _GivenBack, worker=worker, leases=array(leases))
    if row is not None and row.cancelled:
        await cancel(tx, row.cancelled)
    return row.n if row else 0
