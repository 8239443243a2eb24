"""A small world for the policy: backends that act when the test says so, and a clock that the test moves."""

from dataclasses import dataclass, field

from gristmill.router.breaker import BackendFailure, Breaker
from gristmill.router.effects import CancelLoad, Effect, End, Grant, Load, Preempt, RefuseRequest, StopAttempt, Unload
from gristmill.router.lanes import Lanes
from gristmill.router.placing import Act, PlacingRules
from gristmill.router.pool import Backend, Lease, LeasePhase, Ticket
from gristmill.router.priority import Priority

GB = 1024**3
SIZES = {"orch": 20 * GB, "bg7": 5 * GB, "bg14": 9 * GB, "embed": 5 * GB, "eyes": 8 * GB}
PATIENCE = {Priority.CODING: 30.0}


def gpu(name: str = "gpu", slots: int = 2, **more: object) -> Backend:
    settings = {"vram": 24 * GB, **more}
    return Backend(name, True, slots, Breaker(3, 10.0), sizes=dict(SIZES), **settings)  # type: ignore[arg-type]


def cpu(name: str = "cpu", slots: int = 4) -> Backend:
    return Backend(name, False, slots, Breaker(3, 10.0), sizes=dict(SIZES))


@dataclass
class World:
    """Carries out effects as a perfect owner would, and remembers what became of every ticket."""

    lanes: Lanes
    now: float = 1000.0
    running: list[Lease] = field(default_factory=list)
    leaving: list[Lease] = field(default_factory=list)
    loading: dict[str, str] = field(default_factory=dict)
    unloading: list[tuple[str, str]] = field(default_factory=list)
    answered: list[Ticket] = field(default_factory=list)
    refused: list[Ticket] = field(default_factory=list)
    cut_off: list[Ticket] = field(default_factory=list)
    gone: list[Ticket] = field(default_factory=list)
    tickets: list[Ticket] = field(default_factory=list)
    loads: list[tuple[str, str]] = field(default_factory=list)
    preempted: list[Ticket] = field(default_factory=list)

    @classmethod
    def of(cls, *backends: Backend, **rules: object) -> "World":
        return cls(Lanes(list(backends), PlacingRules(**rules), lambda name, model: True))  # type: ignore[arg-type]

    def do(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Grant(lease):
                    assert lease.phase is LeasePhase.RUNNING
                    self._no_background_behind_a_waiting_critical(lease)
                    self.running.append(lease)
                case Preempt(lease):
                    assert not lease.ticket.committed, "a request whose client saw a byte was run anew"
                    self.preempted.append(lease.ticket)
                    self._stop(lease)
                case End(lease):
                    self.cut_off.append(lease.ticket)
                    self._stop(lease)
                case StopAttempt(lease):
                    if lease.ticket.committed:
                        self.cut_off.append(lease.ticket)
                    self._stop(lease)
                case RefuseRequest(ticket):
                    self.refused.append(ticket)
                case Load(name, model, _):
                    assert name not in self.loading, "two loads at once on one backend"
                    self.loading[name] = model
                    self.loads.append((name, model))
                case CancelLoad(name, model):
                    assert self.loading[name] == model
                    del self.loading[name]
                    self.do(self.lanes.note_load_failed(name, model, self.now, blame=False))
                case Unload(name, model):
                    assert not [
                        lease for lease in self.running if lease.backend.name == name and lease.ticket.model == model
                    ]
                    self.unloading.append((name, model))

    def _stop(self, lease: Lease) -> None:
        assert lease in self.running
        self.running.remove(lease)
        self.leaving.append(lease)

    def _no_background_behind_a_waiting_critical(self, lease: Lease) -> None:
        if not lease.ticket.background:
            return
        for ticket, offer in self.lanes._consider(self.now):
            if ticket.priority is Priority.CRITICAL and offer.act is Act.WAIT:
                assert offer.backend is not lease.backend, "background work started where a P0 waits"

    # ── what happens ────────────────────────────────────────────────────────

    def submit(self, priority: int, model: str, session: str = "s", **more: object) -> Ticket:
        level = Priority(priority)
        ticket = Ticket(
            len(self.tickets),
            level,
            model,
            self.now,
            self.now + 600.0,
            PATIENCE.get(level, 0.0),
            session,
            **more,
        )  # type: ignore[arg-type]
        self.tickets.append(ticket)
        self.do(self.lanes.submit(ticket, self.now))
        return ticket

    def finish(self, lease: Lease) -> None:
        self.running.remove(lease)
        self.answered.append(lease.ticket)
        self.do(self.lanes.finish(lease, self.now))

    def fail(self, lease: Lease, kind: BackendFailure = BackendFailure.STATUS) -> None:
        self.running.remove(lease)
        self.do(self.lanes.fail(lease, kind, self.now))

    def leave(self, ticket: Ticket) -> None:
        """The client goes away, wherever its request is."""
        self.gone.append(ticket)
        lease = ticket.lease
        if lease is not None and lease in self.running:
            self._stop(lease)
            self.do(self.lanes.leave(lease, self.now))
        else:
            self.do(self.lanes.cancel(ticket, self.now))

    def confirm(self, lease: Lease) -> None:
        self.leaving.remove(lease)
        self.do(self.lanes.confirm(lease, self.now))

    def loaded(self, name: str = "gpu") -> None:
        model = self.loading.pop(name)
        self.do(self.lanes.note_loaded(name, model, SIZES[model], self.now))

    def load_failed(self, name: str = "gpu") -> None:
        self.do(self.lanes.note_load_failed(name, self.loading.pop(name), self.now, blame=True))

    def unloaded(self) -> None:
        name, model = self.unloading.pop(0)
        self.do(self.lanes.note_unloaded(name, model, self.now))

    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        self.do(self.lanes.tick(self.now))

    def settle_memory(self) -> None:
        """Let every stop, unload and load come to its end."""
        while self.leaving or self.unloading or self.loading:
            for lease in list(self.leaving):
                self.confirm(lease)
            while self.unloading:
                self.unloaded()
            for name in list(self.loading):
                self.loaded(name)

    def with_resident(self, *models: str, name: str = "gpu") -> "World":
        self.do(self.lanes.note_memory(name, {model: SIZES[model] for model in models}, self.now, self.now))
        self.now += 60
        return self

    # ── what must always be so ──────────────────────────────────────────────

    def check(self) -> None:
        waiting = list(self.lanes.waiting)
        assert len(waiting) == len(set(map(id, waiting))) == self.lanes.waiting.counts.total()
        for backend in self.lanes.backends.values():
            assert len(backend.leases) <= backend.slots
            mine = [lease for lease in [*self.running, *self.leaving] if lease.backend is backend]
            loading = [lease for lease in backend.leases if lease.phase is LeasePhase.LOADING]
            assert len(mine) + len(loading) == len(backend.leases), (
                "a slot is taken by nobody, or somebody runs without one"
            )
            if backend.vram is not None:
                assert sum(item.vram for item in backend.resident.values()) <= backend.vram
        for ticket in self.tickets:
            places = sum((ticket in waiting, ticket.lease is not None, ticket.ended))
            assert places == 1, f"{ticket} is in {places} places"
        self._critical_waits_for_no_background()

    def _critical_waits_for_no_background(self) -> None:
        promised: dict[str, int] = {}
        for ticket, offer in self.lanes._consider(self.now):
            if ticket.priority is not Priority.CRITICAL:
                continue
            assert offer.act is Act.WAIT, "a P0 waits although something could be done for it"
            backend = offer.backend
            if backend is None or backend.free > 0:
                continue
            promised[backend.name] = promised.get(backend.name, 0) + 1
            in_the_way = [lease for lease in backend.leases if lease.ticket.background and not lease.yielding]
            making_way = [lease for lease in backend.leases if lease.yielding]
            assert not in_the_way or promised[backend.name] <= len(making_way), "a P0 waits behind background work"

    def outcome_counts(self) -> None:
        """At the end of a world: every ticket had exactly one end."""
        for ticket in self.tickets:
            ends = sum(ends.count(ticket) for ends in (self.answered, self.refused, self.cut_off, self.gone))
            assert ends == 1, f"{ticket} had {ends} ends"
