"""Whose work is being done: the scope that a letter inherits if its envelope names none."""

from collections.abc import Collection, Generator
from contextlib import contextmanager
from contextvars import ContextVar

from gristmill.db import Tx
from gristmill.errors import Permanent
from gristmill.ids import ScopeId
from gristmill.scopes import GLOBAL_ID, Scope, scope_id

_senders: ContextVar[frozenset[ScopeId]] = ContextVar("gristmill_senders")


def enter_scopes(scopes: Collection[ScopeId]) -> None:
    """From here on, in this context, letters are sent by tasks of these scopes: more than one for a batch."""
    _senders.set(frozenset(scopes))


@contextmanager
def sending_for(scopes: Collection[ScopeId]) -> Generator[None]:
    """Letters that are sent inside belong to this scope, unless their envelopes name another: of several, they must."""
    token = _senders.set(frozenset(scopes))
    try:
        yield
    finally:
        _senders.reset(token)


async def find_sender(tx: Tx) -> ScopeId:
    """The scope of the client for whom this transaction works, else of the task that sends, else GLOBAL."""
    if tx.seen_from is not None:
        return await scope_id(tx, Scope(tx.seen_from.client, tx.seen_from.project))
    senders = _senders.get(frozenset())
    if len(senders) > 1:
        raise Permanent("the tasks of this batch belong to several clients: name the scope on the envelope")
    return next(iter(senders), GLOBAL_ID)
