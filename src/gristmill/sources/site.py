"""The server of a provider: where it is, and how we sign in."""

import asyncio
from base64 import b64encode
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, field_validator, model_validator

from gristmill.hosts import is_loopback
from gristmill.settings import Reference, Slice, read_reference


class Site(Slice):
    """A server that is called over HTTP."""

    url: str = Field(pattern="^https?://", description="The address of the server.")
    token: Reference | None = Field(
        default=None, description="The token: env:NAME or file:/path; none: only what everybody may see."
    )

    @field_validator("url")
    @classmethod
    def check_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.username or parts.password or parts.query or parts.fragment:
            raise ValueError("it holds more than an address: write user=… and token=env:NAME instead")
        return url.rstrip("/")

    @model_validator(mode="after")
    def check_line(self) -> Self:
        parts = urlsplit(self.url)
        if self.token and parts.scheme != "https" and not is_loopback(parts.hostname or ""):
            raise ValueError("http:// would send the token in clear: write https://…")
        return self


class Account(Site):
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
    if isinstance(site, Account) and site.user:
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
