"""`gristmill alarms`: what is wrong, which people know of it, and whether channels work."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import RenderableType

from gristmill.alarms import Alarm, AlarmId, States, acknowledge, explain_silence, list_alarms, try_channel
from gristmill.cli.output import Json, emit, make_table, warn
from gristmill.cli.session import name_user, run, session
from gristmill.settings import Channel

app = typer.Typer(no_args_is_help=True)
Limit = Annotated[int, typer.Option(min=1, max=10_000, help="How many at most.")]


@dataclass(frozen=True)
class AlarmsSeen:
    """The alarms; `silence` says why an empty list does not mean that all is well."""

    alarms: Sequence[Alarm]
    silence: str | None


def register(root: typer.Typer, text: str) -> None:
    root.add_typer(app, name="alarms", help=text)


@app.command("list")
def list_(
    state: Annotated[States, typer.Option(help="Alarms that last, alarms that are over, or all.")] = "open",
    limit: Limit = 100,
    json: Json = False,
) -> None:
    """The alarms, the newest first.

    Example: gristmill alarms list --state all
    """
    seen = run(_load(state, limit))
    if seen.silence:
        warn(seen.silence)
    emit(json, [_describe(one) for one in seen.alarms], lambda: _alarms_table(seen.alarms, state))


@app.command("ack")
def ack(
    alarm: Annotated[int, typer.Argument(min=1, help="Its number.")],
    note: Annotated[str, typer.Option(help="A note for the other people.")] = "",
    json: Json = False,
) -> None:
    """Say that you know of an alarm: it is not repeated any more. Its end is still told.

    Example: gristmill alarms ack 12 --note "the disk is being replaced"
    """
    known = run(_acknowledge(AlarmId(alarm), note))
    emit(json, _describe(known), lambda: _say_known(known))


@app.command("channels")
def channels(json: Json = False) -> None:
    """Where alarms are told.

    Example: gristmill alarms channels
    """
    found = run(_load_channels())
    plain = [{"name": one.name, "kind": one.kind, "level": one.level} for one in found]
    rows = [(one.name, one.kind, one.level) for one in found]
    empty = "No channel is set: name a webhook, e-mail or command in [[alarms.channels]] of gristmill.toml."
    emit(json, plain, lambda: make_table(("channel", "kind", "from level"), rows, empty=empty))


@app.command("test")
def try_(channel: Annotated[str, typer.Argument(help="Its name in the settings.")], json: Json = False) -> None:
    """Send a test alarm to a channel, and wait for the answer.

    Example: gristmill alarms test ops
    """
    run(_try(channel))
    emit(json, {"channel": channel, "reached": True}, lambda: f"The test reached {channel}.")


async def _load(state: States, limit: int) -> AlarmsSeen:
    async with session() as at, at.db.reading() as tx:
        return AlarmsSeen(await list_alarms(tx, state, limit=limit), await explain_silence(tx))


async def _acknowledge(alarm: AlarmId, note: str) -> Alarm:
    async with session() as at, at.db.transaction() as tx:
        return await acknowledge(tx, alarm, name_user(), note)


async def _load_channels() -> Sequence[Channel]:
    async with session() as at:
        return at.settings.alarms.channels


async def _try(channel: str) -> None:
    async with session() as at, at.db.reading() as tx:
        await try_channel(tx, at.settings, channel)


def _describe(one: Alarm) -> dict[str, object]:
    return {"state": one.state, **vars(one)}


def _say_known(one: Alarm) -> str:
    if one.state == "over":
        return f"Alarm {one.id} is over already."
    return f"Alarm {one.id} is acknowledged by {one.acknowledged_by}: it is not repeated any more."


def _alarms_table(found: Sequence[Alarm], state: States) -> RenderableType:
    rows = [
        (one.id, one.state if one.state != "firing" else one.level, one.rule, one.subject, one.fired_at, one.sentence)
        for one in found
    ]
    empty = "All is well: no alarm lasts." if state == "open" else "There are no such alarms."
    return make_table((">alarm", "state", "rule", "~subject", "since", "what"), rows, empty=empty)
