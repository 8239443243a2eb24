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
from gristmill.queue.answers import expect_all, read, read_all, read_placed
from gristmill.queue.breaker import Health
from gristmill.queue.claim import Claim
from gristmill.queue.config import QueueConfig
from gristmill.queue.context import Progress, Running, about, enter
from gristmill.queue.forks import Guarded, end_copy, generation
from gristmill.queue.handlers import Handler, Handlers
from gristmill.queue.hands import Hands
from gristmill.queue.letters import Letter, decode
from gristmill.queue.limiter import Limiters
from gristmill.queue.notes import Notes
from gristmill.queue.outcome import Bury, Outcome, Retry, Snooze, Stop
from gristmill.queue.processes import ProcessPool, TimedOut
from gristmill.queue.retry import decide, described
from gristmill.queue.threads import DaemonThreads
from gristmill.telemetry import WorkerMetrics, log

UNJUDGED = (Snooze, Stop)
NOBODYS = (Unreachable, Overloaded)  # no letter of a batch is to blame, and calls one by one would only make it worse
BREATH = 50  # handlers that never await would keep the loop for themselves


@dataclass(frozen=True)
class Room:
    """What the handlers of one queue have room for."""

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
        hands: Hands,
        handlers: Handlers,
        configs: Mapping[str, QueueConfig],
        health: Health,
        metrics: WorkerMetrics,
        *,
        processes: ProcessPool,
        limiters: Limiters,
        ripe: asyncio.Event,
        notes: Notes,
        answered: Callable[[], None],
    ) -> None:
        self._hands = hands
        self._handlers = handlers
        self._configs = configs
        self._health = health
        self._metrics = metrics
        self._limiters = limiters
        self._ripe = ripe
        self._notes = notes
        self._answered = answered
        self._threads = DaemonThreads(hands.concurrency)
        self._processes = processes
        self._rooms = {handler.queue: Room.of(handlers, handler.queue, processes.size) for handler in handlers.values()}
        self._slots: set[asyncio.Task[None]] = set()
        self._in_queue: Counter[str] = Counter()
        self._born = generation()
        self.progress: dict[TaskId, Progress] = {}

    def width(self, queue: str) -> int:
        """How many tasks of a queue one call takes."""
        return self._rooms.get(queue, Room()).batch

    def share(self, queue: str) -> int:
        """How much of a queue to claim now: fast work ahead of time, batches and child processes never."""
        room = self._rooms.get(queue, Room())
        if room.slots is None and room.batch == 1:
            return self._hands.free + self._hands.ahead()
        slots = self._hands.free if room.slots is None else min(self._hands.free, room.slots - self._taken(queue, room))
        return max(0, slots) * room.batch

    def _taken(self, queue: str, room: Room) -> int:
        """How many slots a queue has, or will have when what is in our hands has begun."""
        waiting = sum(claim.queue == queue for claim in self._hands.waiting)
        return self._in_queue[queue] + -(-waiting // room.batch)

    def dispatch(self) -> None:
        """Open a slot, if there is a task and room for it.

        One at a time: a slot that has begun asks for the next when the loop turns, so handlers that never wait are all
        answered by a single slot instead of one each.
        """
        if self._hands.waiting and self._hands.free > 0:
            self._hands.busy += 1
            slot = asyncio.create_task(Guarded(self._slot()))
            self._slots.add(slot)
            slot.add_done_callback(self._slots.discard)

    async def _slot(self) -> None:
        """Answer one task after another until none waits; a slot that was interrupted gives up its place."""
        me = asyncio.current_task()
        loop = asyncio.get_running_loop()
        turns = 0
        try:
            while self._hands.waiting:
                first = self._hands.waiting.popleft()
                handler = self._handlers.get(first.kind)
                work = self._gathered(first, handler.batch) if handler and handler.batch else [first]
                if self._hands.waiting and turns % BREATH == 0:
                    loop.call_soon(self.dispatch)
                await self._answer(handler, work, me, loop)
                if first.end:
                    return
                turns += 1
                if turns % BREATH == 0:
                    await asyncio.sleep(0)
        finally:
            self._hands.busy -= 1
            self._answered()

    def _gathered(self, first: Claim, batch: int) -> list[Claim]:
        """A task with others of its kind, as many as its handler takes at once; the last of several attempts is made
        alone, so that nobody is buried because another member of its batch hangs."""
        if self._is_last(first):
            return [first]
        waiting = self._hands.waiting
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
        queue, running = work[0].queue, self._hands.running
        began, since = time.perf_counter(), loop.time()  # the loop's clock stands still while a handler does not wait
        self._in_queue[queue] += 1
        try:
            for claim in work:
                claim.slot, claim.together, claim.since = slot, len(work), since
                running[claim.id] = claim
                self._notes.begin(claim)
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
        self._hands.running.pop(claim.id, None)
        if claim.end == "lost":
            self._notes.end(claim)  # it was not its fault: whoever takes it back shall not suspect it
            return
        self._hands.answers.append((claim, outcome))
        if self._configs[claim.queue].breaker:
            self._note(claim, outcome)
        self._ripe.set()

    async def _one(self, handler: Handler | None, claim: Claim) -> Outcome:
        try:
            if handler is None:
                raise Transient(f"no handler answers {claim.kind}: is this worker older than the sender?")
            letter = decode(handler.letter, claim.payload)
            enter(Running((claim,), self._report, self._limiters, self._metrics))
            if handler.mode != "async":
                return read(await self._call(handler, letter, (claim,)))
            try:  # as most are: one coroutine less a task
                return read(await handler.run(letter))
            finally:
                end_copy(self._born)
        except asyncio.CancelledError:
            return self._ended(claim)
        except Exception as error:  # noqa: BLE001 an unknown error is the handler's bug: retried, counted, shown
            return self._decided(claim, error)
        except BaseException as wish:  # noqa: BLE001 a handler does not decide about its worker
            return self._decided(claim, _a_wish_to_end(wish))

    async def _batch(self, handler: Handler, work: Sequence[Claim]) -> AsyncIterator[tuple[Claim, Outcome]]:
        """One call for all; if the call as a whole fails, one call each, so that each gets an answer of its own."""
        letters: list[Letter] = []
        fitting: list[Claim] = []
        for claim in work:
            try:
                letters.append(decode(handler.letter, claim.payload))
                fitting.append(claim)
            except Permanent as error:
                yield claim, self._decided(claim, error)
        waiting = dict(enumerate(fitting))
        try:
            if fitting:
                enter(Running(fitting, self._report, self._limiters, self._metrics, batch=True))
                async with aclosing(self._answers(handler, letters, fitting)) as answers:
                    async for placed in answers:
                        place, answer = read_placed(placed, waiting, handler.letter.kind)
                        claim = waiting.pop(place)
                        yield claim, self._member(claim, answer)
                        _begin_anew(waiting.values())
                expect_all(len(fitting) - len(waiting), len(fitting), handler.letter.kind)
        except asyncio.CancelledError:
            for claim in waiting.values():
                yield claim, self._ended(claim)
        except Exception as error:  # noqa: BLE001 as above
            rest = list(waiting.values())
            if len(fitting) == 1 or isinstance(error, NOBODYS):
                for claim in rest:
                    yield claim, self._decided(claim, error)
            else:
                async for claim, outcome in self._one_by_one(handler, rest):
                    yield claim, outcome

    async def _answers(self, handler: Handler, letters: Sequence[Letter], work: Sequence[Claim]) -> AsyncGenerator[Any]:
        """The answers of a batch, each with the place of its letter: as they come, or all at the end."""
        if not handler.streams:
            answers = read_all(await self._call(handler, letters, work), len(work), handler.letter.kind)
            for placed in enumerate(answers):
                yield placed
            return
        try:
            async with aclosing(handler.run(letters)) as answers:  # what it holds is free before the next call
                async for placed in answers:
                    end_copy(self._born)
                    yield placed
        except (Exception, asyncio.CancelledError, GeneratorExit):
            raise
        except BaseException as wish:
            raise _a_wish_to_end(wish) from wish
        finally:
            end_copy(self._born)

    async def _one_by_one(self, handler: Handler, work: Sequence[Claim]) -> AsyncIterator[tuple[Claim, Outcome]]:
        for claim in work:
            claim.since = math.inf  # not before its turn: nobody is late because another took its time
        for claim in work:
            if claim.end:  # we were interrupted: no more calls
                yield claim, self._ended(claim)
                continue
            if claim.cancelled:
                yield claim, Stop()
                continue
            claim.together = 1  # so that it can be stopped, too
            _begin_anew([claim])
            async for _, outcome in self._batch(handler, [claim]):
                yield claim, outcome

    def _member(self, claim: Claim, answer: Any) -> Outcome:
        if claim.cancelled:
            return Stop()
        try:
            return self._decided(claim, answer) if isinstance(answer, Exception) else read(answer)
        except Exception as error:  # noqa: BLE001 a result that cannot be written is this member's trouble alone
            return self._decided(claim, error)

    async def _call(self, handler: Handler, what: Any, work: Sequence[Claim]) -> Any:
        match handler.mode:
            case "async":
                try:
                    return await handler.run(what)
                except (Exception, asyncio.CancelledError):
                    raise
                except BaseException as wish:
                    raise _a_wish_to_end(wish) from wish
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
                    about=about(work, batch=bool(handler.batch)),
                    hear=self._hear,
                )

    def _ended(self, claim: Claim) -> Outcome:
        """Its handler was interrupted from outside: what does that make of the task?"""
        match claim.end:
            case "timeout":
                after = self.timeout(self._handlers.get(claim.kind), claim.queue).total_seconds()
                return self._decided(claim, TimedOut(f"it took longer than {after:g} s"))
            case "cancel":
                return Stop()
            case "stop" | "lost":
                return Snooze(timedelta(0))
            case None:
                # the handler itself let a cancellation escape: an error like any other
                return self._decided(claim, Transient("the handler was cancelled from within"))

    def _decided(self, claim: Claim, error: Exception) -> Outcome:
        policy = self._configs[claim.queue].retry.of(claim.max_attempts)
        outcome = decide(error, attempt=claim.attempt, policy=policy, chance=random.random())
        if isinstance(error, TimedOut) and self._configs[claim.queue].breaker:
            self._health.timed_out(claim.queue)
        known = isinstance(error, Transient | Permanent)
        report = log.info if known else log.warning
        report(
            "task." + type(outcome).__name__.lower(),
            task=claim.id,
            kind=claim.kind,
            attempt=claim.attempt,
            error=described(error)[:200],
            exc_info=None if known else error,
        )
        return outcome

    def _note(self, claim: Claim, outcome: Outcome) -> None:
        """What a breaker should know of; bad input, and what only comes back later, are no sign that a stage is ill."""
        if not isinstance(outcome, UNJUDGED):
            broken = isinstance(outcome, Retry) or (isinstance(outcome, Bury) and not outcome.permanent)
            self._health.count(claim.queue, ok=not broken)

    def _report(self, task: TaskId, progress: Progress) -> None:
        self.progress[task] = progress

    def _hear(self, said: tuple[TaskId, int, int | None, str | None]) -> None:
        """A handler in a child process tells how far it is."""
        task, current, total, message = said
        self._report(task, Progress(current, total, message))

    def timeout(self, handler: Handler | None, queue: str) -> timedelta:
        if handler is not None and handler.timeout is not None:
            return handler.timeout
        return self._configs[queue].timeout

    def end_overdue(self) -> None:
        """Interrupt handlers that take too long; those in child processes are watched by their pool."""
        now = asyncio.get_running_loop().time()
        for claim in list(self._hands.running.values()):
            handler = self._handlers.get(claim.kind)
            overdue = now - claim.since > self.timeout(handler, claim.queue).total_seconds()
            if overdue and (handler is None or handler.mode != "process"):
                claim.finish_early("timeout")

    def forget(self, claim: Claim) -> None:
        """It is not ours any more; whoever has it next shall not suspect it for having run here."""
        self._notes.end(claim)

    async def close(self) -> None:
        self._threads.close()
        await self._processes.close()


def _begin_anew(waiting: Iterable[Claim]) -> None:
    """The time of those whose turn comes now does not begin before it."""
    now = asyncio.get_running_loop().time()
    for claim in waiting:
        claim.since = now


def _a_wish_to_end(wish: BaseException) -> Transient:
    return Transient(f"the handler wanted to end its worker ({described(wish)})")
