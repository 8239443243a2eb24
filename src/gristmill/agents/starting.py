"""Starts a run as a person asks for it, and says at once what could not work."""

from gristmill.agents.runs import Run, RunWish, load_run, start_run
from gristmill.agents.workspaces import find_repository
from gristmill.db import Tx


async def begin_run(tx: Tx, wanted: RunWish) -> Run:
    """The run on its way; Unknown if the repository that it names does not exist."""
    run = await load_run(tx, await start_run(tx, wanted))
    if run.repository is not None:
        await find_repository(tx, run)
    return run
