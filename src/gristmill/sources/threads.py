"""Threads of mails: which mails belong together, whatever order they come in."""

from collections.abc import Sequence

from gristmill.db import Tx
from gristmill.ids import ScopeId
from gristmill.sources.store import SQL

MOST_MESSAGES = 200  # ids of one mail: the longest honest chain of answers is shorter


async def join_thread(tx: Tx, scope: ScopeId, messages: Sequence[str]) -> str:
    """The thread of a mail, given its own id and those that it answers; threads that it connects become one.

    The name of a thread is the least id in it: every order of arrival ends with the same name.
    """
    ids = list(dict.fromkeys(messages))[:MOST_MESSAGES]
    await tx.one(SQL["lock_threads"], scope=scope)
    found = [row.thread for row in await tx.all(SQL["find_threads"], scope=scope, messages=ids)]
    name = min([*ids, *found])
    others = [thread for thread in found if thread != name]
    await tx.execute(SQL["add_messages"], scope=scope, thread=name, messages=ids)
    if others:
        await tx.execute(SQL["join_threads"], scope=scope, thread=name, others=others)
        await tx.execute(SQL["join_items"], scope=scope, thread=name, others=others)
    return name
