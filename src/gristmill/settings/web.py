"""Where the API and the console are served, who is let in for how long, and how much one caller may ask."""

from datetime import timedelta

from pydantic import Field, SecretStr

from gristmill.settings.values import Bytes, Duration, Slice


class WebSettings(Slice):
    """Where the API and the console are served, and how much one caller may ask."""

    host: str = Field(default="127.0.0.1", description="The address that the API and the console listen on.")
    port: int = Field(
        default=6455,
        ge=0,
        le=65535,
        description="Their port; 0 takes any free one. If it is taken, `up` takes the next free one, `serve` refuses.",
    )
    hosts: tuple[str, ...] = Field(
        default=(),
        description="Names to call them by, besides this machine's and bare addresses: mill.example.org.",
    )
    proxies: tuple[str, ...] = Field(
        default=(),
        description="Addresses of reverse proxies whose X-Forwarded-For and X-Forwarded-Proto are believed.",
    )
    session: Duration = Field(
        default=timedelta(days=7), gt=timedelta(), description="How long a browser stays signed in."
    )
    link: Duration = Field(
        default=timedelta(minutes=15), gt=timedelta(), description="How long the link of `up` can be used, once."
    )
    sign_in_attempts: int = Field(
        default=10, ge=1, description="How many failed sign-ins one address has within sign_in_window."
    )
    sign_in_attempts_in_all: int = Field(
        default=200, ge=1, description="How many failed sign-ins all addresses together have within sign_in_window."
    )
    sign_in_window: Duration = Field(
        default=timedelta(minutes=15), gt=timedelta(), description="How long a failed sign-in counts."
    )
    rate: int = Field(default=100, ge=1, description="How many requests a second one key may make, in the long run.")
    burst: int = Field(default=1_000, ge=1, description="How many requests one key may make at once after a pause.")
    body_limit: Bytes = Field(
        default=1024**2, ge=1024, description="The largest body of a request that brings no file."
    )
    callback_key: SecretStr | None = Field(
        default=None, description="Signs the callbacks of /api/kb/ingest/full (HMAC-SHA256); none: they are not signed."
    )
    stop: Duration = Field(
        default=timedelta(seconds=3), description="How long a stopping server waits for running requests."
    )
