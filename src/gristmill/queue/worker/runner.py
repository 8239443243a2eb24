"""Runs handlers: in the loop, in threads or in child processes, one letter or a batch of them."""

import asyncio
import math
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

from gristmill.errors import Overloaded, Permanent, Transient, Unreachable
from gristmill.ids import TaskId
from gristmill.processes import ForkSafe, ProcessPool, TimedOut, end_copy, fork_generation
from gristmill.queue.claim import Claim
from gristmill.queue.config import QueueConfig
from gristmill.queue.context import Running, TaskProgress, describe_members, set_current
from gristmill.queue.handlers import Handler, Handlers
from gristmill.queue.journal import Journal
from gristmill.queue.letters import Letter, decode
from gristmill.queue.limiter import Limiters
from gristmill.queue.outcome import Bury, Outcome, Retry, Snooze, Stop
from gristmill.queue.retry import decide, describe_error
from gristmill.queue.sender import enter_scopes
from gristmill.queue.upkeep.breaker import HealthReporter
from gristmill.queue.worker.answers import check_all_answered, read_answer, read_batch, read_placed_answer
from gristmill.queue.worker.threads import DaemonThreads
from gristmill.queue.worker.workload import Workload
from gristmill.telemetry import WorkerMetrics, log

UNJUDGED = (Snooze, Stop)
NOBODYS = (Unreachable, Overloaded)  # no letter of the batch is to blame, and one call for each would add to the load
BREATH = 50  # tasks after which a slot yields: handlers that never await would block the loop


@dataclass(frozen=True)
class Capacity:
    """What the handlers of one queue can take."""

    slots: int | None = None  # None: as many as the worker has
    batch: int = 1

    @classmethod
    def of(cls, handlers: Handlers, queue: str, processes: int) -> Self:
        mine = [handler for handler in handlers.values() if handler.queue == queue]
        slots = [handler.at_once or (processes if handler.mode == "process" else None) for handler in mine]
        most = None if None in slots else max(n for n in slots if n is not None)
        return cls(most, max(handler.batch or 1 for handler in mine))


