"""Threads of mails: which mails belong together, whatever order they come in."""

from collections.abc import Iterable, Mapping, Sequence

from gristmill.db import Tx, text_array
from gristmill.ids import ScopeId
from gristmill.sources.store import SQL

MOST_MESSAGES = 200  # ids of one mail: the longest honest chain of answers is shorter


async def join_threads(tx: Tx, scope: ScopeId, mails: Sequence[Sequence[str]]) -> list[str]:
    """The thread of each mail, given its own id and those that it answers; threads that a mail connects become one.

    The name of a thread is the least id in it: every order of arrival ends with the same name.
    """
    chains = [list(dict.fromkeys(messages))[:MOST_MESSAGES] for messages in mails]
    ids = sorted({message for chain in chains for message in chain})
    await lock_threads(tx, scope)
    known = await tx.pairs(SQL["find_threads"], dict[str, str], scope=scope, messages=text_array(ids))
    names = name_threads([*chains, *known.items()])
    fresh = [one for one in ids if one not in known]
    moved = {thread: names[thread] for thread in set(known.values()) if names[thread] != thread}
    if fresh:
        threads = text_array(names[one] for one in fresh)
        await tx.execute(SQL["add_messages"], scope=scope, messages=text_array(fresh), threads=threads)
    if moved:
        given = {"scope": scope, "olds": text_array(moved), "news": text_array(moved.values())}
        await tx.execute(SQL["join_threads"], **given)
        await tx.execute(SQL["join_items"], **given)
    return [names[chain[0]] for chain in chains]


async def lock_threads(tx: Tx, scope: ScopeId) -> None:
    """Nobody else joins threads of this scope until the transaction ends."""
    await tx.one(SQL["lock_threads"], scope=scope)


async def join_thread(tx: Tx, scope: ScopeId, messages: Sequence[str]) -> str:
    """The thread of one mail."""
    (name,) = await join_threads(tx, scope, [messages])
    return name


def name_threads(chains: Iterable[Sequence[str]]) -> Mapping[str, str]:
    """The least id among all that belong together with it, for each id; those of one chain do."""
    above: dict[str, str] = {}

    def find_least(one: str) -> str:
        while (up := above.setdefault(one, one)) != one:
            above[one] = above[up]
            one = above[up]
        return one

    for first, *others in chains:
        least = find_least(first)
        for other in others:
            found = find_least(other)
            least, greater = min(least, found), max(least, found)
            above[greater] = least
    return {one: find_least(one) for one in list(above)}
