"""What the policy asks its owner to do; it does nothing itself."""

from typing import NamedTuple

from gristmill.router.pool import Lease, Ticket


class Grant(NamedTuple):
    """Send the request to the lease's backend."""

    lease: Lease


class Preempt(NamedTuple):
    """Stop the attempt; its client has not seen a byte and the ticket already waits for another place."""

    lease: Lease


class End(NamedTuple):
    """Stop the attempt; its client has seen a part and gets an explicit error."""

    lease: Lease


class Refuse(NamedTuple):
    """Answer the request with an error."""

    ticket: Ticket
    status: int
    reason: str
    retry_after: int


class Load(NamedTuple):
    """Bring a model into a backend's memory."""

    backend: str
    model: str
    embeds: bool


class CancelLoad(NamedTuple):
    """Stop loading; the owner reports when it has ended."""

    backend: str
    model: str


class Unload(NamedTuple):
    """Take a model out of a backend's memory; the owner reports when it is gone."""

    backend: str
    model: str


Effect = Grant | Preempt | End | Refuse | Load | CancelLoad | Unload
