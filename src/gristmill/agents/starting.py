"""Starts a run as a person asks for it, and says at once what could not work."""

from gristmill.agents.runs import Run, RunWish, load_run, start_run
from gristmill.agents.workspaces import find_repository
from gristmill.db import Tx
from gristmill.errors import Refused
from gristmill.queue import list_queues

QUEUE = "agents"  # of the letter RunAgent
LONGEST_WISH = 8_000  # characters: a prompt shows 6,000 tokens of a request, and nothing of this one is left out


async def begin_run(tx: Tx, wanted: RunWish) -> Run:
    """The run on its way; Unknown if the repository that it names does not exist."""
    if len(wanted.request) > LONGEST_WISH:
        raise Refused(f"The request has {len(wanted.request):,} characters: at most {LONGEST_WISH:,} are read.")
    run = await load_run(tx, await start_run(tx, wanted))
    if run.repository is not None:
        await find_repository(tx, run)
    return run


async def has_run_worker(tx: Tx) -> bool:
    """Whether a worker is there that carries runs."""
    return any(one.workers for one in await list_queues(tx) if one.name == QUEUE)
