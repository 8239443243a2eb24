"""The one shape of errors over HTTP: problem+json (RFC 9457) with a sentence that a person can act on."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from gristmill.errors import GristmillError, NoSpace, Overloaded, Permanent, Refused, Transient, Unknown


class Problem(Exception):
    """Ends a request with this status and this sentence."""

    def __init__(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None, **more: Any) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})
        self.more = more  # further members of the answer, for programs

    @property
    def body(self) -> dict[str, Any]:
        return {"title": HTTPStatus(self.status).phrase, "status": self.status, "detail": self.detail, **self.more}


def describe_problem(error: GristmillError) -> Problem:
    """The answer for an error of the house: who asked wrongly gets a 4xx, who should try again later a 503."""
    match error:
        case Unknown():
            return Problem(404, str(error))
        case Refused() | Permanent():
            return Problem(422, str(error))
        case Overloaded(retry_after=wait):
            return Problem(503, str(error), headers={"Retry-After": str(max(1, round(wait.total_seconds())))})
        case NoSpace():
            return Problem(507, str(error))
        case Transient():
            return Problem(503, str(error), headers={"Retry-After": "5"})
        case _:
            return Problem(409, str(error))
