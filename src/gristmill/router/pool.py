"""The policy's knowledge of each backend: slots, models in memory, reservations, trust."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from gristmill.router.breaker import Breaker
from gristmill.router.priority import Priority


class LeasePhase(StrEnum):
    """Where a lease stands; a lease is a taken slot."""

    LOADING = "loading"
    RUNNING = "running"
    LEAVING = "leaving"  # told to stop; the slot is free when the backend has confirmed it


class Ticket(msgspec.Struct, eq=False):
    """One request, from its arrival to its end."""

    id: int
    priority: Priority
    model: str
    arrived: float
    deadline: float
    patience: float = math.inf
    session: str = ""
    embeds: bool = False
    announces: bool = False
    committed: bool = False
    preemptions: int = 0
    failures: int = 0
    avoided: frozenset[str] = frozenset()
    lease: "Lease | None" = None
    ended: bool = False

    @property
    def background(self) -> bool:
        return self.priority is Priority.BACKGROUND


class Lease(msgspec.Struct, eq=False):
    """A slot of a backend, taken by a ticket."""

    ticket: Ticket
    backend: "Backend"
    phase: LeasePhase
    since: float
    end_by: float = math.inf
    tries: bool = False  # whether the breaker waits for its result

    @property
    def yielding(self) -> bool:
        """Whether its slot will be free soon, by our own word."""
        return self.phase is LeasePhase.LEAVING or self.end_by != math.inf


@dataclass(slots=True)
class Resident:
    """A model in a backend's memory."""

    vram: int
    since: float
    used: float


@dataclass(slots=True)
class ModelSwitch:
    """A load under way: first models make space, then the new one comes. One at a time per backend."""

    model: str
    since: float
    leaving: set[str]
    priority: Priority
    cancelled: bool = False


@dataclass(slots=True)
class Reservation:
    """A P0 session that holds a GPU."""

    since: float
    seen: float
    models: set[str] = field(default_factory=set[str])  # the models of its P0 requests


@dataclass(slots=True, eq=False)
class Backend:
    """A backend as the policy sees it."""

    name: str
    gpu: bool
    slots: int
    breaker: Breaker
    manages: bool = True  # whether models are loaded and unloaded on our word
    vram: int | None = None
    role: str | None = None
    leases: set[Lease] = field(default_factory=set[Lease])
    resident: dict[str, Resident] = field(default_factory=dict[str, Resident])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    switch: ModelSwitch | None = None
    reservations: dict[str, Reservation] = field(default_factory=dict[str, Reservation])
    wants: tuple[str, ...] = ()
    draining: bool = False
    unloaded: dict[str, float] = field(default_factory=dict[str, float])

    def configure(self, new: "Backend") -> None:
        """Go by the settings of a new backend at the same place; knowledge about this one stays."""
        self.slots, self.vram, self.role = new.slots, new.vram, new.role
        self.breaker.threshold, self.breaker.cooldown = new.breaker.threshold, new.breaker.cooldown

    @property
    def free(self) -> int:
        return self.slots - len(self.leases)

    def holds(self, model: str) -> bool:
        """Whether a request for this model could start here now, as far as memory goes."""
        if not self.manages:
            return True
        return model in self.resident and not (self.switch and model in self.switch.leaving)

    def leases_of(self, model: str) -> Iterator[Lease]:
        return (lease for lease in self.leases if lease.ticket.model == model)

    def free_vram(self) -> float:
        return math.inf if self.vram is None else self.vram - sum(item.vram for item in self.resident.values())

    def evictions(self, model: str, movable: Callable[[str], bool]) -> tuple[str, ...] | None:
        """The models that must go before this one fits, least recently used first; None when they cannot."""
        if self.vram is None:  # the memory is not configured: the backend makes space by itself
            return ()
        spare, need, going = self.free_vram(), self.sizes.get(model, 0), list[str]()
        for other in sorted(self.resident, key=lambda name: self.resident[name].used):
            if need <= spare:
                break
            if movable(other):
                spare += self.resident[other].vram
                going.append(other)
        # a model larger than the whole budget is the backend's to refuse, once it is alone
        return tuple(going) if need <= spare or len(going) == len(self.resident) else None
