"""How pages of the web are fetched."""

import re
from datetime import timedelta
from ipaddress import ip_network
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from gristmill.settings.values import Bytes, Duration, Slice

NAME = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?(:\d{1,5})?|\[[0-9a-f:.]+\](:\d{1,5})?", re.IGNORECASE)


def _check_entry(entry: str) -> str:
    """`wiki.example.org`, `*.example.org`, `wiki:8080`, `10.1.2.3:8080`, `[fd00::1]:8080` or `10.1.0.0/16`."""
    if "/" in entry:
        try:
            ip_network(entry)
        except ValueError:
            raise ValueError(f"“{entry}” is no network; write for example 10.1.0.0/16") from None
    elif not NAME.fullmatch(entry):
        raise ValueError(f"“{entry}” is neither a host nor a network; write for example wiki.example.org:8080")
    return entry.lower()


class Delay(Slice):
    """How long to wait between two visits of a domain: a random time between the two."""

    min: Duration
    max: Duration

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if not timedelta(0) <= self.min <= self.max:
            raise ValueError("a delay goes from a shorter to a longer time")
        return self


class FetchSettings(Slice):
    """How pages of the web are fetched."""

    agent: str = Field(
        default="gristmill/0.1",
        min_length=1,
        pattern=r"^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$",
        description="How we call ourselves; robots.txt names the part before the slash.",
    )
    allowed_hosts: tuple[Annotated[str, AfterValidator(_check_entry)], ...] = Field(
        default=(), description="Hosts and networks of your own that may be called: wiki.example.org:8080, 10.1.0.0/16."
    )
    ports: tuple[int, ...] = Field(
        default=(80, 443, 8080, 8443), description="The ports that may be called on hosts of the web."
    )
    timeout: Duration = Field(
        default=timedelta(seconds=30), description="How long one answer may take; each redirect is another."
    )
    max_bytes: Bytes = Field(default=20 * 1024**2, ge=1, description="The largest answer as it is sent.")
    max_unpacked: Bytes = Field(default=50 * 1024**2, ge=1, description="The largest answer when it is unpacked.")
    max_redirects: int = Field(default=5, ge=0, le=50, description="How many redirects are followed.")
    types: tuple[str, ...] = Field(
        default=(
            "text/html",
            "application/xhtml+xml",
            "text/plain",
            "text/markdown",
            "application/pdf",
        ),
        description="The content types that are fetched.",
    )
    robots: bool = Field(default=True, description="Whether robots.txt is obeyed.")
    delay_min: Duration = Field(
        default=timedelta(seconds=3), description="The shortest time between two visits of one domain."
    )
    delay_max: Duration = Field(
        default=timedelta(seconds=5), description="The longest: each time is chosen at random between the two."
    )
    delays: dict[str, Delay] = Field(
        default={}, description="Domain → the time between two visits of it and its subdomains."
    )

    @model_validator(mode="after")
    def _check_delay(self) -> Self:
        if not timedelta(0) <= self.delay_min <= self.delay_max:
            raise ValueError("the delay goes from a shorter to a longer time")
        return self
