"""The one owner of the lanes: feeds events to the policy and carries out the effects it returns."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any

import structlog

from gristmill.router.backends import Adapter, Pins, ProbeFindings
from gristmill.router.breaker import BackendFailure, Breaker, BreakerState
from gristmill.router.effects import CancelLoad, Effect, End, Grant, Load, Preempt, RefuseRequest, StopAttempt, Unload
from gristmill.router.lanes import Lanes
from gristmill.router.metrics import Metrics
from gristmill.router.placing import PlacingRules
from gristmill.router.pool import Backend, Lease, LeasePhase, Resident, Ticket
from gristmill.router.upstream import AttemptFailed, Exchange
from gristmill.router.wire import canonical
from gristmill.settings import BackendSettings, RouterSettings

log = structlog.get_logger(__name__)

BUSY_TICK, IDLE_TICK = 0.05, 0.5
FILE_TO_MEMORY = 1.15  # a model takes more memory than its file: context and buffers


class Preempted(Exception):
    """The attempt had to make way; its ticket waits for another place."""


class AttemptEnded(Exception):
    """The attempt had to end after its client saw a part of the answer; the text says why."""


class TurnedAway(Exception):
    """The request gets no (other) place."""

    def __init__(self, refusal: RefuseRequest) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


class Scheduler:
    """Everything that happens to requests and backends goes through here, one event after the other."""

    def __init__(self, settings: RouterSettings) -> None:
        pins = Pins(settings)
        self._settings = settings
        self._release_wait = settings.release_wait.total_seconds()
        kinds = _kinds(settings)
        self.adapters = {spec.name: Adapter(spec, gpu, settings, pins) for spec, gpu in kinds}
        self._by_backend: dict[Backend, Adapter] = {}
        self._watches: dict[Adapter, asyncio.Task[None]] = {}
        self.lanes = Lanes(
            _pool(settings, kinds), _rules(settings), lambda name, model: self.adapters[name].serves(model)
        )
        self._by_backend = {backend: self.adapters[name] for name, backend in self.lanes.backends.items()}
        self.metrics = Metrics(self.lanes)
        self.pins = pins
        self._loop = asyncio.get_running_loop()
        self._now = time.monotonic  # finer than the loop's own clock, which counts milliseconds
        self._waiters: dict[Ticket, asyncio.Future[Lease]] = {}
        self._refusals: dict[Ticket, RefuseRequest] = {}
        self._exchanges: dict[Lease, Exchange] = {}
        self._unsent: dict[Ticket, list[Lease]] = {}  # told to stop before they were sent to a backend
        self._loads: dict[str, asyncio.Task[None]] = {}
        self._chores: set[asyncio.Task[Any]] = set()
        self._breakers: dict[str, BreakerState] = {}
        self._ticker: asyncio.TimerHandle | None = None
        self._next_tick = 0.0

    # ── life ────────────────────────────────────────────────────────────────

    async def start(self) -> None:
        """Meet every backend once, then keep an eye on them."""
        await self._meet(list(self.adapters.values()))
        self._schedule_tick(BUSY_TICK)
        self._carry_out(self.lanes.start(self._now()))

    async def _meet(self, adapters: list[Adapter]) -> None:
        for adapter in adapters:
            await adapter.open()
        await asyncio.gather(*(self._probe(adapter) for adapter in adapters))
        for adapter in adapters:
            self._watches[adapter] = self._do(self._watch(adapter))

    async def configure(self, settings: RouterSettings) -> dict[str, list[str]]:
        """Go by these settings from now on, without dropping a request; which backends came, went and stayed."""
        self._settings, kinds = settings, _kinds(settings)
        self._release_wait = settings.release_wait.total_seconds()
        self.pins.configure(settings)
        adapters, backends, new = dict[str, Adapter](), list[Backend](), list[Adapter]()
        for (spec, gpu), backend in zip(kinds, _pool(settings, kinds), strict=True):
            adapter, old = self.adapters.get(spec.name), self.lanes.backends.get(spec.name)
            if adapter is not None and old is not None and adapter.is_at(spec, gpu):
                adapter.configure(spec, settings)
                old.configure(backend)
                backends.append(old)
            else:
                adapter = self._by_backend[backend] = Adapter(spec, gpu, settings, self.pins)
                new.append(adapter)
                backends.append(backend)
            adapters[spec.name] = adapter
        await self._meet(new)
        gone = [backend for backend in self.lanes.backends.values() if backend not in backends]
        for backend in gone:
            self._watches.pop(self._by_backend[backend]).cancel()
            if (load := self._loads.pop(backend.name, None)) is not None:
                load.cancel()
        self.adapters = adapters
        self._carry_out(self.lanes.configure(backends, _rules(settings), self._now()))
        for backend in gone:
            self._do(self._part_with(backend, self._by_backend[backend]))
        kept = [name for name, adapter in adapters.items() if adapter not in new]
        return {"added": [adapter.name for adapter in new], "removed": [one.name for one in gone], "kept": kept}

    async def _part_with(self, backend: Backend, adapter: Adapter) -> None:
        """Leave a backend that is no longer configured, once its last request has ended."""
        while backend.leases:  # noqa: ASYNC110 it may take as long as an answer
            await asyncio.sleep(BUSY_TICK)
        del self._by_backend[backend]
        await adapter.close()

    def adapter_of(self, lease: Lease) -> Adapter:
        return self._by_backend[lease.backend]

    def _is_current(self, backend: Backend) -> bool:
        return self.lanes.backends.get(backend.name) is backend

    async def finish_work(self) -> None:
        """Take no more requests, let accepted ones end within the bound, and tell the other clients."""
        self.drain(None, True)
        deadline = self._now() + self._settings.stop.total_seconds()
        while self.busy and self._now() < deadline:  # noqa: ASYNC110 the router is stopping
            await asyncio.sleep(0.02)
        self._carry_out(self.lanes.close())

    async def stop(self) -> None:
        """Leave the backends."""
        if self._ticker is not None:
            self._ticker.cancel()
        chores = [*self._chores, *self._loads.values()]
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
        for adapter in self._by_backend.values():
            await adapter.close()

    @property
    def busy(self) -> bool:
        return bool(self.lanes.waiting.lanes) or bool(self.lanes.every_lease())

    # ── for requests ─────────────────────────────────────────────────────────

    def submit(self, ticket: Ticket) -> Lease | None:
        """Take a request in; its lease, when it is its turn at once."""
        self._carry_out(self.lanes.submit(ticket, ticket.arrived))
        lease = ticket.lease
        return lease if lease is not None and lease.phase is LeasePhase.RUNNING else None

    async def turn(self, ticket: Ticket) -> Lease:
        """Wait until it is this ticket's turn; raises TurnedAway when it never will be."""
        lease = ticket.lease
        if lease is not None and lease.phase is LeasePhase.RUNNING:
            return lease
        if (refusal := self._refusals.pop(ticket, None)) is not None:
            raise TurnedAway(refusal)
        waiter = self._waiters[ticket] = self._loop.create_future()
        self._schedule_tick(BUSY_TICK)
        try:
            return await waiter
        finally:
            del self._waiters[ticket]

    def attach(self, lease: Lease, exchange: Exchange) -> None:
        """The attempt has begun: from now on the policy can stop it."""
        self._exchanges[lease] = exchange
        if lease.phase is LeasePhase.LEAVING:
            self._forget_unsent(lease)
            self._stop(lease, Preempted())
            raise Preempted

    def _forget_unsent(self, lease: Lease) -> None:
        if (unsent := self._unsent.get(lease.ticket)) is not None and lease in unsent:
            unsent.remove(lease)

    def commit(self, ticket: Ticket) -> None:
        self.lanes.commit(ticket)

    def finish(self, lease: Lease) -> None:
        """The backend answered to the end."""
        self._exchanges.pop(lease, None)
        if (effects := self.lanes.finish(lease, self._now())) or lease.backend.name in self._breakers:
            self._carry_out(effects)
            self._note_breaker(lease.backend)

    def fail(self, lease: Lease, failure: AttemptFailed) -> None:
        """The attempt failed by the backend's fault; the ticket waits for another place, or is refused."""
        exchange = self._exchanges.pop(lease, None)
        self._forget_unsent(lease)
        if failure.kind is BackendFailure.ABSENT:
            self.adapter_of(lease).absent.add(lease.ticket.model)
        leaving = lease.phase is LeasePhase.LEAVING
        effects = self.lanes.fail(
            lease, failure.kind, self._now(), failure.retry_after, gone=exchange is None or leaving
        )
        if exchange is not None and not leaving:
            self._do(self._confirm(lease, exchange))
        if not lease.ticket.ended:
            self.metrics.reruns["failover",] += 1
        # only of a failed connection, because other texts may repeat a part of the request
        cause = {"cause": str(failure)} if failure.kind is BackendFailure.CONNECT else {}
        name, kind = lease.backend.name, failure.kind.value
        log.warning("attempt failed", backend=name, kind=kind, status=failure.status, **cause)
        self._carry_out(effects)
        self._note_breaker(lease.backend)

    def over(self, ticket: Ticket) -> None:
        """The request is over; if that is because its client went away, its backend is told at once."""
        if self._refusals:  # it was not fetched: the answer had begun, or the client left first
            self._refusals.pop(ticket, None)
        for lease in self._unsent.pop(ticket, ()):  # its client left before it could be sent: no backend will confirm
            self._carry_out(self.lanes.confirm(lease, self._now()))
        if ticket.ended:
            return
        lease = ticket.lease
        exchange = self._exchanges.pop(lease, None) if lease is not None else None
        if lease is not None and exchange is not None:
            self._carry_out(self.lanes.leave(lease, self._now()))
            self._do(self._confirm(lease, exchange))
        else:
            self._carry_out(self.lanes.cancel(ticket, self._now()))

    # ── for administrators ───────────────────────────────────────────────────

    def release(self, session: str) -> None:
        self._carry_out(self.lanes.release(session, self._now()))

    def drain(self, backend: str | None, on: bool) -> None:
        self._carry_out(self.lanes.drain(backend, on, self._now()))

    async def look_again(self, adapter: Adapter) -> None:
        """A backend's models have just been changed: learn of it before the next probe."""
        await self._probe(adapter)

    def may_unload(self, adapter: Adapter, model: str) -> bool:
        """Whether a model is in a backend's memory and no request uses it or waits for it."""
        backend = self.lanes.backends[adapter.name]
        return backend.manages and model in backend.resident and not any(backend.leases_of(model))

    async def unload(self, adapter: Adapter, model: str) -> None:
        """Take a model out of a backend's memory on a client's word."""
        await self._unload(adapter.name, model)

    # ── effects ─────────────────────────────────────────────────────────────

    def _carry_out(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Grant(lease):
                    self._grant(lease)
                case Preempt(lease):
                    self.metrics.preemptions[lease.backend.name,] += 1
                    if not lease.ticket.ended:
                        self.metrics.reruns["preempted",] += 1
                    self._stop(lease, Preempted())
                case End(lease):
                    self.metrics.preemptions[lease.backend.name,] += 1
                    self._stop(lease, AttemptEnded("ended to make way for more urgent work"))
                case StopAttempt(lease):
                    self._stop(lease, AttemptEnded("the router is stopping") if lease.ticket.committed else Preempted())
                case RefuseRequest(ticket):
                    self._refuse(ticket, effect)
                case Load(backend, model, embeds):
                    self._loads[backend] = self._loop.create_task(self._load(backend, model, embeds))
                case CancelLoad(backend):
                    self._loads[backend].cancel()
                case Unload(backend, model):
                    self._do(self._unload(backend, model))

    def _grant(self, lease: Lease) -> None:
        ticket = lease.ticket
        if not lease.backend.gpu and any(self.lanes.serving(ticket.model)[0]):
            self.metrics.cpu_fallbacks[ticket.priority.label,] += 1
        if (waiter := self._waiters.get(ticket)) is not None and not waiter.done():
            waiter.set_result(lease)

    def _refuse(self, ticket: Ticket, refusal: RefuseRequest) -> None:
        waiter = self._waiters.get(ticket)
        if waiter is None or waiter.done():
            self._refusals[ticket] = refusal
        else:
            waiter.set_exception(TurnedAway(refusal))

    def _stop(self, lease: Lease, why: Exception) -> None:
        # done here and not in the relay, which may be waiting for a slow client
        if (exchange := self._exchanges.pop(lease, None)) is not None:
            exchange.interrupt(why)
            self._do(self._confirm(lease, exchange))
        else:
            self._unsent.setdefault(lease.ticket, []).append(lease)

    async def _confirm(self, lease: Lease, exchange: Exchange) -> None:
        confirmed = await exchange.stop(self._release_wait)
        if not confirmed:
            self.metrics.unconfirmed[lease.backend.name,] += 1
            log.warning("backend did not confirm a stop", backend=lease.backend.name)
        self._carry_out(self.lanes.confirm(lease, self._now()))

    # ── models ──────────────────────────────────────────────────────────────

    async def _load(self, name: str, model: str, embeds: bool) -> None:
        began, backend, failure = self._now(), self.lanes.backends[name], None
        try:
            vram = await self.adapters[name].load(model, embeds)
        except asyncio.CancelledError:
            vram = None
        except AttemptFailed as failed:
            vram, failure = None, failed
        if not self._is_current(backend):
            return  # the requests that waited for it have another place already
        if vram is not None:
            self.metrics.swaps[name,] += 1
            log.info("model loaded", backend=name, model=model, seconds=round(self._now() - began, 3))
            self._carry_out(self.lanes.note_loaded(name, model, vram, self._now()))
            return
        if failure is not None:
            log.warning("load failed", backend=name, model=model, kind=failure.kind.value, status=failure.status)
        self._carry_out(self.lanes.note_load_failed(name, model, self._now(), blame=failure is not None))
        self._note_breaker(backend)

    async def _unload(self, name: str, model: str) -> None:
        backend = self.lanes.backends[name]
        try:
            if not await self.adapters[name].unload(model):
                log.warning("backend did not confirm an unload", backend=name, model=model)
        except AttemptFailed as failure:
            log.warning("unload failed", backend=name, model=model, kind=failure.kind.value)
        if self._is_current(backend):
            self._carry_out(self.lanes.note_unloaded(name, model, self._now()))

    # ── health and time ─────────────────────────────────────────────────────

    async def _watch(self, adapter: Adapter) -> None:
        while True:
            await asyncio.sleep(self._settings.probe.total_seconds())
            await self._probe(adapter)

    async def _probe(self, adapter: Adapter) -> None:
        asked = self._now()
        before = adapter.models
        try:
            seen = await adapter.probe()
        except (AttemptFailed, TimeoutError) as failure:
            seen = None
            self._note_trouble(adapter, str(failure) or "it did not answer in time")
        else:
            self._note_trouble(adapter, "")
        backend = next((backend for backend, its in self._by_backend.items() if its is adapter), None)
        if backend is None or not self._is_current(backend):
            if backend is not None and seen is not None:
                self._learn_memory(backend, seen)
            return
        if seen is not None:
            if before is None or before.keys() != seen.models.keys():
                self.lanes.catalogue_changed()
            self._learn_sizes(backend, seen)
            loaded = {model: item.get("size_vram", 0) for model, item in seen.loaded.items()}
            self._carry_out(self.lanes.note_memory(adapter.name, loaded, asked, self._now()))
        self._carry_out(self.lanes.note_probe(adapter.name, seen is not None, self._now()))
        self._note_breaker(backend)

    def _learn_memory(self, backend: Backend, seen: ProbeFindings) -> None:
        """Note the memory of a backend that the policy is about to get."""
        self._learn_sizes(backend, seen)
        if backend.manages:
            now = self._now()
            loaded = {model: item.get("size_vram", 0) for model, item in seen.loaded.items()}
            backend.resident = {model: Resident(vram, now, now) for model, vram in loaded.items()}

    def _note_trouble(self, adapter: Adapter, trouble: str) -> None:
        """Say once why a backend cannot be used, and once that it can be used again."""
        if trouble == adapter.trouble:
            return
        if trouble:
            log.warning("backend does not answer", backend=adapter.name, url=adapter.shown_url, cause=trouble)
        else:
            log.info("backend answers again", backend=adapter.name, url=adapter.shown_url)
        adapter.trouble = trouble

    def _learn_sizes(self, backend: Backend, seen: ProbeFindings) -> None:
        sizes = backend.sizes
        for model, item in seen.models.items():
            sizes.setdefault(
                model,
                self.pins.of(model).vram or int(item.get("size", 0) * FILE_TO_MEMORY)
                if isinstance(item.get("size", 0), int)
                else 0,
            )

    def _note_breaker(self, backend: Backend) -> None:
        if not self._is_current(backend):
            return
        state = backend.breaker.state
        if state is not self._breakers.get(backend.name, BreakerState.CLOSED):
            log.warning(
                "breaker changed",
                backend=backend.name,
                state=state.value,
                failures=dict(backend.breaker.in_a_row),
            )
        if state is BreakerState.CLOSED:
            self._breakers.pop(backend.name, None)
        else:
            self._breakers[backend.name] = state

    def _schedule_tick(self, delay: float) -> None:
        at = self._now() + delay
        if self._ticker is None or at < self._next_tick:
            if self._ticker is not None:
                self._ticker.cancel()
            self._next_tick = at
            self._ticker = self._loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._ticker = None
        self._carry_out(self.lanes.tick(self._now()))
        self._schedule_tick(BUSY_TICK if self.lanes.waiting.lanes or self.lanes.stopping else IDLE_TICK)

    def _do(self, chore: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self._loop.create_task(chore)
        self._chores.add(task)
        task.add_done_callback(self._chores.discard)
        return task


def _rules(settings: RouterSettings) -> PlacingRules:
    return PlacingRules(
        reserve_for=settings.reserve_for.total_seconds(),
        reserve_idle=settings.reserve_idle.total_seconds(),
        min_residency=settings.min_residency.total_seconds(),
        aging=settings.aging.total_seconds(),
        trickle=settings.trickle.total_seconds(),
        finish_grace=settings.finish_grace.total_seconds(),
        max_preemptions=settings.max_preemptions,
        max_attempts=settings.max_attempts,
        queue_limit=settings.queue_limit,
        orchestrator=frozenset(map(canonical, settings.orchestrator_models)),
        background=tuple(map(canonical, settings.background_models)),
    )


def _kinds(settings: RouterSettings) -> list[tuple[BackendSettings, bool]]:
    """Every backend, and whether it is a GPU."""
    return [(spec, True) for spec in settings.gpu_backends] + [(spec, False) for spec in settings.cpu_backends]


def _pool(settings: RouterSettings, kinds: list[tuple[BackendSettings, bool]]) -> list[Backend]:
    """The backends as the policy sees them; of two GPUs or more, the first is the orchestrator's."""
    swapping = [spec.name for spec, gpu in kinds if gpu and spec.kind == "ollama"]
    roles: dict[str, str] = {}
    if len(swapping) > 1 and settings.orchestrator_models:
        roles = {name: "background" for name in swapping} | {swapping[0]: "orchestrator"}
    cooldown = settings.breaker_cooldown.total_seconds()
    return [
        Backend(
            name=spec.name,
            gpu=gpu,
            slots=spec.parallel,
            breaker=Breaker(settings.breaker_failures, cooldown),
            manages=spec.kind == "ollama",
            vram=spec.vram,
            role=spec.role or roles.get(spec.name),
        )
        for spec, gpu in kinds
    ]
