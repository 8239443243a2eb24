"""The answer to GET /router/status: running requests, waiting ones with the reason, and every backend."""

import hashlib

from gristmill.router.pool import Backend, Lease
from gristmill.router.priority import Priority
from gristmill.router.rows import BackendStatus, RouterStatusRow, RunningStatus
from gristmill.router.scheduler import Scheduler
from gristmill.router.waiting import lane_of

SHOWN = 200  # waiting requests that are listed one by one; the counts are always complete


def status(scheduler: Scheduler, now: float) -> RouterStatusRow:
    """Everything an operator asks for, without a word of any request."""
    lanes = scheduler.lanes
    explained = [(ticket, why) for ticket, why in lanes.explain(now)]
    reasons = {lane_of(ticket): why for ticket, why in explained}
    waiting = [(ticket, reasons.get(lane_of(ticket), "its turn is next")) for ticket in lanes.waiting]
    waiting.sort(key=lambda item: (item[0].priority, item[0].arrived))
    return {
        "draining": lanes.draining,
        "backends": [_describe_backend(backend, scheduler, now) for backend in lanes.backends.values()],
        "running": [_describe_lease(lease, now) for lease in lanes.every_lease()],
        "queues": {priority.label: lanes.waiting.counts[priority] for priority in Priority},
        "waiting": [
            {
                "id": ticket.id,
                "priority": ticket.priority.label,
                "model": ticket.model,
                "age": _age(now, ticket.arrived),
                "deadline_in": _age(ticket.deadline, now),
                "preemptions": ticket.preemptions,
                "why": why,
            }
            for ticket, why in waiting[:SHOWN]
        ],
    }


def _describe_backend(backend: Backend, scheduler: Scheduler, now: float) -> BackendStatus:
    adapter, breaker = scheduler.adapters[backend.name], backend.breaker
    return {
        "name": backend.name,
        "kind": adapter.spec.kind,
        "gpu": backend.gpu,
        "role": backend.role,
        "slots": backend.slots,
        "slots_taken": len(backend.leases),
        "draining": backend.draining,
        "vram": backend.vram,
        "vram_used": sum(item.vram for item in backend.resident.values()),
        "loaded": [
            {"model": model, "vram": item.vram, "age": _age(now, item.since), "idle": _age(now, item.used)}
            for model, item in backend.resident.items()
        ],
        "loading": backend.switch.model if backend.switch is not None else None,
        "breaker": {
            "state": breaker.state.value,
            "tries_in": max(0.0, _age(breaker.until, now)),
            "failures": {kind.value: count for kind, count in breaker.total.items()},
        },
        "reservations": [
            {"session": _hide(session), "age": _age(now, held.since), "idle": _age(now, held.seen)}
            for session, held in backend.reservations.items()
        ],
    }


def _describe_lease(lease: Lease, now: float) -> RunningStatus:
    ticket = lease.ticket
    return {
        "id": ticket.id,
        "backend": lease.backend.name,
        "phase": lease.phase.value,
        "priority": ticket.priority.label,
        "model": ticket.model,
        "age": _age(now, ticket.arrived),
        "running_for": _age(now, lease.since),
        "begun": ticket.committed,
        "preemptions": ticket.preemptions,
    }


def _hide(session: str) -> str:
    """A session's name may be a secret of its client: enough to tell two apart."""
    return hashlib.sha256(session.encode()).hexdigest()[:12]


def _age(later: float, earlier: float) -> float:
    return round(later - earlier, 3)
