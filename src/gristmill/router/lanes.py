"""The scheduling policy: a state machine with no clock and no I/O, events in, effects out."""

import math
from collections.abc import Callable, Iterator

from gristmill.router.breaker import BackendFailure
from gristmill.router.effects import Effect, End, Grant, Preempt, RefuseRequest, StopAttempt
from gristmill.router.memory import ModelLoader
from gristmill.router.placing import READY, Act, Offer, PlacingRules, Promises, place
from gristmill.router.pool import Backend, Lease, LeasePhase, Ticket
from gristmill.router.priority import Priority
from gristmill.router.waiting import TRICKLE, WaitingTickets

NONE: tuple[Backend, ...] = ()


class Lanes:
    """Owns every ticket, lease, model and reservation; each event returns the effects to carry out."""

    def __init__(self, backends: list[Backend], rules: PlacingRules, serves: Callable[[str, str], bool]) -> None:
        self.backends = {backend.name: backend for backend in backends}
        self.rules = rules
        self.waiting = WaitingTickets(rules, self._in_memory)
        self.memory = ModelLoader(backends, rules, serves, self._emit)
        self.stopping: set[Lease] = set()  # begun answers that may go on until their bound
        self.draining = False
        self.retired: list[Backend] = []  # no longer configured, but at work
        self.service = 1.0  # seconds one request takes, a moving average
        self._serves = serves
        self._serving: dict[str, tuple[tuple[Backend, ...], tuple[Backend, ...]]] = {}
        self._out: list[Effect] = []

    def configure(self, backends: list[Backend], rules: PlacingRules, now: float) -> list[Effect]:
        """Go by these backends and rules from now on; whatever runs on a backend that is gone runs to its end."""
        before, self.backends = self.backends, {backend.name: backend for backend in backends}
        self.rules = self.waiting.rules = rules
        self.memory.configure(backends, rules)
        self._serving.clear()
        for backend in before.values():
            if self.backends.get(backend.name) is not backend:
                self._retire(backend, now)
        for backend in backends:
            if before.get(backend.name) is not backend:
                self.memory.want_own_set(backend)
        return self._pump(now)

    def _retire(self, backend: Backend, now: float) -> None:
        """Requests that wait for a model on this backend wait for another place instead."""
        backend.switch = None
        backend.reservations.clear()
        for lease in [lease for lease in backend.leases if lease.phase is LeasePhase.LOADING]:
            self._vacate(lease)
            self.waiting.add(lease.ticket, now, front=True)
        if backend.leases:
            self.retired.append(backend)

    def every_lease(self) -> list[Lease]:
        """Every slot that is taken, also on backends that are no longer configured."""
        self.retired = [backend for backend in self.retired if backend.leases]
        return [lease for backend in (*self.backends.values(), *self.retired) for lease in backend.leases]

    # ── requests ────────────────────────────────────────────────────────────

    def submit(self, ticket: Ticket, now: float) -> list[Effect]:
        """A request arrived."""
        if self.draining:
            return self._answer(RefuseRequest(ticket, 503, "the router is draining", 5))
        if ticket.priority is Priority.CRITICAL:
            self.memory.touch(ticket.session, now)
        if not self.waiting.lanes:  # the queue is empty: no need to go through it
            offer = self._place(ticket, NOBODY_WAITS, now)
            if offer.act in READY:
                self._accept(ticket, offer, now)
                return self._flush()
        self.waiting.add(ticket, now)
        effects = self._pump(now)
        if self.waiting.counts[ticket.priority] > self.rules.queue_limit and ticket.lease is None:
            self.waiting.remove(ticket)
            reason = f"{self.waiting.counts[ticket.priority]} {ticket.priority.label} requests already wait"
            return [*effects, *self._answer(RefuseRequest(ticket, 503, reason, self.retry_after()))]
        return effects

    def cancel(self, ticket: Ticket, now: float) -> list[Effect]:
        """The client went away while its request waited or its model was being loaded."""
        ticket.ended = True
        lease = ticket.lease
        if lease is None:
            self.waiting.remove(ticket)
        elif lease.phase is not LeasePhase.LEAVING:
            self._vacate(lease)
            self.memory.drop_needless_load(lease.backend)
        return self._pump(now)

    def commit(self, ticket: Ticket) -> None:
        """The client is about to see the first byte: from here on the request cannot be run anew."""
        ticket.committed = True

    def finish(self, lease: Lease, now: float) -> list[Effect]:
        """The backend answered to the end."""
        self._vacate(lease)
        lease.backend.breaker.succeed()
        self.service += 0.1 * (now - lease.since - self.service)
        ticket = lease.ticket
        ticket.ended = True
        if ticket.lease is not None:  # it was told to stop, yet had just ended: its second place is not needed
            self._vacate(ticket.lease)
        elif self.waiting.lanes:
            self.waiting.remove(ticket)
        if ticket.priority is Priority.CRITICAL:
            self.memory.touch(ticket.session, now)
        return self._pump(now)

    def leave(self, lease: Lease, now: float) -> list[Effect]:
        """The attempt is over for us, the backend has yet to confirm: the slot stays taken."""
        self.stopping.discard(lease)
        if lease.phase is not LeasePhase.LEAVING:
            lease.phase = LeasePhase.LEAVING
            lease.ticket.ended = True
            lease.ticket.lease = None
        return self._pump(now)

    def confirm(self, lease: Lease, now: float) -> list[Effect]:
        """The backend has stopped working on a lease that was leaving."""
        self._vacate(lease)
        return self._pump(now)

    def fail(
        self, lease: Lease, kind: BackendFailure, now: float, retry_after: float | None = None, *, gone: bool = True
    ) -> list[Effect]:
        """An attempt failed; if the backend may still work on it, its slot stays taken until it confirms.

        Before the first byte the ticket is tried elsewhere.
        """
        if gone:
            self._vacate(lease)
        elif lease.phase is not LeasePhase.LEAVING:
            self.stopping.discard(lease)
            lease.phase, lease.ticket.lease = LeasePhase.LEAVING, None
        lease.backend.breaker.fail(kind, now, retry_after)
        if kind is BackendFailure.ABSENT:
            self.catalogue_changed()
        ticket = lease.ticket
        if not ticket.ended and ticket.lease is None and ticket not in self.waiting:
            self._retry(lease, kind, now)
        return self._pump(now)

    def _retry(self, lease: Lease, kind: BackendFailure, now: float) -> None:
        ticket, backend = lease.ticket, lease.backend
        ticket.failures += 1
        ticket.avoided |= {backend.name}
        gpus, cpus = self.serving(ticket.model)
        elsewhere = any(other.name not in ticket.avoided and other.breaker.alive() for other in (*gpus, *cpus))
        if ticket.committed or ticket.failures >= self.rules.max_attempts or not elsewhere:
            ticket.ended = True
            self._out.append(
                RefuseRequest(
                    ticket,
                    503 if kind is BackendFailure.THROTTLED else 502,
                    f"{backend.name} failed ({kind.value})",
                    self.retry_after(),
                )
            )
        else:
            self._send_back(lease, now)

    def _send_back(self, lease: Lease, now: float) -> None:
        """Let a ticket wait anew; the time in which it was worked on is none that it waited for a place."""
        lease.ticket.deadline += now - lease.since
        self.waiting.add(lease.ticket, now, front=True)

    # ── sessions, draining, time ────────────────────────────────────────────

    def start(self, now: float) -> list[Effect]:
        """Give every GPU its set: with two or more, both sets live side by side."""
        for backend in self.backends.values():
            self.memory.want_own_set(backend)
        return self._pump(now)

    def release(self, session: str, now: float) -> list[Effect]:
        """A P0 session is over; an empty name ends all."""
        self.memory.release(session)
        return self._pump(now)

    def drain(self, name: str | None, on: bool, now: float) -> list[Effect]:
        """Take no new work, on the whole router or one backend; accepted requests are finished."""
        if name is None:
            self.draining = on
        else:
            self.backends[name].draining = on
        return self._pump(now)

    def close(self) -> list[Effect]:
        """The time for accepted requests is over: every client that is still here is told."""
        self.draining = True
        for ticket in list(self.waiting):
            self.waiting.remove(ticket)
            self._turn_out(ticket)
        for lease in self.every_lease():
            if lease.phase is LeasePhase.LOADING:
                self._vacate(lease)
                self._turn_out(lease.ticket)
            elif lease.phase is LeasePhase.RUNNING:
                self.stopping.discard(lease)
                lease.phase, lease.ticket.lease = LeasePhase.LEAVING, None
                self._out.append(StopAttempt(lease))
                self._turn_out(lease.ticket)
        return self._flush()

    def _turn_out(self, ticket: Ticket) -> None:
        ticket.ended = True
        if not ticket.committed:
            self._out.append(RefuseRequest(ticket, 503, "the router is stopping", 5))

    def tick(self, now: float) -> list[Effect]:
        """Time has passed: deadlines, bounds, reservations, aging."""
        for lease in [lease for lease in self.stopping if now >= lease.end_by]:
            self.stopping.discard(lease)
            lease.phase, lease.ticket.ended, lease.ticket.lease = LeasePhase.LEAVING, True, None
            self._out.append(End(lease))
        for ticket in [ticket for ticket in self.waiting if now >= ticket.deadline]:
            why = self._place(ticket, NOBODY_WAITS, now).why
            self.waiting.remove(ticket)
            ticket.ended = True
            self._out.append(
                RefuseRequest(ticket, 503, f"no place in time: {why or 'others came first'}", self.retry_after())
            )
        self.memory.expire(now)
        return self._pump(now)

    # ── models ──────────────────────────────────────────────────────────────

    def note_loaded(self, name: str, model: str, vram: int, now: float) -> list[Effect]:
        """A model has come into memory: everything that waited for it starts."""
        backend = self.backends[name]
        self.memory.note_loaded(backend, model, vram, now)
        waited = [lease for lease in backend.leases_of(model) if lease.phase is LeasePhase.LOADING]
        for lease in sorted(waited, key=lambda lease: (lease.ticket.priority, lease.ticket.arrived)):
            self._start(lease, now)
        return self._pump(now)

    def note_load_failed(self, name: str, model: str, now: float, *, blame: bool) -> list[Effect]:
        """A load failed, or was stopped on our word, which is not the backend's failure."""
        backend = self.backends[name]
        for lease in self.memory.note_load_failed(backend, model, blame=blame):
            self._vacate(lease)
            if blame:
                self._retry(lease, BackendFailure.LOAD, now)
            else:
                self.waiting.add(lease.ticket, now, front=True)
        if blame:
            backend.breaker.fail(BackendFailure.LOAD, now)
        return self._pump(now)

    def note_unloaded(self, name: str, model: str, now: float) -> list[Effect]:
        """A model is gone from memory."""
        self.memory.note_unloaded(self.backends[name], model, now)
        return self._pump(now)

    def note_memory(self, name: str, models: dict[str, int], asked: float, now: float) -> list[Effect]:
        """The list of /api/ps, and when it was asked for."""
        backend = self.backends[name]
        if not backend.manages:
            return []
        self.memory.note_memory(backend, models, asked, now)
        return self._pump(now)

    def note_probe(self, name: str, alive: bool, now: float) -> list[Effect]:
        """Whether the active probe found a backend alive."""
        backend = self.backends[name]
        backend.breaker.note_probe(alive, now)
        return self._pump(now)

    def catalogue_changed(self) -> None:
        """A backend serves other models than before."""
        self._serving.clear()

    def serving(self, model: str) -> tuple[tuple[Backend, ...], tuple[Backend, ...]]:
        """The GPU and the CPU backends that serve a model."""
        if (found := self._serving.get(model)) is None:
            able = [backend for backend in self.backends.values() if self._serves(backend.name, model)]
            found = tuple(b for b in able if b.gpu), tuple(b for b in able if not b.gpu)
            if found != (NONE, NONE):  # unknown names come from clients: they must not fill the memory
                self._serving[model] = found
        return found

    def _in_memory(self, model: str) -> bool:
        gpus, _ = self.serving(model)
        return any(gpu.manages and model in gpu.resident for gpu in gpus)

    # ── the queue ───────────────────────────────────────────────────────────

    def retry_after(self) -> int:
        """After how many seconds a refused client may try again: when about half the queue is gone."""
        slots = sum(backend.slots for backend in self.backends.values()) or 1
        return max(1, min(60, math.ceil(self.service * (1 + self.waiting.counts.total()) / slots / 2)))

    def explain(self, now: float) -> Iterator[tuple[Ticket, str]]:
        """Every waiting ticket and why it waits."""
        for ticket, offer in self._consider(now):
            yield ticket, offer.why or "its turn is next"

    def _pump(self, now: float) -> list[Effect]:
        while self.waiting.lanes and self._go_through_queue(now):
            pass  # a preempted request may find another place
        if self.memory.unsettled and self.waiting.counts.total() == self.waiting.counts[Priority.BACKGROUND]:
            self.memory.keep_house(now)
        return self._flush()

    def _go_through_queue(self, now: float) -> bool:
        """Go through the queue once; true when that sent a request back into it."""
        sent_back = False
        for ticket, offer in self._consider(now):
            if offer.act in READY:
                self.waiting.remove(ticket)
                self._accept(ticket, offer, now)
            elif offer.act is not Act.WAIT:
                self._make_way(offer, now)
                sent_back = True
        return sent_back

    def _consider(self, now: float) -> Iterator[tuple[Ticket, Offer]]:
        """Every ticket that can be decided on, most urgent first; one that must wait speaks for its lane."""
        standing = Promises()
        for urgency, lane in self.waiting.order_lanes(now):
            standing.urgent, standing.trickles = urgency < Priority.BACKGROUND, urgency == TRICKLE
            for ticket in list(lane):
                offer = self._place(ticket, standing, now)
                if offer.claims and offer.backend is not None:
                    standing.held.add(offer.backend.name)
                    standing.promised[offer.backend.name] += 1
                yield ticket, offer
                if offer.act not in READY and ticket.priority is not Priority.CRITICAL:
                    break

    # ── placing ─────────────────────────────────────────────────────────────

    def _place(self, ticket: Ticket, standing: Promises, now: float) -> Offer:
        gpus, cpus = self.serving(ticket.model)
        return place(ticket, gpus, cpus, standing, self.rules, now)

    def _accept(self, ticket: Ticket, offer: Offer, now: float) -> None:
        backend = offer.backend
        assert backend is not None
        lease = Lease(ticket, backend, LeasePhase.LOADING, now)
        backend.leases.add(lease)
        lease.tries = backend.breaker.begin()
        ticket.lease = lease
        if ticket.priority is Priority.BACKGROUND:
            self.waiting.note_trickle(now)
        elif ticket.priority is Priority.CRITICAL and backend.gpu:
            self.memory.reserve(backend, ticket.session, ticket.model, now)
        if offer.act is Act.RUN:
            self._start(lease, now)
        elif offer.act is Act.SWITCH:
            self.memory.switch(backend, ticket.model, offer.models, ticket.priority, now)
        elif backend.switch is not None:
            backend.switch.priority = min(backend.switch.priority, ticket.priority)

    def _start(self, lease: Lease, now: float) -> None:
        lease.phase, lease.since = LeasePhase.RUNNING, now
        if (resident := lease.backend.resident.get(lease.ticket.model)) is not None:
            resident.used = now
        self._out.append(Grant(lease))

    def _make_way(self, offer: Offer, now: float) -> None:
        for victim in offer.victims:
            self._preempt(victim, now)
        if offer.act is Act.CANCEL and offer.backend is not None:
            for lease in self.memory.stop_switch(offer.backend):  # they waited for the load
                self._vacate(lease)
                self.waiting.add(lease.ticket, now, front=True)

    def _preempt(self, lease: Lease, now: float) -> None:
        ticket = lease.ticket
        if lease.phase is LeasePhase.LOADING:  # nothing runs yet: it just goes back
            self._vacate(lease)
            self.waiting.add(ticket, now, front=True)
            return
        if ticket.committed:
            lease.end_by = now + self.rules.finish_grace
            self.stopping.add(lease)
            return
        lease.phase, ticket.lease = LeasePhase.LEAVING, None
        self._out.append(Preempt(lease))
        if ticket.preemptions >= self.rules.max_preemptions:
            ticket.ended = True
            self._out.append(
                RefuseRequest(
                    ticket,
                    503,
                    f"preempted {ticket.preemptions + 1} times by more urgent work",
                    self.retry_after(),
                )
            )
        else:
            ticket.preemptions += 1
            self._send_back(lease, now)

    def _vacate(self, lease: Lease) -> None:
        self.stopping.discard(lease)
        lease.backend.leases.discard(lease)
        if lease.tries:
            lease.backend.breaker.abandon()
        if lease.ticket.lease is lease:
            lease.ticket.lease = None

    def _answer(self, refusal: RefuseRequest) -> list[Effect]:
        refusal.ticket.ended = True
        return [refusal]

    def _emit(self, effect: Effect) -> None:
        self._out.append(effect)

    def _flush(self) -> list[Effect]:
        if not self._out:
            return NO_EFFECTS
        out, self._out = self._out, []
        return out


NOBODY_WAITS = Promises()
NO_EFFECTS: list[Effect] = []
