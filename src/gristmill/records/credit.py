"""The account at the provider of embeddings: when it is empty the queue waits, and goes on when it was filled."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from gristmill.db import Database, Tx, queries
from gristmill.errors import GristmillError, OutOfCredit
from gristmill.models import Embedder, ask_balance
from gristmill.queue import Done, Envelope, Snooze, Unique, pause, resume, send_many
from gristmill.records.letters import VECTORIZATION, ProbeCredit
from gristmill.scopes import GLOBAL_ID
from gristmill.settings import EmbeddingSettings, Settings
from gristmill.telemetry import Check, Finding

SQL = queries("gristmill.records", "credit.sql")
EMPTY = "out-of-credit"  # the rule of the alarm
FILL = "Fill the account: vectorization goes on by itself within a minute."
RETRY = timedelta(minutes=1)  # until an empty account is asked again


@dataclass(frozen=True)
class CreditAccount:
    """What is known of the account."""

    balance: float | None
    checked_at: datetime | None
    empty_since: datetime | None
    reason: str | None


async def load_account(tx: Tx) -> CreditAccount:
    found = await tx.one(SQL["account"], CreditAccount)
    assert found is not None
    return found


async def report_empty(db: Database, reason: str) -> None:
    """Pause the queue of vectors, unless somebody else has, and look after the account from now on."""
    async with db.transaction() as tx:
        paused = await tx.value(SQL["is_paused"], bool, queue=VECTORIZATION)
        if paused is False:
            await pause(tx, VECTORIZATION)
        await tx.execute(SQL["note_empty"], reason=reason, pauses=[VECTORIZATION] if paused is False else [])
        await send_many(tx, [Envelope(ProbeCredit(), delay=RETRY, unique=Unique("probe credit"), scope=GLOBAL_ID)])


async def probe_credit(
    _: ProbeCredit, *, db: Database, embedder: Embedder, settings: EmbeddingSettings
) -> Done | Snooze:
    """Ask for one vector: if it comes, the queue goes on."""
    balance = await ask_balance(settings)
    try:
        await embedder.embed(["credit"])
    except OutOfCredit as error:
        async with db.transaction() as tx:
            await tx.execute(SQL["note_balance"], balance=balance)
        return Snooze(RETRY, str(error))
    except GristmillError as error:  # it may be unreachable: that says nothing about the account
        return Snooze(RETRY, str(error))
    async with db.transaction() as tx:
        for queue in await tx.value(SQL["note_filled"], list[str], balance=balance) or ():
            await resume(tx, queue)
    return Done()


async def refresh_balance(db: Database, settings: EmbeddingSettings) -> CreditAccount:
    """Ask the provider for the balance, where it tells one."""
    balance = await ask_balance(settings)
    async with db.transaction() as tx:
        await tx.execute(SQL["note_balance"], balance=balance)
        return await load_account(tx)


async def watch_account(tx: Tx, settings: Settings) -> list[Finding]:
    """The alarm for an empty account."""
    account = await load_account(tx)
    if account.empty_since is None:
        return []
    return [Finding(EMPTY, VECTORIZATION, _describe_empty(account), FILL, level="critical")]


def _describe_empty(account: CreditAccount) -> str:
    return f"The account of embeddings is empty since {account.empty_since:%Y-%m-%d %H:%M}: {account.reason}"


async def check_account(tx: Tx, settings: Settings) -> Check:
    """An empty account is an alarm: nothing new is found by meaning until it is filled."""
    account = await load_account(tx)
    if account.empty_since is None:
        left = "" if account.balance is None else f" {account.balance:,.2f} were left."
        return Check("credit", "ok", f"No provider of embeddings reports an empty account.{left}")
    return Check("credit", "fail", _describe_empty(account), FILL)
