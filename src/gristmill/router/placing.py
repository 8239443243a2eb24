"""The places that a request could take now, and the steps before it: pure decisions over the pool."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

import msgspec

from gristmill.router.pool import Backend, Lease, ModelSwitch, Ticket
from gristmill.router.priority import Priority


@dataclass(frozen=True, slots=True)
class PlacingRules:
    """The numbers the policy goes by; durations in seconds."""

    reserve_for: float = 1800.0
    reserve_idle: float = 300.0
    min_residency: float = 10.0
    aging: float = 30.0
    trickle: float = 10.0
    finish_grace: float = 2.0
    max_preemptions: int = 3
    max_attempts: int = 3
    queue_limit: int = 1000
    orchestrator: frozenset[str] = frozenset()
    background: tuple[str, ...] = ()

    def together(self, one: str, other: str) -> bool:
        """Whether two models belong to the same set."""
        return (one in self.orchestrator and other in self.orchestrator) or (
            one in self.background and other in self.background
        )


class Act(IntEnum):
    """The step that places a request on a backend, the cheapest first."""

    RUN = 0
    JOIN = 1  # its model is being loaded there
    SWITCH = 2  # models go and the new one comes
    PREEMPT = 3
    CANCEL = 4  # a load for less urgent work is in the way
    WAIT = 5


READY = (Act.RUN, Act.JOIN, Act.SWITCH)


class Offer(msgspec.Struct, frozen=True):
    """One way to serve a request; the smallest rank is the best."""

    rank: tuple[float, ...]
    act: Act
    backend: Backend | None
    why: str = ""
    models: tuple[str, ...] = ()
    victims: tuple[Lease, ...] = ()
    claims: bool = False  # whether less urgent work must leave this backend alone


NOWHERE = Offer((math.inf,), Act.WAIT, None, "no backend that serves this model is up")


@dataclass(slots=True)
class Promises:
    """The promises to more urgent tickets while the queue is gone through once."""

    held: set[str] = field(default_factory=set[str])
    promised: Counter[str] = field(default_factory=Counter[str])
    urgent: bool = False  # aged or due for the trickle: may claim a backend
    trickles: bool = False


def place(
    ticket: Ticket,
    gpus: Iterable[Backend],
    cpus: Iterable[Backend],
    standing: Promises,
    rules: PlacingRules,
    now: float,
) -> Offer:
    """The best offer for a ticket among the backends that serve its model."""
    open_gpus = _open(gpus, ticket, now)
    if ticket.preemptions >= rules.max_preemptions and ticket.background and _open(cpus, ticket, now):
        # moved often enough: from now on only where no P0 will come
        open_gpus = [gpu for gpu in open_gpus if gpu.role == "background"]
    offer = _critical if ticket.priority is Priority.CRITICAL else _ordinary
    best = _best([offer(ticket, gpu, standing, rules, now) for gpu in open_gpus], ticket)
    if best.act in READY or not cpus or not _cpu_will_do(ticket, gpus, bool(open_gpus), now):
        return best
    slow = _best([offer(ticket, cpu, standing, rules, now) for cpu in _open(cpus, ticket, now)], ticket)
    return slow if slow.act in READY or best.backend is None else best


def _open(backends: Iterable[Backend], ticket: Ticket, now: float) -> list[Backend]:
    return [backend for backend in backends if _possible(backend, ticket) and backend.breaker.admits(now)]


def _best(offers: list[Offer], ticket: Ticket) -> Offer:
    """The cheapest offer; a GPU that lives for the other model set comes last, so that it is not swapped."""
    if len(offers) == 1:
        return offers[0]
    other_set = "background" if ticket.priority is Priority.CRITICAL else "orchestrator"
    return min(
        offers,
        default=NOWHERE,
        key=lambda offer: (_strange(offer.backend, other_set, ticket.model), offer.rank),
    )


def _strange(backend: Backend | None, role: str, model: str) -> bool:
    return backend is not None and backend.role == role and not backend.holds(model)


def _possible(backend: Backend, ticket: Ticket) -> bool:
    return not backend.draining and backend.name not in ticket.avoided


def _cpu_will_do(ticket: Ticket, gpus: Iterable[Backend], gpu_up: bool, now: float) -> bool:
    if not any(_possible(gpu, ticket) for gpu in gpus):
        return True
    if ticket.priority is Priority.VISION:
        return False
    late = ticket.priority is not Priority.CRITICAL and now - ticket.arrived >= ticket.patience
    return late or not gpu_up  # a P0 leaves the GPUs only when none is up


def _critical(ticket: Ticket, gpu: Backend, standing: Promises, rules: PlacingRules, now: float) -> Offer:
    """The step that serves a P0 here: background work that is in the way goes."""
    taste = (gpu.breaker.unsure(now), ticket.session not in gpu.reservations, len(gpu.leases) / gpu.slots)
    if gpu.holds(ticket.model):
        if gpu.free > 0 and standing.promised[gpu.name]:
            return Offer((5.5, *taste), Act.WAIT, gpu, "an earlier P0 waits for another model here", claims=True)
        if gpu.free > 0:
            return Offer((0, *taste), Act.RUN, gpu)
        return _slot_for_critical(gpu, standing, rules, taste)
    if gpu.switch is not None:
        return _behind_switch(ticket, gpu, gpu.switch, standing, rules, taste)
    going = _evicted_by_critical(ticket.model, gpu, rules)
    if going is None:
        return Offer((6, *taste), Act.WAIT, gpu, "a more urgent model's requests must end first", claims=True)
    in_the_way = [lease for model in going for lease in gpu.leases_of(model)]
    if victims := tuple(lease for lease in in_the_way if not lease.yielding):
        return Offer(
            (3, *taste),
            Act.PREEMPT,
            gpu,
            "background work makes way for its model",
            victims=victims,
            claims=True,
        )
    if in_the_way:
        return Offer(
            (2.5, *taste),
            Act.WAIT,
            gpu,
            "the backend has yet to confirm that background work stopped",
            claims=True,
        )
    if gpu.free <= 0:
        return _slot_for_critical(gpu, standing, rules, taste)
    return Offer((2, *taste), Act.SWITCH, gpu, models=going)


def _evicted_by_critical(model: str, gpu: Backend, rules: PlacingRules) -> tuple[str, ...] | None:
    def movable(other: str) -> bool:
        return all(lease.ticket.background for lease in gpu.leases_of(other))

    if gpu.vram is not None:
        return gpu.evictions(model, movable)
    # how much fits is unknown, and a P0 must not find out by waiting: only models of its own set may stay
    strangers = tuple(other for other in gpu.resident if not rules.together(model, other))
    return strangers if all(map(movable, strangers)) else None


def _slot_for_critical(gpu: Backend, standing: Promises, rules: PlacingRules, taste: tuple[float, ...]) -> Offer:
    """Every slot is taken: one background lease per waiting P0 has to go."""
    coming = sum(lease.yielding for lease in gpu.leases)
    if standing.promised[gpu.name] < coming:
        return Offer(
            (1, *taste),
            Act.WAIT,
            gpu,
            "the backend has yet to confirm that background work stopped",
            claims=True,
        )
    victim = min(
        (lease for lease in gpu.leases if lease.ticket.background and not lease.yielding),
        key=_loss,
        default=None,
    )
    if victim is None:
        waiting = float(standing.promised[gpu.name])
        return Offer((5, waiting, *taste), Act.WAIT, gpu, f"all {gpu.slots} slots run urgent work", claims=True)
    return Offer((1.5, *taste), Act.PREEMPT, gpu, "background work makes way", victims=(victim,), claims=True)


def _loss(lease: Lease) -> tuple[bool, int, float]:
    """How much is lost by preempting it: begun answers, then much-moved ones, then the longest-running."""
    return lease.ticket.committed, lease.ticket.preemptions, -lease.since


def _behind_switch(
    ticket: Ticket, gpu: Backend, switch: ModelSwitch, standing: Promises, rules: PlacingRules, taste: tuple[float, ...]
) -> Offer:
    if switch.model == ticket.model and not switch.cancelled:
        return Offer((1.2, *taste), Act.JOIN, gpu) if gpu.free > 0 else _slot_for_critical(gpu, standing, rules, taste)
    if switch.cancelled:
        return Offer((3.2, *taste), Act.WAIT, gpu, f"the load of {switch.model} is being stopped", claims=True)
    if switch.priority is Priority.BACKGROUND:
        return Offer((3.5, *taste), Act.CANCEL, gpu, f"the load of {switch.model} makes way", claims=True)
    return Offer((4, *taste), Act.WAIT, gpu, f"{switch.model} is being loaded", claims=True)


def _ordinary(ticket: Ticket, backend: Backend, standing: Promises, rules: PlacingRules, now: float) -> Offer:
    """The step that serves any other request here; running requests are not disturbed."""
    model = ticket.model
    taste = (backend.breaker.unsure(now), len(backend.leases) / backend.slots)
    if standing.held and backend.name in standing.held:
        return Offer((7, *taste), Act.WAIT, backend, "more urgent work waits for this backend")
    if backend.reservations and backend.free <= 1 and not standing.trickles:
        return Offer((8, *taste), Act.WAIT, backend, "a P0 session keeps the last slot of this GPU")
    claims = standing.urgent
    if len(backend.leases) >= backend.slots:
        return Offer((6, *taste), Act.WAIT, backend, f"all {backend.slots} slots are taken", claims=claims)
    if backend.holds(model):
        return Offer((0, *taste), Act.RUN, backend)
    if backend.switch is not None:
        if backend.switch.model == model and not backend.switch.cancelled:
            return Offer((1, *taste), Act.JOIN, backend)
        return Offer((5, *taste), Act.WAIT, backend, f"{backend.switch.model} is being loaded", claims=claims)
    if backend.reservations and backend.vram is None:
        # Ollama makes space by itself, and could choose the session's model for that
        return Offer((8, *taste), Act.WAIT, backend, "a P0 session holds this GPU, whose memory (vram) is not known")
    going = backend.evictions(model, lambda other: _is_replaceable(other, backend, rules, now))
    if going is None and backend.reservations:
        return Offer((8, *taste), Act.WAIT, backend, "its model does not fit beside that of a P0 session")
    if going is None:
        return Offer(
            (4, *taste),
            Act.WAIT,
            backend,
            "the models in memory are in use or were loaded a moment ago",
            claims=claims,
        )
    return Offer((2 + bool(going), *taste), Act.SWITCH, backend, models=going)


def _is_replaceable(model: str, backend: Backend, rules: PlacingRules, now: float) -> bool:
    """Whether a model may be replaced by anything but a P0."""
    if backend.role == "orchestrator" and model in rules.orchestrator:
        return False
    if any(model in held.models for held in backend.reservations.values()):
        return False
    return now - backend.resident[model].since >= rules.min_residency and not any(backend.leases_of(model))
