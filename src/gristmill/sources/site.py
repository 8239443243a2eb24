"""The server of a provider: where it is, and how we sign in."""

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from gristmill.hosts import is_loopback
from gristmill.settings import Reference, Slice, read_reference


def check_plain(url: str) -> str:
    """An address without a secret: it is stored, and shown in lists, logs and errors."""
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("it holds more than an address: write user=… and token=env:NAME instead")
    return url


def show_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a source for people: whatever stands behind an address or the name of a program is left out."""
    shown = dict(options)
    if command := str(shown.get("token_command") or ""):
        program, _, more = command.strip().partition(" ")
        shown["token_command"] = f"{program} …" if more else program
    if "://" in (url := str(shown.get("url") or "")):
        parts = urlsplit(url)
        name, _, host = parts.netloc.rpartition("@")
        login = f"{name.partition(':')[0]}@" if name and parts.scheme == "ssh" else ""
        shown["url"] = parts._replace(netloc=login + host, query="", fragment="").geturl()
    return shown


class Site(Slice):
    """A server that is called over HTTP."""

    url: str = Field(pattern="^https?://", description="The address of the server.")
    token: Reference | None = Field(
        default=None, description="The token: env:NAME or file:/path; none: only what everybody may see."
    )

    @field_validator("url")
    @classmethod
    def check_url(cls, url: str) -> str:
        return check_plain(url).rstrip("/")

    @model_validator(mode="after")
    def check_line(self) -> Self:
        parts = urlsplit(self.url)
        if self.token and parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise ValueError("http:// would send the token in clear: write https://…")
        return self


class AccountSite(Site):
    """… where a token may belong to a name."""

    user: str = Field(default="", description="The name or e-mail address of the token; none: the token alone.")

    @model_validator(mode="after")
    def check_user(self) -> Self:
        if self.user and not self.token:
            raise ValueError("a user needs a token, too: write token=env:NAME")
        return self


async def sign_in(site: Site) -> dict[str, str]:
    """The headers that every call carries; a changed secret counts with the next poll."""
    if site.token is None:
        return {}
    secret = await asyncio.to_thread(read_reference, site.token)
    if isinstance(site, AccountSite) and site.user:
        return {"Authorization": "Basic " + b64encode(f"{site.user}:{secret}".encode()).decode()}
    return {"Authorization": f"Bearer {secret}"}


def _check_keys(keys: str) -> str:
    if any(sign in keys for sign in '"\\'):
        raise ValueError("a key has no quotes")
    return keys


Keys = Annotated[str, AfterValidator(_check_keys)]  # of projects or spaces, with commas between


def split_names(names: str) -> list[str]:
    """`a, b` as it stands in an option; each once."""
    return list(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))
