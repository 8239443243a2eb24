"""Answers the letter RunAgent: a worker takes a run over, a course carries it on, and its end is written down."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial

from gristmill.agents.checkpoints import prune_checkpoints
from gristmill.agents.course import report_by_template
from gristmill.agents.effects import withdraw_effects
from gristmill.agents.letters import RunAgent
from gristmill.agents.run_handle import RunHandle, WorkspaceOpener, load_words, make_toolbox
from gristmill.agents.runs import (
    Run,
    WaitingForUser,
    complete_run,
    end_lost_steps,
    fail_run,
    find_rival,
    forget_texts,
    load_run,
    put_back_run,
    rest_run,
    take_over,
    withdraw_questions,
)
from gristmill.agents.thinking import RunLlm, Thinker
from gristmill.agents.tools import TOOLS, AnyTool, ToolContext
from gristmill.agents.workspaces import check_host
from gristmill.db import Tx
from gristmill.errors import Permanent, Refused, Transient, Unreachable
from gristmill.ids import RunId
from gristmill.knowledge import Hits, search
from gristmill.models import Embedder, hide_credentials
from gristmill.qualifier import RequestWatch, load_last_request
from gristmill.queue import Done, Skip, Snooze, current, list_workers
from gristmill.rooms import Tools
from gristmill.scopes import Scope
from gristmill.sources import Fetcher

ATTEMPTS = 3  # of a task, before a run ends with what it has
BUSY = timedelta(seconds=2)  # until a run that another one is in the way of is looked at again
ELSEWHERE = timedelta(seconds=20)  # until a run whose workspace is elsewhere is looked at again

GIVES_WAY = "a person asked for something: it goes on when nobody does"

Course = Callable[[RunHandle], Awaitable[str]]  # carries a run on; its report


@dataclass(frozen=True)
class RunCarrier:
    """Carries runs with the tools of one worker."""

    tools: Tools
    course: Course
    kit: Mapping[str, AnyTool] = field(default_factory=lambda: TOOLS)  # what the run may use
    llm: RunLlm | None = None  # None: that of the worker
    watch: RequestWatch | None = None  # None: it gives way to nobody

    async def carry(self, letter: RunAgent) -> Done | Skip | Snooze:
        found = await self._take(letter.run)
        if not isinstance(found, RunHandle):
            return found
        run, fence = found.run.id, found.fence
        try:
            report = await self._work(found)
            if report is None:
                return await self._give_way(found)
        except WaitingForUser:
            return Done(write=partial(rest_run, id_=run, fence=fence))
        except (Permanent, Refused) as error:
            return Done(write=partial(end_in_failure, run=run, fence=fence, error=str(error)))
        except Unreachable:
            raise
        except Transient as error:
            if current().attempt < ATTEMPTS:
                raise  # the world is busy: the next attempt goes on from the last checkpoint
            report = await report_by_template(found, str(error))
        return Done(write=partial(end_with_report, run=run, fence=fence, report=report))

    async def _work(self, handle: RunHandle) -> str | None:
        """The report; None if a person asks for something while a background run works: it is cancelled at once."""
        if self.watch is None or handle.run.foreground:
            return await self.course(handle)
        async with self.watch.follow() as follower:
            working = asyncio.ensure_future(self.course(handle))
            called = asyncio.create_task(follower.called.wait())
            try:
                await asyncio.wait((working, called), return_when=asyncio.FIRST_COMPLETED)
            finally:
                called.cancel()
                if not working.done():
                    working.cancel()
                    await asyncio.wait((working,))  # an effect that has begun comes to its end
        return None if working.cancelled() else working.result()

    async def _give_way(self, handle: RunHandle) -> Snooze:
        async with self.tools.db.transaction() as tx:
            await put_back_run(tx, handle.run.id, handle.fence)
        return Snooze(self.tools.settings.qualifier.quiet, GIVES_WAY)

    async def _wait_for_silence(self, tx: Tx, run: Run) -> Snooze | None:
        """Background runs wait until nobody has asked for anything for a while."""
        if self.watch is None or run.foreground:
            return None
        quiet, last = self.tools.settings.qualifier.quiet, await load_last_request(tx)
        return Snooze(quiet - last.ago, GIVES_WAY) if last.ago is not None and last.ago < quiet else None

    async def _take(self, id_: RunId) -> RunHandle | Skip | Snooze:
        async with self.tools.db.transaction() as tx:
            run = await load_run(tx, id_)
            try:
                if reason := check_host(run, await list_hosts(tx), self.tools.settings.data):
                    return Snooze(ELSEWHERE, reason)
            except Permanent as error:
                await tx.flush()
                return Skip(str(error), write=partial(end_in_failure, run=id_, fence=run.fence, error=str(error)))
            if not run.has_ended and (silence := await self._wait_for_silence(tx, run)):
                return silence
            if not run.has_ended and (rival := await find_rival(tx, run)):
                return Snooze(BUSY, f"run {rival} is at work in {run.place}: one at a time")
            fence = await take_over(tx, id_, current().id)
            if fence is None:
                return Skip(f"run {id_} is {run.state}")
            await end_lost_steps(tx, id_)
        return await self.open_handle(run, fence)

    async def open_handle(self, run: Run, fence: int) -> RunHandle:
        db = self.tools.db
        async with db.reading() as tx:
            words = await load_words(tx, run)
        toolbox = make_toolbox(self._make_context(run), fence, words, self.kit.values())
        llm = self.llm or self.tools.models.llm
        where = hide_credentials(self.tools.settings.llm.url)
        thinker = Thinker(llm, self.tools.settings.llm.model, foreground=run.foreground, where=where)
        return RunHandle(db, run, fence, toolbox, thinker)

    def _make_context(self, run: Run) -> ToolContext:
        db, settings, models = self.tools.db, self.tools.settings, self.tools.models
        embedders: Sequence[Embedder] = [models.embedder, models.built_in_embedder]

        async def find(query: str, scope: Scope, *, limit: int = 10) -> Hits:
            return await search(db, embedders, query, scope, limit=limit, settings=settings.knowledge)

        opener = WorkspaceOpener(db, settings, run)
        fetcher = Fetcher(settings.fetch)
        return ToolContext(db, settings, run, find, embedders, fetcher, models.reading_processes, opener.open)


async def list_hosts(tx: Tx) -> set[str]:
    """The machines on which a worker is at work, or was lost within the hour: it may come back."""
    return {one.name.rpartition(":")[0] or one.name for one in await list_workers(tx) if not one.silent}


async def end_with_report(tx: Tx, run: RunId, fence: int, report: str) -> None:
    """The run is over; how it came there is not kept."""
    await complete_run(tx, run, fence, report)
    await prune_checkpoints(tx, run)
    await forget_texts(tx, run)


async def end_in_failure(tx: Tx, run: RunId, fence: int, error: str) -> None:
    """The run is over, and so is everything that it had not begun."""
    await fail_run(tx, run, fence, error)
    await withdraw_effects(tx, run, "Its run failed before it was begun.")
    await withdraw_questions(tx, run)
    await forget_texts(tx, run)