class Runner:
    """Turns claims into answers."""

    def __init__(
        self,
        workload: Workload,
        handlers: Handlers,
        configs: Mapping[str, QueueConfig],
        health: HealthReporter,
        metrics: WorkerMetrics,
        *,
        processes: ProcessPool,
        limiters: Limiters,
        settle_soon: asyncio.Event,
        journal: Journal,
        on_slot_free: Callable[[], None],
    ) -> None:
        self._workload = workload
        self._handlers = handlers
        self._configs = configs
        self._health = health
        self._metrics = metrics
        self._limiters = limiters
        self._settle_soon = settle_soon
        self._journal = journal
        self._on_slot_free = on_slot_free
        self._threads = DaemonThreads(workload.concurrency)
        self._processes = processes
        self._capacities = {
            handler.queue: Capacity.of(handlers, handler.queue, processes.size) for handler in handlers.values()
        }
        self._slots: set[asyncio.Task[None]] = set()
        self._in_queue: Counter[str] = Counter()
        self._born = fork_generation()
        self.progress: dict[TaskId, TaskProgress] = {}

    def batch_size(self, queue: str) -> int:
        """How many tasks of a queue one call takes."""
        return self._capacities.get(queue, Capacity()).batch

    def share(self, queue: str) -> int:
        """How much of a queue to claim now: fast work ahead of time, batches and child processes never."""
        capacity = self._capacities.get(queue, Capacity())
        if capacity.slots is None and capacity.batch == 1:
            return self._workload.free + self._workload.ahead()
        slots = (
            self._workload.free
            if capacity.slots is None
            else min(self._workload.free, capacity.slots - self._slots_taken(queue, capacity))
        )
        return max(0, slots) * capacity.batch

    def _slots_taken(self, queue: str, capacity: Capacity) -> int:
        """How many slots the running and the waiting tasks of a queue take."""
        waiting = sum(claim.queue == queue for claim in self._workload.waiting)
        return self._in_queue[queue] + -(-waiting // capacity.batch)

    def dispatch(self) -> None:
        """Open a slot, if there is a task and a slot is free.

        One at a time: a slot that has begun asks for the next when the loop turns, so handlers that never wait are all
        served by a single slot instead of one each.
        """
        if self._workload.waiting and self._workload.free > 0:
            self._workload.busy += 1
            slot = asyncio.create_task(ForkSafe(self._slot()))
            self._slots.add(slot)
            slot.add_done_callback(self._slots.discard)

    async def _slot(self) -> None:
        """Answer one task after another until none waits; a slot that was interrupted gives up its place."""
        me = asyncio.current_task()
        loop = asyncio.get_running_loop()
        turns = 0
        try:
            while self._workload.waiting:
                first = self._workload.waiting.popleft()
                handler = self._handlers.get(first.kind)
                work = self._gather_batch(first, handler.batch) if handler and handler.batch else [first]
                if self._workload.waiting and turns % BREATH == 0:
                    loop.call_soon(self.dispatch)
                await self._answer(handler, work, me, loop)
                if first.end:
                    return
                turns += 1
                if turns % BREATH == 0:
                    await asyncio.sleep(0)
        finally:
            self._workload.busy -= 1
            self._on_slot_free()

    def _gather_batch(self, first: Claim, batch: int) -> list[Claim]:
        """A task with others of its kind, as many as its handler takes at once; the last of several attempts is made
        alone, so that nobody is buried because another member of its batch hangs."""
        if self._is_last(first):
            return [first]
        waiting = self._workload.waiting
        alike = [claim for claim in waiting if claim.kind == first.kind and not self._is_last(claim)][: batch - 1]
        for claim in alike:
            waiting.remove(claim)
        return [first, *alike]

    def _is_last(self, claim: Claim) -> bool:
        attempts = self._configs[claim.queue].retry.of(claim.max_attempts).attempts
        return attempts is not None and claim.attempt >= attempts > 1

    async def _answer(
        self,
        handler: Handler | None,
        work: Sequence[Claim],
        slot: asyncio.Task[None] | None,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        queue, running = work[0].queue, self._workload.running
        began, since = time.perf_counter(), loop.time()  # the loop's clock stands still while a handler does not wait
        self._in_queue[queue] += 1
        try:
            for claim in work:
                claim.slot, claim.together, claim.since = slot, len(work), since
                running[claim.id] = claim
                self._journal.begin(claim)
            if handler is not None and handler.batch:
                async for claim, outcome in self._batch(handler, work):
                    self._deliver(claim, outcome)
            else:
                self._deliver(work[0], await self._one(handler, work[0]))
        finally:
            self._in_queue[queue] -= 1
            for claim in work:
                running.pop(claim.id, None)
        self._metrics.observe_duration(queue, time.perf_counter() - began)

    def _deliver(self, claim: Claim, outcome: Outcome) -> None:
        self._workload.running.pop(claim.id, None)
        if claim.end == "lost":
            self._journal.end(claim)  # the lease was lost, not by its fault: its next worker must not suspect it
            return
        self._workload.answers.append((claim, outcome))
        if self._configs[claim.queue].breaker:
            self._count_for_breaker(claim, outcome)
        self._settle_soon.set()

    async def _one(self, handler: Handler | None, claim: Claim) -> Outcome:
        try:
            if handler is None:
                raise Transient(f"no handler answers {claim.kind}: is this worker older than the sender?")
            letter = decode(handler.letter, claim.payload)
            set_current(Running((claim,), self._report, self._limiters, self._metrics))
            enter_scopes([claim.scope])
            if handler.mode != "async":
                return read_answer(await self._call(handler, letter, (claim,)))
            try:  # most handlers: this saves one coroutine a task
                return read_answer(await handler.run(letter))
            finally:
                end_copy(self._born)
        except asyncio.CancelledError:
            return self._outcome_of_interruption(claim)
        except Exception as error:  # noqa: BLE001 an unknown error is the handler's bug: retried, counted, shown
            return self._decide_failure(claim, error)
        except BaseException as wish:  # noqa: BLE001 SystemExit and the like: a handler must not end its worker
            return self._decide_failure(claim, _refuse_to_end(wish))

    async def _batch(self, handler: Handler, work: Sequence[Claim]) -> AsyncIterator[tuple[Claim, Outcome]]:
        """One call for all; if the call as a whole fails, one call each, so that each gets an answer of its own."""
        letters: list[Letter] = []
        fitting: list[Claim] = []
        for claim in work:
            try:
                letters.append(decode(handler.letter, claim.payload))
                fitting.append(claim)
            except Permanent as error:
                yield claim, self._decide_failure(claim, error)
        waiting = dict(enumerate(fitting))
        try:
            if fitting:
                set_current(Running(fitting, self._report, self._limiters, self._metrics, batch=True))
                enter_scopes([claim.scope for claim in fitting])
                async with aclosing(self._answers(handler, letters, fitting)) as answers:
                    async for placed in answers:
                        place, answer = read_placed_answer(placed, waiting, handler.letter.kind)
                        claim = waiting.pop(place)
                        yield claim, self._read_member(claim, answer)
                        if handler.streams:  # the answers of others come all at once
                            _restart_clock(waiting.values())
                check_all_answered(len(fitting) - len(waiting), len(fitting), handler.letter.kind)
        except asyncio.CancelledError:
            for claim in waiting.values():
                yield claim, self._outcome_of_interruption(claim)
        except Exception as error:  # noqa: BLE001 as above
            rest = list(waiting.values())
            if len(fitting) == 1 or isinstance(error, NOBODYS):
                for claim in rest:
                    yield claim, self._decide_failure(claim, error)
            else:
                async for claim, outcome in self._one_by_one(handler, rest):
                    yield claim, outcome

    async def _answers(self, handler: Handler, letters: Sequence[Letter], work: Sequence[Claim]) -> AsyncGenerator[Any]:
        """The answers of a batch, each with the place of its letter: as they come, or all at the end."""
        if not handler.streams:
            answers = read_batch(await self._call(handler, letters, work), len(work), handler.letter.kind)
            for placed in enumerate(answers):
                yield placed
            return
        try:
            async with aclosing(handler.run(letters)) as answers:  # its resources are free before the next call
                async for placed in answers:
                    end_copy(self._born)
                    yield placed
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as wish:
            raise _refuse_to_end(wish) from wish
        finally:
            end_copy(self._born)

    async def _one_by_one(self, handler: Handler, work: Sequence[Claim]) -> AsyncIterator[tuple[Claim, Outcome]]:
        for claim in work:
            claim.since = math.inf  # no time-out before its turn: another task's time must not count for it
        for claim in work:
            if claim.end:  # we were interrupted: no more calls
                yield claim, self._outcome_of_interruption(claim)
                continue
            if claim.cancelled:
                yield claim, Stop()
                continue
            claim.together = 1  # so that it can be stopped, too
            _restart_clock([claim])
            async for _, outcome in self._batch(handler, [claim]):
                yield claim, outcome

    def _read_member(self, claim: Claim, answer: Any) -> Outcome:
        if claim.cancelled:
            return Stop()
        try:
            return self._decide_failure(claim, answer) if isinstance(answer, Exception) else read_answer(answer)
        except Exception as error:  # noqa: BLE001 a result that cannot be written is this member's trouble alone
            return self._decide_failure(claim, error)

    async def _call(self, handler: Handler, what: Any, work: Sequence[Claim]) -> Any:
        match handler.mode:
            case "async":
                try:
                    return await handler.run(what)
                except (Exception, asyncio.CancelledError):
                    raise
                except BaseException as wish:
                    raise _refuse_to_end(wish) from wish
                finally:
                    end_copy(self._born)
            case "thread":
                return await self._threads.run(handler.run, what)
            case "process":
                return await self._processes.run(
                    handler.run,
                    what,
                    timeout=self.timeout(handler, work[0].queue).total_seconds(),
                    memory=handler.memory,
                    context=describe_members(work, batch=bool(handler.batch)),
                    hear=self._hear,
                )

    def _outcome_of_interruption(self, claim: Claim) -> Outcome:
        """Its handler was interrupted from outside: what does that make of the task?"""
        match claim.end:
            case "timeout":
                after = self.timeout(self._handlers.get(claim.kind), claim.queue).total_seconds()
                return self._decide_failure(claim, TimedOut(f"it took longer than {after:g} s"))
            case "cancel":
                return Stop()
            case "stop" | "lost":
                return Snooze(timedelta(0))
            case None:
                # the handler itself let a cancellation escape: an error like any other
                return self._decide_failure(claim, Transient("the handler was cancelled from within"))

    def _decide_failure(self, claim: Claim, error: Exception) -> Outcome:
        policy = self._configs[claim.queue].retry.of(claim.max_attempts)
        outcome = decide(error, attempt=claim.attempt, policy=policy, chance=random.random())
        if isinstance(error, TimedOut) and self._configs[claim.queue].breaker:
            self._health.count_time_out(claim.queue)
        known = isinstance(error, Transient | Permanent)
        report = log.info if known else log.warning
        report(
            "task." + type(outcome).__name__.lower(),
            task=claim.id,
            kind=claim.kind,
            attempt=claim.attempt,
            error=describe_error(error)[:200],
            exc_info=None if known else error,
        )
        return outcome

    def _count_for_breaker(self, claim: Claim, outcome: Outcome) -> None:
        """Count the outcome for the breaker; bad input and snoozes do not show that a stage is ill."""
        if not isinstance(outcome, UNJUDGED):
            broken = isinstance(outcome, Retry) or (isinstance(outcome, Bury) and not outcome.permanent)
            self._health.count(claim.queue, ok=not broken)

    def _report(self, task: TaskId, progress: TaskProgress) -> None:
        self.progress[task] = progress

    def _hear(self, said: tuple[TaskId, int, int | None, str | None]) -> None:
        """A handler in a child process tells how far it is."""
        task, current, total, message = said
        self._report(task, TaskProgress(current, total, message))

    def timeout(self, handler: Handler | None, queue: str) -> timedelta:
        if handler is not None and handler.timeout is not None:
            return handler.timeout
        return self._configs[queue].timeout

    def end_overdue(self) -> None:
        """Interrupt handlers that take too long; those in child processes are watched by their pool."""
        now = asyncio.get_running_loop().time()
        for claim in list(self._workload.running.values()):
            handler = self._handlers.get(claim.kind)
            overdue = now - claim.since > self.timeout(handler, claim.queue).total_seconds()
            if overdue and (handler is None or handler.mode != "process"):
                claim.finish_early("timeout")

    def forget(self, claim: Claim) -> None:
        """The task is not ours any more; its next worker must not suspect it because it ran here."""
        self._journal.end(claim)

    async def close(self) -> None:
        self._threads.close()
        await self._processes.close()


def _restart_clock(waiting: Iterable[Claim]) -> None:
    """The time-out of these tasks begins now, with their turn."""
    now = asyncio.get_running_loop().time()
    for claim in waiting:
        claim.since = now


def _refuse_to_end(wish: BaseException) -> Transient:
    return Transient(f"the handler wanted to end its worker ({describe_error(wish)})")
