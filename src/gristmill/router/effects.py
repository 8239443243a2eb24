"""What the policy asks its owner to do; it does nothing itself."""

from dataclasses import dataclass

from gristmill.router.pool import Lease, Ticket


@dataclass(frozen=True, slots=True)
class Grant:
    """Send the request to the lease's backend."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Preempt:
    """Stop the attempt; its client has not seen a byte and the ticket already waits for another place."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class End:
    """Stop the attempt; its client has seen a part and gets an explicit error."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer the request with an error."""

    ticket: Ticket
    status: int
    reason: str
    retry_after: int


@dataclass(frozen=True, slots=True)
class Load:
    """Bring a model into a backend's memory."""

    backend: str
    model: str
    embeds: bool


@dataclass(frozen=True, slots=True)
class CancelLoad:
    """Stop loading; the owner reports when it has ended."""

    backend: str
    model: str


@dataclass(frozen=True, slots=True)
class Unload:
    """Take a model out of a backend's memory; the owner reports when it is gone."""

    backend: str
    model: str


Effect = Grant | Preempt | End | Refuse | Load | CancelLoad | Unload
