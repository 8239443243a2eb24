"""What embedding costs: the tokens and the money that a provider says it took, for whoever wants to know."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Usage:
    """What was used inside one `measure_usage`; no calls if the model is our own, which costs nothing."""

    calls: int = 0
    tokens: int = 0
    cost: float = 0.0  # in the currency of the provider


_measured: ContextVar[Usage | None] = ContextVar("gristmill_embedding_usage", default=None)


@contextmanager
def measure_usage() -> Generator[Usage]:
    """Adds up what all calls to a provider inside of it used, whichever embedder made them."""
    usage = Usage()
    token = _measured.set(usage)
    try:
        yield usage
    finally:
        _measured.reset(token)


def note_usage(tokens: int, cost: float) -> None:
    """Called by an embedder after each call to its provider."""
    usage = _measured.get()
    if usage is not None:
        usage.calls += 1
        usage.tokens += tokens
        usage.cost += cost


def compute_cost(tokens: int, price: float) -> float:
    """What so many tokens cost at a price for a million of them."""
    return tokens * price / 1_000_000
