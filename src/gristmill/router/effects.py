"""The effects that the policy asks its owner to carry out."""

import msgspec

from gristmill.router.pool import Lease, Ticket


class Grant(msgspec.Struct, frozen=True):
    """Send the request to the lease's backend."""

    lease: Lease


class Preempt(msgspec.Struct, frozen=True):
    """Stop the attempt; its client has not seen a byte and the ticket already waits for another place."""

    lease: Lease


class End(msgspec.Struct, frozen=True):
    """Stop the attempt; its client has seen a part and gets an explicit error."""

    lease: Lease


class StopAttempt(msgspec.Struct, frozen=True):
    """Stop the attempt, because the router stops; a client that has not seen a byte is refused besides."""

    lease: Lease


class RefuseRequest(msgspec.Struct, frozen=True):
    """Answer the request with an error."""

    ticket: Ticket
    status: int
    reason: str
    retry_after: int


class Load(msgspec.Struct, frozen=True):
    """Bring a model into a backend's memory."""

    backend: str
    model: str
    embeds: bool


class CancelLoad(msgspec.Struct, frozen=True):
    """Stop loading; the owner reports when it has ended."""

    backend: str
    model: str


class Unload(msgspec.Struct, frozen=True):
    """Take a model out of a backend's memory; the owner reports when it is gone."""

    backend: str
    model: str


Effect = Grant | Preempt | End | StopAttempt | RefuseRequest | Load | CancelLoad | Unload
