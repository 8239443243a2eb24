"""How the clients of this room ask over HTTP; the library is loaded by the first call, which few processes make."""

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from gristmill.errors import Transient

if TYPE_CHECKING:
    from aiohttp import ClientSession


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
