"""Names of this machine: which of them a client may call a server by, so that DNS rebinding leads nowhere."""

import ipaddress
import re
import socket
from collections.abc import Iterable
from fnmatch import translate

LOCAL_SUFFIXES = (".localhost", ".local", ".internal")


class KnownHosts:
    """The names that lead to this machine: its own, bare addresses of private networks, and the configured patterns."""

    def __init__(self, patterns: Iterable[str] = ()) -> None:
        self._patterns = match_any(patterns)
        self._own_name = socket.gethostname().lower()

    def knows(self, host: str) -> bool:
        """Whether a Host header, with or without a port, names this machine."""
        name = remove_port(host.strip().lower())
        if name in ("", "localhost", self._own_name) or name.endswith(LOCAL_SUFFIXES) or self._patterns.match(name):
            return True
        address = read_address(name)
        # a bare address is not looked up, so DNS cannot lead it elsewhere
        return address is not None and (address.is_loopback or address.is_private or address.is_unspecified)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    address = read_address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def read_address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """A bare address, as it stands in a URL; None for a name."""
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def remove_port(host: str) -> str:
    return re.sub(r":\d+$", "", host) if host.startswith("[") or host.count(":") == 1 else host


def match_any(patterns: Iterable[str]) -> re.Pattern[str]:
    """One expression for all patterns; without any, it matches nothing."""
    return re.compile("|".join(translate(pattern.lower()) for pattern in patterns) or r"(?!)")
