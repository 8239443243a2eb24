"""How the clients of this room ask over HTTP; the library is loaded by the first call, which few processes make."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit, urlunsplit

import orjson
from pydantic import SecretStr

from gristmill.errors import Overloaded, Permanent, Transient

if TYPE_CHECKING:
    from aiohttp import ClientSession

Json = dict[str, Any]
OPERATIONAL = (401, 403, 404, 408)  # a key, a model or a path that is wrong now: the question is not
PAUSE = 5.0  # seconds, where a busy endpoint does not say how long


class Answer(NamedTuple):
    """What came back, whatever it means."""

    status: int
    retry_after: str | None
    body: bytes


class Http:
    """One session, made when it is first needed: only then there is a loop for sure."""

    def __init__(self, headers: Mapping[str, str], timeout: timedelta) -> None:
        self._headers = {"Content-Type": "application/json", **headers}
        self._timeout = timeout.total_seconds()
        self._session: ClientSession | None = None

    async def post(self, url: str, body: bytes, headers: Mapping[str, str] | None = None, *, whom: str) -> Answer:
        """The answer to it; where none comes, an error that names whom we asked."""
        import aiohttp  # noqa: PLC0415 a tenth of a second, for every worker and all its children

        if self._session is None:
            limits = aiohttp.ClientTimeout(total=self._timeout)
            self._session = aiohttp.ClientSession(
                timeout=limits, headers=self._headers, connector=aiohttp.TCPConnector(limit=0)
            )
        try:
            async with self._session.post(url, data=body, headers=headers) as answer:
                return Answer(answer.status, answer.headers.get("Retry-After"), await answer.read())
        except (TimeoutError, aiohttp.ClientError) as error:
            # `from None`: the error of a connection may carry our headers, and with them the key
            raise Transient(f"{whom} did not answer: {type(error).__name__}.") from None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None


def shown(url: str) -> str:
    """An address as it may be logged: without the password, or the key, that it may carry."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def bearer(key: SecretStr | None) -> dict[str, str]:
    """The header that carries the key, if there is one."""
    return {"Authorization": f"Bearer {key.get_secret_value()}"} if key and key.get_secret_value() else {}


def understood(answer: Answer, *, whom: str, key: SecretStr | None = None) -> Json:
    """What an endpoint answered, or the error that its status means for the caller; the key is never in it."""
    found = _object(answer.body)
    if answer.status == 200 and found is not None and "error" not in found:
        return found
    reason = _without(key, f"{whom} answered {answer.status}: {_reason(found)}.")
    if answer.status in (429, 503):
        raise Overloaded(reason, _pause(answer.retry_after))
    refused = 400 <= answer.status < 500 and answer.status not in OPERATIONAL
    raise Permanent(reason) if refused else Transient(reason)


def _object(body: bytes) -> Json | None:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    return cast("Json", found) if isinstance(found, dict) else None


def _reason(found: Json | None) -> str:
    """What an endpoint says is wrong: Ollama in words, OpenAI in an object."""
    if found is None:
        return "something that is not a JSON object"
    error = found.get("error")
    said = cast("Json", error).get("message") if isinstance(error, dict) else error
    return str(said or "no reason given").rstrip(".")


def _pause(retry_after: str | None) -> timedelta:
    with suppress(TypeError, ValueError):
        return timedelta(seconds=float(retry_after or ""))
    return timedelta(seconds=PAUSE)


def _without(key: SecretStr | None, reason: str) -> str:
    """Some endpoints quote the key that they refuse."""
    secret = key.get_secret_value() if key else ""
    return reason.replace(secret, "…") if secret else reason
