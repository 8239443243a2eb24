"""What would let a task go: for each reason to wait, the calls of the API, or the command, that end it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from gristmill.queue.operate.why import Why


@dataclass(frozen=True)
class Remedy:
    """One thing that one can do: by a call of the API, else by a command on a machine.

    `operator` if it concerns all clients: only a caller that is bound to none may do it. `choose` names the fields of
    the body whose values are the caller's to choose.
    """

    action: str
    sentence: str
    method: str | None = None
    path: str | None = None
    body: Mapping[str, Any] = field(default_factory=dict[str, Any])
    choose: tuple[str, ...] = ()
    command: str | None = None
    operator: bool = False


def find_remedies(why: Why) -> tuple[Remedy, ...]:
    """The most helpful first; none if the task has ended well, or goes on by itself."""
    facts, task = why.facts, why.id
    queue = str(facts.get("queue", ""))
    match why.state:
        case "paused":
            return (_resume(queue),)
        case "no worker":
            return (_start_worker(queue),)
        case "suspect":
            return () if facts.get("workers") or facts.get("solos") else (_start_worker(queue),)
        case "breaker open":
            return (_remove_breaker(queue),)
        case "rate-limited":
            return (_raise_limit(queue, "rate", f"allow {queue} more starts"), _move_first(task))
        case "at its limit":
            return (_raise_limit(queue, "concurrency", f"let more of {queue} run at once"), _move_first(task))
        case "queued":
            return (_move_first(task), _start_worker(queue)) if facts.get("ahead") else ()
        case "scheduled" | "snoozed" | "backing off":
            return (_call_task(task, "run-now", "run it now", "its time is now"),)
        case "blocked" if facts.get("after_status") == "failed":
            return (_retry(facts["after"]), _call_task(task, "cancel", "cancel it", "nobody waits for it any more"))
        case "blocked":
            return (_look_at(facts["after"]),)
        case "in series" if facts.get("head") is not None:
            return (_look_at(facts["head"]),)
        case "dead" | "cancelled":
            return (_retry(task),)
        case _:
            return ()


def _call_task(task: object, call: str, action: str, sentence: str) -> Remedy:
    return Remedy(action, sentence, "POST", f"/api/tasks/{task}/{call}")


def _retry(task: object) -> Remedy:
    return _call_task(task, "retry", "retry", f"try task {task} again, with all its attempts before it")


def _look_at(task: object) -> Remedy:
    return Remedy("look", f"ask why task {task} is where it is", "GET", f"/api/tasks/{task}/why")


def _move_first(task: object) -> Remedy:
    return Remedy("move first", "put it before all others", "POST", f"/api/tasks/{task}/move", {"first": True})


def _resume(queue: str) -> Remedy:
    path = f"/api/queues/{quote(queue)}/resume"
    command = f"gristmill queue resume {queue}"
    return Remedy("resume", f"let the queue {queue} go on", "POST", path, command=command, operator=True)


def _raise_limit(queue: str, limit: str, sentence: str) -> Remedy:
    path = f"/api/queues/{quote(queue)}"
    return Remedy("raise the limit", sentence, "PATCH", path, choose=(limit,), operator=True)


def _remove_breaker(queue: str) -> Remedy:
    sentence, path = f"let {queue} run without a breaker", f"/api/queues/{quote(queue)}"
    return Remedy("remove the breaker", sentence, "PATCH", path, {"breaker": None}, operator=True)


def _start_worker(queue: str) -> Remedy:
    command = f"gristmill worker --queues {queue}"
    return Remedy("start a worker", f"start a worker that serves {queue}", command=command, operator=True)
