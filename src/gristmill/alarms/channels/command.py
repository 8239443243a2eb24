"""Tells an alarm to a program of the operator: no shell, JSON on its standard input."""

import orjson

from gristmill.alarms.channels.messages import AlarmMessage, write_json
from gristmill.errors import Permanent, Transient
from gristmill.processes import run_program
from gristmill.settings import CommandChannel

LONGEST = 200  # characters of what it complained of


async def tell_command(channel: CommandChannel, message: AlarmMessage) -> None:
    name, patience = channel.argv[0], channel.timeout.total_seconds()
    try:
        ended = await run_program(channel.argv, orjson.dumps(write_json(message)), patience=patience)
    except TimeoutError:
        raise Transient(f"The command {name} took longer than {patience:g} s.") from None
    except OSError as error:
        raise Permanent(f"The command {name} cannot be started: {error.strerror}.") from error
    if ended.code:
        reason = " ".join(ended.complaint.decode(errors="replace").split())[:LONGEST]
        raise Transient(f"The command {name} ended with {ended.code}{': ' + reason if reason else '.'}")
