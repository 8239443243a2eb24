"""Samples the counters of all queues once a minute, so that charts can show what happened when."""

from datetime import timedelta

from gristmill.db import Tx, queries
from gristmill.settings import QueueSettings

SQL = queries("gristmill.queue.upkeep", "sampler.sql")
BACK = timedelta(seconds=30)  # a sample is taken just after its minute has ended


async def sample(tx: Tx, settings: QueueSettings) -> bool:
    """Write down what changed since the last sample; False if somebody else is at it.

    Any number of workers may do so at any time: what is counted stands in one sample.
    """
    if not await tx.value(SQL["lock"]):
        return False
    await tx.execute(SQL["sample"], back=BACK)
    await tx.execute(SQL["roll_up"], keep_minutes=settings.minutes_keep_for)
    await tx.execute(SQL["old_hours"], keep_hours=settings.hours_keep_for)
    await tx.execute(SQL["old_runs"], keep_hours=settings.hours_keep_for)
    await tx.execute(SQL["old_bulks"], keep_hours=settings.hours_keep_for)
    await tx.flush()
    return True


async def time_until_sample(tx: Tx) -> float:
    """Seconds until the present minute has ended."""
    return await tx.only_value(SQL["until_next_minute"], float)
