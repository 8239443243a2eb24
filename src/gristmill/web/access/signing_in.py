"""Signing in: a browser presents a key or a one-time link and gets a session, a limited number of times."""

from dataclasses import dataclass

from gristmill.db import Database, Tx, queries
from gristmill.errors import Overloaded, Refused
from gristmill.settings import WebSettings
from gristmill.web.access.identity import identify_key
from gristmill.web.access.secrets import digest, make_secret

SQL = queries("gristmill.web.access", "access.sql")


@dataclass(frozen=True)
class _Attempts:
    own: int
    in_all: int


async def make_link(tx: Tx, settings: WebSettings) -> str:
    """The token of a link that signs the operator in once."""
    token = make_secret()
    await tx.execute(SQL["add_link"], digest=digest(token), lifetime=settings.link)
    return token


async def sign_in_with_key(db: Database, settings: WebSettings, key: str, address: str) -> str:
    """The secret of a new session of this key."""
    attempt = await _begin_attempt(db, settings, address)
    async with db.transaction() as tx:
        found = await identify_key(tx, key)
        secret = found and await _begin_session(tx, settings, found.key, address)
        if secret is None:
            raise Refused("This key is unknown or was revoked: check it, or ask for another.")
        await tx.execute(SQL["forget_attempt"], id=attempt)
    return secret


async def sign_in_with_link(db: Database, settings: WebSettings, token: str, address: str) -> str:
    """The secret of a new session of the operator; the link is used up, also where two use it at once."""
    attempt = await _begin_attempt(db, settings, address, counts_all=False)
    async with db.transaction() as tx:
        was_unused = await tx.value(SQL["use_link"], digest=digest(token)) is not None
        secret = await _begin_session(tx, settings, None, address) if was_unused else None
        if not secret:
            raise Refused("This link was used before or is too old: gristmill key link prints another.")
        await tx.execute(SQL["forget_attempt"], id=attempt)
    return secret


async def sign_out(tx: Tx, secret: str) -> None:
    await tx.execute(SQL["end_session"], digest=digest(secret))


async def _begin_session(tx: Tx, settings: WebSettings, key: int | None, address: str) -> str | None:
    secret = make_secret()
    until = await tx.value(
        SQL["begin_session"], digest=digest(secret), key=key, address=address, lifetime=settings.session
    )
    return None if until is None else secret


async def _begin_attempt(db: Database, settings: WebSettings, address: str, *, counts_all: bool = True) -> int:
    """Written down and committed before it is judged: of many attempts at once, each counts the others.

    A flood of guesses must not lock the operator out: a link, which nobody can guess, counts only its own address.
    """
    async with db.reading() as tx:
        attempt = await tx.only_value(SQL["note_attempt"], int, address=address, window=settings.sign_in_window)
        most, most_in_all = settings.sign_in_attempts, settings.sign_in_attempts_in_all
        counted = await tx.one(
            SQL["count_attempts"],
            _Attempts,
            address=address,
            window=settings.sign_in_window,
            most=most,
            most_in_all=most_in_all,
        )
    if counted and (counted.own > most or (counts_all and counted.in_all > most_in_all)):
        raise Overloaded("Too many attempts to sign in: wait some minutes.", settings.sign_in_window)
    return int(attempt)
