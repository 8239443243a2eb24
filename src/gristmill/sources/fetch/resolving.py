"""Looks a host up once, checks every address that it has, and lets a connection go to these addresses alone."""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any

import psutil

from gristmill.errors import Permanent, Transient, Unsafe
from gristmill.settings import FetchSettings
from gristmill.sources.fetch.addresses import Address, list_reached, read_address
from gristmill.sources.fetch.location import Location, advise, check_resolved, is_allowed

if TYPE_CHECKING:
    from aiohttp import TCPConnector

LookUp = Callable[[str, int], Awaitable[Sequence[str]]]  # host and port → addresses


async def look_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, as the system knows them."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        if error.errno == socket.EAI_NONAME:
            raise Permanent(f"There is no host {host}.") from None
        raise Transient(f"The name {host} could not be looked up: {error.strerror}.") from None
    except UnicodeError:
        raise Permanent(f"There is no host {host[:60]}.") from None
    return [str(one[4][0]) for one in found]


async def resolve(location: Location, settings: FetchSettings, look_up: LookUp) -> list[str]:
    """The addresses of a place, all of them checked: one that is special makes the whole answer suspicious."""
    if location.address is not None:
        addresses = [str(location.address)]
    else:
        addresses = list(dict.fromkeys(await look_up(location.host, location.port)))
    if not addresses:
        raise Permanent(f"There is no host {location.host}.")
    own = await asyncio.to_thread(_list_own_addresses)
    for text in addresses:
        address = read_address(text)
        check_resolved(location, address, settings)
        if own.intersection(list_reached(address)) and not is_allowed(location, address, settings):
            raise Unsafe(f"{location.host} ({address}) is this machine. {advise(location)}")
    return addresses


def _list_own_addresses() -> set[Address]:
    """The addresses of this machine: a public one reaches what listens here as well as 127.0.0.1 does."""
    inet = (socket.AF_INET, socket.AF_INET6)
    return {read_address(one.address) for card in psutil.net_if_addrs().values() for one in card if one.family in inet}


def pin_connector(location: Location, addresses: Sequence[str]) -> "TCPConnector":
    """A connector that reaches these addresses and no others, whatever the name may mean a moment later."""
    import aiohttp  # noqa: PLC0415 it takes a tenth of a second, and few processes fetch
    from aiohttp.abc import AbstractResolver, ResolveResult  # noqa: PLC0415

    class Pinned(AbstractResolver):
        async def resolve(
            self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
        ) -> list[ResolveResult]:
            return [_describe(host, address, port) for address in addresses]

        async def close(self) -> None: ...

    def open_socket(info: tuple[Any, ...]) -> socket.socket:
        # the last check: aiohttp asks no resolver for a host that is an address already
        family, kind, protocol, _, place = info
        if str(place[0]).partition("%")[0] not in addresses or place[1] != location.port:
            raise Unsafe(f"{location.host} led to another address than the one that was checked.")
        return socket.socket(family, kind, protocol)

    def _describe(host: str, address: str, port: int) -> ResolveResult:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return {
            "hostname": host,
            "host": address,
            "port": port,
            "family": family,
            "proto": 0,
            "flags": socket.AI_NUMERICHOST,
        }

    return aiohttp.TCPConnector(resolver=Pinned(), socket_factory=open_socket, force_close=True, use_dns_cache=False)
