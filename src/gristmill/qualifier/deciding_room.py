"""What decisions give to the room: their letters and handlers, the queues of these, and the alarm of silent items."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from gristmill.db import Database, Tx
from gristmill.qualifier.asking import ask_llm
from gristmill.qualifier.atoms import keep_atom
from gristmill.qualifier.letters import AskLlm, KeepAtom, ReplayHistory
from gristmill.qualifier.llm_pass import ROUNDS
from gristmill.qualifier.replay import DecisionReplayWish, describe_report, replay
from gristmill.qualifier.silence import SILENT_ITEMS, find_silent_items
from gristmill.queue import Done, Handler, Letter, current, on, set_queue
from gristmill.rooms import Tools, Watch
from gristmill.scopes import Scope
from gristmill.settings import QualifierSettings, Settings

DECIDING_LETTERS: Sequence[type[Letter]] = (AskLlm, KeepAtom, ReplayHistory)
DECIDING_ALARMS = (Watch((SILENT_ITEMS,), find_silent_items),)
FIRST_PAUSE = timedelta(seconds=5)  # before a busy LLM is asked again; twice as long each time …
LONGEST_PAUSE = timedelta(minutes=5)  # … up to this
REPLAY_LIMIT = timedelta(hours=12)
REPLAY_PROCESSES = 2


def bind_deciding(tools: Tools) -> list[Handler]:
    db, models, settings = tools.db, tools.models, tools.settings
    patience = ROUNDS * settings.llm.timeout
    asking = partial(ask_llm, tools=tools, llm=models.llm)
    keeping = partial(keep_atom, db=db, embedders=[models.embedder, models.built_in_embedder])
    return [
        on(AskLlm, asking, timeout=patience, at_once=settings.qualifier.at_once),
        on(KeepAtom, keeping),
        on(ReplayHistory, partial(replay_history, db=db, settings=settings.qualifier), timeout=REPLAY_LIMIT, at_once=1),
    ]


async def set_up_deciding(tx: Tx, settings: Settings) -> None:
    """Limit how many items ask the LLM at a time, over all workers; an item asks again until there is an answer."""
    await set_queue(
        tx,
        "qualify-llm",
        concurrency=settings.qualifier.at_once,
        max_attempts=None,
        retry_base=FIRST_PAUSE,
        retry_cap=LONGEST_PAUSE,
    )
    await set_queue(tx, "qualify-atoms", clear_payload=True)


async def replay_history(letter: ReplayHistory, *, db: Database, settings: QualifierSettings) -> Done:
    """A replay for the console and the API; its result is the report."""
    wish = DecisionReplayWish(datetime.fromisoformat(letter.since), letter.client, letter.project, letter.most)
    seen_from = Scope(letter.client, letter.project or "") if letter.client is not None else None
    task = current()
    report = await replay(
        db,
        settings,
        wish,
        processes=REPLAY_PROCESSES,
        seen_from=seen_from,
        tell=lambda done, total: task.progress(done, total, "items decided again"),
    )
    return Done(result=describe_report(report))
