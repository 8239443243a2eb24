"""A server that sends mail."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gristmill.settings.references import Reference
from gristmill.settings.values import Slice


def _check_mail_address(address: str) -> str:
    if not re.fullmatch(r"[^@\s<>,;:\"]+@[^@\s<>,;:\"]+", address) or not address.isascii():
        raise ValueError(f"“{address}” is no mail address; write for example ops@example.org")
    return address


MailAddress = Annotated[str, AfterValidator(_check_mail_address)]


class MailServer(Slice):
    """An SMTP server, how we sign in there, and whose mail it is."""

    host: str
    port: int = Field(default=587, ge=1, le=65535)
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password: Reference | None = None
    sender: MailAddress

    @model_validator(mode="after")
    def _check_login(self) -> Self:
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password belong together: give both, or none")
        if self.user and self.security == "none" and self.host not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError("a password is not sent without encryption: set security to starttls or tls")
        return self
