"""A network between a worker and its database that can fail in the three ways networks do."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

State = Literal["open", "stalled", "refusing"]


class Network:
    """Bridges a port of this machine to the database. Stalled, it takes what it is sent and hands nothing on."""

    def __init__(self, url: str) -> None:
        self._parts = conninfo_to_dict(url)
        self._writers: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()
        self.state: State = "open"
        self.port = 0

    @property
    def url(self) -> str:
        """The database as seen through this network."""
        user, password = self._parts.get("user") or "", self._parts.get("password")
        login = quote(str(user), safe="") + (f":{quote(str(password), safe='')}" if password else "")
        return f"postgresql://{login}@127.0.0.1:{self.port}/{self._parts['dbname']}?sslmode=disable&gssencmode=disable"

    def cut(self) -> None:
        """Reset every connection, whatever is under way."""
        for writer in self._writers:
            reset(writer)
        self._writers.clear()

    async def serve(self, near: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        if self.state == "refusing":
            reset(answer)
            return
        far, send = await self._dial()
        self._writers |= {answer, send}
        pumps = [asyncio.create_task(self._pump(near, send)), asyncio.create_task(self._pump(far, answer))]
        self._pumps.update(pumps)
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for writer in (answer, send):
            reset(writer)
            self._writers.discard(writer)

    async def _dial(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self._parts.get("host") or "localhost"), self._parts.get("port") or 5432
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, int(port))

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        swallowed = False
        with suppress(OSError):
            while data := await source.read(65536):
                swallowed = swallowed or self.state == "stalled"
                if not swallowed:  # a stream that lost a part of it is of no more use
                    sink.write(data)
                    await sink.drain()

    async def end(self) -> None:
        self.cut()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)


def reset(writer: asyncio.StreamWriter) -> None:
    """With RST where there is such a thing, not with a farewell."""
    link = writer.get_extra_info("socket")
    if link is not None and link.family != socket.AF_UNIX:
        with suppress(OSError):
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@asynccontextmanager
async def network(url: str) -> AsyncIterator[Network]:
    made = Network(url)
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await made.end()
        await server.wait_closed()
