"""When somebody is told, and where."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gristmill.settings.references import Reference
from gristmill.settings.values import Duration, Slice


def _check_name(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,39}", name):
        raise ValueError(f"“{name}” is no name for a channel: use small letters, digits and dashes, at most 40")
    return name


def _check_mail_address(address: str) -> str:
    if not re.fullmatch(r"[^@\s<>,;:\"]+@[^@\s<>,;:\"]+", address) or not address.isascii():
        raise ValueError(f"“{address}” is no mail address; write for example ops@example.org")
    return address


Name = Annotated[str, AfterValidator(_check_name)]
MailAddress = Annotated[str, AfterValidator(_check_mail_address)]


class _Channel(Slice):
    name: Name
    level: Literal["warning", "critical"] = "warning"  # the least level that is told here


class WebhookChannel(_Channel):
    """Posts JSON as Slack, Mattermost and others take it; the address is a secret."""

    kind: Literal["webhook"]
    url: Reference


class EmailChannel(_Channel):
    """Sends mail through an SMTP server."""

    kind: Literal["email"]
    host: str
    port: int = Field(default=587, ge=1, le=65535)
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password: Reference | None = None
    sender: MailAddress
    to: tuple[MailAddress, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password belong together: give both, or none")
        if self.user and self.security == "none" and self.host not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError("a password is not sent without encryption: set security to starttls or tls")
        return self


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
