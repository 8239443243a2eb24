"""The memory of each GPU: models that come and go on our word, and the set that a GPU goes back to."""

import math
from collections.abc import Callable, Iterable

from gristmill.router.effects import CancelLoad, Effect, Load, Unload
from gristmill.router.placing import PlacingRules
from gristmill.router.pool import Backend, Lease, LeasePhase, ModelSwitch, Reservation, Resident
from gristmill.router.priority import Priority


class ModelLoader:
    """Loads one model at a time per backend, and gives a GPU its own set when no session holds it."""

    def __init__(
        self,
        backends: Iterable[Backend],
        rules: PlacingRules,
        serves: Callable[[str, str], bool],
        emit: Callable[[Effect], None],
    ) -> None:
        self._serves, self._emit = serves, emit
        self.configure(backends, rules)
        self.unsettled = False  # whether some GPU lacks a model of its set

    def configure(self, backends: Iterable[Backend], rules: PlacingRules) -> None:
        """Go by these backends and rules from now on."""
        self._backends, self._rules = list(backends), rules

    # ── models ──────────────────────────────────────────────────────────────

    def switch(self, backend: Backend, model: str, going: tuple[str, ...], priority: Priority, now: float) -> None:
        """Bring a model in, once these others are gone."""
        backend.switch = ModelSwitch(model, now, set(going), priority)
        for other in going:
            self._emit(Unload(backend.name, other))
        if not going:
            self._load_or_stop(backend, backend.switch)

    def _load_or_stop(self, backend: Backend, switch: ModelSwitch) -> None:
        if switch.cancelled:
            backend.switch = None
            return
        embeds = any(lease.ticket.embeds for lease in backend.leases_of(switch.model))
        self._emit(Load(backend.name, switch.model, embeds))

    def stop_switch(self, backend: Backend) -> list[Lease]:
        """Stop a load for more urgent work; returns the leases that waited for it."""
        switch = backend.switch
        if switch is None or switch.cancelled:
            return []
        self._cancel(backend, switch)
        return [lease for lease in backend.leases_of(switch.model) if lease.phase is LeasePhase.LOADING]

    def drop_needless_load(self, backend: Backend) -> None:
        """Stop a load that no request waits for any more, unless its model is of a set."""
        switch = backend.switch
        if switch is None or switch.cancelled or switch.model in backend.wants or any(backend.leases_of(switch.model)):
            return
        self._cancel(backend, switch)

    def _cancel(self, backend: Backend, switch: ModelSwitch) -> None:
        switch.cancelled = True
        if not switch.leaving:
            self._emit(CancelLoad(backend.name, switch.model))

    def note_loaded(self, backend: Backend, model: str, vram: int, now: float) -> None:
        backend.resident[model] = Resident(vram or backend.sizes.get(model, 0), now, now)
        if vram:
            backend.sizes[model] = vram
        backend.unloaded.pop(model, None)
        backend.switch = None

    def note_load_failed(self, backend: Backend, model: str, *, blame: bool) -> list[Lease]:
        """The leases that waited for it."""
        backend.switch = None
        if blame:
            backend.wants = tuple(other for other in backend.wants if other != model)
        return [lease for lease in backend.leases_of(model) if lease.phase is LeasePhase.LOADING]

    def note_unloaded(self, backend: Backend, model: str, now: float) -> None:
        """A model is gone; the last that had to go lets the new one in."""
        backend.resident.pop(model, None)
        backend.unloaded[model] = now
        if (switch := backend.switch) is not None:
            switch.leaving.discard(model)
            if not switch.leaving:
                self._load_or_stop(backend, switch)

    def note_memory(self, backend: Backend, models: dict[str, int], asked: float, now: float) -> None:
        """Learn from the list of /api/ps; our own loads and unloads since it was asked for are newer."""
        going = backend.switch.leaving if backend.switch else set[str]()
        for model in [
            model
            for model, item in backend.resident.items()
            if model not in models and item.since < asked and model not in going
        ]:
            del backend.resident[model]
        for model, vram in models.items():
            backend.sizes[model] = vram or backend.sizes.get(model, 0)
            if (item := backend.resident.get(model)) is not None:
                item.vram = vram or item.vram
            elif backend.unloaded.get(model, -math.inf) < asked:
                backend.resident[model] = Resident(vram, now, now)

    # ── reservations and sets ───────────────────────────────────────────────

    def reserve(self, backend: Backend, session: str, model: str, now: float) -> None:
        backend.wants = ()
        held = backend.reservations.setdefault(session, Reservation(now, now))
        held.seen = now
        held.models.add(model)

    def touch(self, session: str, now: float) -> None:
        for backend in self._backends:
            if (held := backend.reservations.get(session)) is not None:
                held.seen = now

    def release(self, session: str) -> None:
        """A session is over; an empty name ends all."""
        self._end_where(lambda _, name, __: session in ("", name))

    def expire(self, now: float) -> None:
        """End reservations that were held or idle for too long."""
        self._end_where(lambda backend, name, held: self._over(backend, name, held, now))

    def _end_where(self, over: Callable[[Backend, str, Reservation], bool]) -> None:
        for backend in self._backends:
            for session in [name for name, held in backend.reservations.items() if over(backend, name, held)]:
                del backend.reservations[session]
                if not backend.reservations:
                    self.want_own_set(backend)

    def _over(self, backend: Backend, session: str, held: Reservation, now: float) -> bool:
        if now - held.since >= self._rules.reserve_for:
            return True
        at_work = any(lease.ticket.session == session and not lease.ticket.background for lease in backend.leases)
        return now - held.seen >= self._rules.reserve_idle and not at_work

    def want_own_set(self, backend: Backend) -> None:
        if backend.gpu and backend.manages:
            self.unsettled = True
            orchestrates = backend.role == "orchestrator"
            backend.wants = tuple(sorted(self._rules.orchestrator)) if orchestrates else self._rules.background

    def keep_house(self, now: float) -> None:
        """Load the set of a GPU, one model at a time, while no request needs the GPU."""
        self.unsettled = any(backend.wants for backend in self._backends)
        for backend in self._backends:
            idle = backend.switch is None and not backend.leases and not backend.reservations
            if backend.wants and idle and backend.breaker.alive():
                self._load_next_of_set(backend, now)

    def _load_next_of_set(self, backend: Backend, now: float) -> None:
        absent = (model for model in backend.wants if model not in backend.resident)
        missing = next((model for model in absent if self._serves(backend.name, model)), None)
        spare = missing and backend.evictions(missing, lambda model: model not in backend.wants)
        if missing is None or spare is None:
            backend.wants = ()  # the set is there, or all of it that fits
        else:
            self.switch(backend, missing, tuple(spare), Priority.BACKGROUND, now)
