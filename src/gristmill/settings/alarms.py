"""When somebody is told, and where."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gristmill.settings.mail_server import MailAddress, MailServer
from gristmill.settings.references import Reference
from gristmill.settings.values import Duration, Slice


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,39}", name):
        raise ValueError(f"“{name}” is no name for a channel: use small letters, digits and dashes, at most 40")
    return name


Name = Annotated[str, AfterValidator(_check_name)]


class _Channel(Slice):
    name: Name
    level: Literal["warning", "critical"] = "warning"  # the least level that is told here


class WebhookChannel(_Channel):
    """Posts JSON as Slack, Mattermost and others take it; the address is a secret."""

    kind: Literal["webhook"]
    url: Reference


class EmailChannel(_Channel, MailServer):
    """Sends mail through an SMTP server."""

    kind: Literal["email"]
    to: tuple[MailAddress, ...] = Field(min_length=1)


class CommandChannel(_Channel):
    """Starts a program and writes JSON to its standard input."""

    kind: Literal["command"]
    argv: tuple[str, ...] = Field(min_length=1)
    timeout: Duration = timedelta(seconds=30)


Channel = Annotated[WebhookChannel | EmailChannel | CommandChannel, Field(discriminator="kind")]


class AlarmSettings(Slice):
    """When somebody is told, and where."""

    queue_depth: int = Field(
        default=1_000, ge=1, description="More waiting tasks than these in a queue raise an alarm."
    )
    idle: Duration = Field(
        default=timedelta(minutes=10), description="How long a queue or worker may do nothing while work waits."
    )
    stall: Duration = Field(
        default=timedelta(minutes=5), description="How long nothing may end in a queue that nothing holds back."
    )
    repeat: Duration = Field(default=timedelta(hours=4), description="How often an alarm is told again.")
    calm: Duration = Field(
        default=timedelta(minutes=5), description="How long all must be well before an alarm is over."
    )
    keep_for: Duration = Field(default=timedelta(days=30), description="How long alarms that are over are kept.")
    channels: tuple[Channel, ...] = Field(
        default=(), description="Where alarms are told: webhooks, e-mail, commands (docs/alarms.md)."
    )

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        if self.repeat < timedelta(minutes=1):
            raise ValueError("repeat must be a minute at least, because alarms are looked at once a minute")
        _check_distinct([one.name for one in self.channels])
        return self


def _check_distinct(names: Sequence[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"two channels have the name {min(twice)}: give each its own")
