"""Reads an address of the web strictly: one spelling for each place, and nothing that two programs read differently."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import idna

from gristmill.errors import Unsafe
from gristmill.sources.fetch.addresses import Address, explain_special, is_never_called

if TYPE_CHECKING:  # the child processes that look for links import this file and need no settings
    from gristmill.settings import FetchSettings

LONGEST = 8_000  # characters
PORTS = {"http": 80, "https": 443}
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
NUMBER = re.compile(r"\d+|0x[0-9a-f]*")
PATH = "/%:@!$&'()*+,;=~-._"  # characters that stay as they are
# names that networks give to their own machines
INNER = ("localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "home.arpa", "localdomain")


@dataclass(frozen=True)
class Location:
    """A checked address: `url` is its one spelling, `host` is in ASCII, without brackets and without a last dot."""

    scheme: str
    host: str
    port: int
    target: str  # path and query

    @property
    def address(self) -> Address | None:
        """The address, if the host is one and no name."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == PORTS[self.scheme] else f":{self.port}")

    @property
    def url(self) -> str:
        return self.origin + self.target

    @property
    def shown(self) -> str:
        """For people and logs: without the query, which may hold a secret."""
        return self.origin + self.target.partition("?")[0]


def check_address(url: str, settings: "FetchSettings") -> Location:
    """Read an address that somebody gave us; Unsafe if it is malformed or names a machine of our own.

    A name is looked up only when it is called: then its addresses are checked as well, by `Fetcher`.
    """
    location = read_location(url)
    if is_allowed(location, location.address, settings):
        return location
    if location.address is not None:
        check_resolved(location, location.address, settings)
    elif location.host.endswith(tuple(f".{name}" for name in INNER)) or "." not in location.host:
        raise Unsafe(f"{location.host} is a name of a local network. {advise(location)}")
    if location.port not in settings.ports:
        raise Unsafe(f"Port {location.port} of {location.host} is not called. {advise(location)}")
    return location


def check_resolved(location: Location, address: Address, settings: "FetchSettings") -> None:
    """Unsafe if this address of a host is special and not allowed."""
    if is_allowed(location, address, settings):
        return
    kind = explain_special(address)
    if kind is not None:
        named = str(address) if location.address is not None else f"{location.host} ({address})"
        raise Unsafe(f"{named} is {kind}, not the public Internet. {advise(location)}")


def is_allowed(location: Location, address: Address | None, settings: "FetchSettings") -> bool:
    """Whether the operator named this host or network; metadata of clouds cannot be named."""
    if address is not None and is_never_called(address):
        return False
    return any(_fits(entry, location, address) for entry in settings.allowed_hosts)


def _fits(entry: str, location: Location, address: Address | None) -> bool:
    if "/" in entry:
        return address is not None and address in ip_network(entry)
    host, port = _split_entry(entry)
    if port is not None and port != location.port:
        return False
    return location.host.endswith(host[1:]) if host.startswith("*.") else location.host == host


def _split_entry(entry: str) -> tuple[str, int | None]:
    host, colon, port = entry.rpartition(":") if re.search(r":\d+$", entry) else (entry, "", "")
    return host.strip("[]"), int(port) if colon else None


def advise(location: Location) -> str:
    return f"If it is meant, add {location.host}:{location.port} to the setting fetch.allowed_hosts."


def read_location(url: str) -> Location:
    """The parts of an address; Unsafe says what is wrong with it."""
    if len(url) > LONGEST:
        raise Unsafe(f"The address is longer than {LONGEST} characters.")
    if re.search(r"[\x00-\x20\x7f\\]", url):
        raise Unsafe("The address contains a blank, a backslash or a control character: encode it as %20 and the like.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise Unsafe("The address cannot be read: write it as https://example.org/page.") from None
    if parts.scheme not in PORTS:
        raise Unsafe("The address does not begin with http:// or https://.")
    if "@" in parts.netloc:
        raise Unsafe("The address contains a user name or password: these are not sent.")
    if port == 0:
        raise Unsafe("The address names port 0, which nobody can call.")
    target = quote(parts.path or "/", safe=PATH) + (f"?{quote(parts.query, safe=PATH + '?')}" if parts.query else "")
    return Location(parts.scheme, _read_host(parts.netloc), port or PORTS[parts.scheme], target)


def _read_host(netloc: str) -> str:
    if netloc.startswith("["):
        return _read_v6(netloc.partition("]")[0][1:])
    host = _encode_name(netloc.partition(":")[0])
    labels = host.split(".")
    if NUMBER.fullmatch(labels[-1]):
        return _read_v4(host)
    if len(host) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        raise Unsafe("The address has no host that can be called: write it as https://example.org/page.")
    return host


def _encode_name(host: str) -> str:
    """In ASCII, as browsers do it: ⓛocalhost。 is localhost."""
    host = re.sub("[\u3002\uff0e\uff61]", ".", host)
    try:
        ascii_host = host if host.isascii() else idna.encode(host, uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        raise Unsafe("The name of the host contains characters that no name may contain.") from None
    return ascii_host.lower().removesuffix(".")


def _read_v4(host: str) -> str:
    try:
        return str(IPv4Address(host))
    except ValueError:
        raise Unsafe(f"“{host[:60]}” is an unusual spelling of an address: write four decimal numbers.") from None


def _read_v6(text: str) -> str:
    try:
        return str(IPv6Address(text))
    except ValueError:
        raise Unsafe(f"“[{text[:60]}]” is no IPv6 address.") from None
