"""Which hosts a client may call the router by, and which web pages may call it: as Ollama decides it."""

import ipaddress
import re
import socket
from fnmatch import translate
from urllib.parse import urlsplit

from gristmill.router.requests import Head
from gristmill.router.wire import BadRequest
from gristmill.settings import RouterSettings

LOCAL_NAMES = ("localhost", "127.0.0.1", "0.0.0.0", "[::1]")
APPS = ("app://*", "file://*", "tauri://*", "vscode-webview://*", "vscode-file://*")  # programs with pages of their own
LOCAL_SUFFIXES = (".localhost", ".local", ".internal")
METHODS = b"GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS"


class Origins:
    """Refuses requests of foreign web pages, and names that only DNS rebinding could lead here."""

    def __init__(self, settings: RouterSettings) -> None:
        local = [f"{scheme}://{name}{port}" for scheme in ("http", "https") for name in LOCAL_NAMES for port in PORTS]
        self._origins = _any_of((*local, *APPS, *settings.origins))
        self._hosts = _any_of(settings.hosts)
        # a router for the world cannot know its own names, unless they are configured
        self._checks_host = is_loopback(settings.host) or bool(settings.hosts)
        self._own_name = socket.gethostname().lower()

    def check(self, head: Head) -> None:
        """Refuse a foreign host or origin; note the header lines for the browser of an allowed page."""
        host = (head.header(b"host") or "").strip().lower()
        if self._checks_host and not self._is_known(_without_port(host)):
            raise BadRequest("the router is not called by this name: add it to the setting router.hosts", 403)
        origin = head.header(b"origin")
        if origin is None:
            return
        if not self._origins.match(origin.lower()) and urlsplit(origin).netloc.lower() != host:
            raise BadRequest("web pages of this origin may not call the router: see the setting router.origins", 403)
        head.cors = b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\n" % head.fields[b"origin"]

    def _is_known(self, host: str) -> bool:
        if host in ("", "localhost", self._own_name) or host.endswith(LOCAL_SUFFIXES) or self._hosts.match(host):
            return True
        try:
            address = ipaddress.ip_address(host.strip("[]"))
        except ValueError:
            return False
        # a bare address is not looked up, so DNS cannot lead it elsewhere
        return address.is_loopback or address.is_private or address.is_unspecified


PORTS = ("", ":*")


def preflight_headers(head: Head) -> list[tuple[bytes, bytes]]:
    """The answer to a browser that asks, before it sends something, whether it may."""
    asked = head.fields.get(b"access-control-request-headers", b"")
    return [
        (b"Access-Control-Allow-Methods", METHODS),
        *([(b"Access-Control-Allow-Headers", asked)] if asked else []),
        (b"Access-Control-Max-Age", b"43200"),
    ]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _without_port(host: str) -> str:
    return re.sub(r":\d+$", "", host) if host.startswith("[") or host.count(":") == 1 else host


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for all patterns; without any, it matches nothing."""
    return re.compile("|".join(translate(pattern.lower()) for pattern in patterns) or r"(?!)")
