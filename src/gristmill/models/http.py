"""Asks endpoints over HTTP; the first call loads the library, because few processes ever make one."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit, urlunsplit

import orjson
from pydantic import SecretStr

from gristmill.errors import OutOfCredit, Overloaded, Permanent, Transient

if TYPE_CHECKING:
    from aiohttp import ClientSession

Json = dict[str, Any]
OPERATIONAL = (401, 403, 404, 408)  # a wrong key, model or path: somebody can mend it, and the question is good
EMPTY = ("insufficient_quota", "insufficient_credits", "payment_required")  # codes of errors: the account is empty
PAUSE = 5.0  # seconds to wait for a busy endpoint that names no time
LONGEST_LINE = 1024**2  # bytes of one line of a stream: nobody sends that much at once


class Response(NamedTuple):
    """The response of an endpoint, not yet interpreted."""

    status: int
    retry_after: str | None
    body: bytes


class Http:
    """One session, opened by the first call: only then an event loop is sure to run."""

    def __init__(self, headers: Mapping[str, str], timeout: timedelta) -> None:
        self._headers = {"Content-Type": "application/json", **headers}
        self._timeout = timeout.total_seconds()
        self._session: ClientSession | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str] | None = None, *, whom: str) -> Response:
        """The response; if none comes, an error that names `whom`."""
        return await self._ask("POST", url, body, headers, whom)

    async def get(self, url: str, *, whom: str) -> Response:
        """The same, of something that is only read."""
        return await self._ask("GET", url, None, None, whom)

    async def stream(
        self, url: str, body: bytes, headers: Mapping[str, str] | None = None, *, whom: str
    ) -> AsyncGenerator[bytes | Response]:
        """The lines of the response as they come; a response that is no 200 comes as one piece.

        Whoever closes this generator before its end closes the connection: the endpoint sees that nobody listens.
        """
        import aiohttp  # noqa: PLC0415 as in _ask

        try:
            async with self._open_session().request("POST", url, data=body, headers=headers) as answer:
                if answer.status != 200:
                    yield Response(answer.status, answer.headers.get("Retry-After"), await answer.read())
                    return
                rest = b""
                async for piece in answer.content.iter_any():
                    *lines, rest = (rest + piece).split(b"\n")
                    for line in lines:
                        yield line
                    if len(rest) > LONGEST_LINE:
                        raise Transient(f"{whom} sent a line that is too long.")
                yield rest
        except (TimeoutError, aiohttp.ClientError) as error:
            raise Transient(f"{whom} broke off: {describe_failure(error)}.") from None  # as in _ask

    async def _ask(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str] | None, whom: str
    ) -> Response:
        import aiohttp  # noqa: PLC0415 it takes a tenth of a second, in every worker and each of its children

        try:
            async with self._open_session().request(method, url, data=body, headers=headers) as answer:
                return Response(answer.status, answer.headers.get("Retry-After"), await answer.read())
        except (TimeoutError, aiohttp.ClientError) as error:
            # `from None`: the error of a connection may carry our headers, and these hold the key
            raise Transient(f"{whom} did not answer: {describe_failure(error)}.") from None

    def _open_session(self) -> "ClientSession":
        import aiohttp  # noqa: PLC0415 as above

        if self._session is None:
            limits = aiohttp.ClientTimeout(total=self._timeout)
            self._session = aiohttp.ClientSession(
                timeout=limits, headers=self._headers, connector=aiohttp.TCPConnector(limit=0)
            )
        return self._session

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def describe_failure(error: Exception) -> str:
    """Why an endpoint was not reached or fell silent, in words; nothing of what it was sent."""
    import aiohttp  # noqa: PLC0415 as in Http._ask

    match error:
        case TimeoutError():
            return "no answer came in time"
        case aiohttp.ClientConnectorDNSError():
            return "the name of its host is not known"
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            return "its certificate is not valid"
        case aiohttp.ClientConnectorError() if isinstance(error.os_error, ConnectionRefusedError):
            return "nothing listens there"
        case aiohttp.ClientConnectorError():
            return "it cannot be reached"
        case aiohttp.InvalidURL():
            return "this is no address"
        case _:
            return "the connection was closed"


def hide_credentials(url: str) -> str:
    """An address that may be logged: without the password or the key that it may carry."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def make_bearer_header(key: SecretStr | None) -> dict[str, str]:
    """The header that carries the key, if there is one."""
    return {"Authorization": f"Bearer {key.get_secret_value()}"} if key and key.get_secret_value() else {}


def read_response(answer: Response, *, whom: str, key: SecretStr | None = None) -> Json:
    """The JSON object that an endpoint answered, or the error that its status means; no error contains the key."""
    found = _parse_object(answer.body)
    if answer.status == 200 and found is not None and "error" not in found:
        return found
    reason = _hide_key(key, f"{whom} answered {answer.status}: {_find_reason(found)}.")
    if answer.status == 402 or (answer.status == 429 and _find_code(found) in EMPTY):
        raise OutOfCredit(reason)
    if answer.status in (429, 503):
        raise Overloaded(reason, _parse_retry_after(answer.retry_after))
    refused = 400 <= answer.status < 500 and answer.status not in OPERATIONAL
    raise Permanent(reason) if refused else Transient(reason)


def _parse_object(body: bytes) -> Json | None:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return cast("Json", found) if isinstance(found, dict) else None


def _find_reason(found: Json | None) -> str:
    """The reason that an endpoint gives: Ollama gives a text, OpenAI an object."""
    if found is None:
        return "something that is not a JSON object"
    error = found.get("error")
    said = cast("Json", error).get("message") if isinstance(error, dict) else error
    return str(said or "no reason given").rstrip(".")


def _find_code(found: Json | None) -> str:
    error = (found or {}).get("error")
    return str(cast("Json", error).get("code") or cast("Json", error).get("type")) if isinstance(error, dict) else ""


def _parse_retry_after(retry_after: str | None) -> timedelta:
    with suppress(TypeError, ValueError):
        return timedelta(seconds=float(retry_after or ""))
    return timedelta(seconds=PAUSE)


def _hide_key(key: SecretStr | None, reason: str) -> str:
    """Some endpoints quote the key that they refuse: take it out."""
    secret = key.get_secret_value() if key else ""
    return reason.replace(secret, "…") if secret else reason
