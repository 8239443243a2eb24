"""Which hosts a client may call the router by, and which web pages may call it: as Ollama decides it."""

from urllib.parse import urlsplit

from gristmill.hosts import KnownHosts, is_loopback, match_any
from gristmill.router.requests import Head
from gristmill.router.wire import BadRequest
from gristmill.settings import RouterSettings

LOCAL_NAMES = ("localhost", "127.0.0.1", "0.0.0.0", "[::1]")
APPS = ("app://*", "file://*", "tauri://*", "vscode-webview://*", "vscode-file://*")  # programs with pages of their own
METHODS = b"GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS"


class Origins:
    """Refuses requests of foreign web pages, and names that only DNS rebinding could lead here."""

    def __init__(self, settings: RouterSettings) -> None:
        local = [f"{scheme}://{name}{port}" for scheme in ("http", "https") for name in LOCAL_NAMES for port in PORTS]
        self._origins = match_any((*local, *APPS, *settings.origins))
        self._hosts = KnownHosts(settings.hosts)
        # a router for the world cannot know its own names, unless they are configured
        self._checks_host = is_loopback(settings.host) or bool(settings.hosts)

    def check(self, head: Head) -> None:
        """Refuse a foreign host or origin; note the header lines for the browser of an allowed page."""
        host = (head.header(b"host") or "").strip().lower()
        if self._checks_host and not self._hosts.knows(host):
            raise BadRequest("the router is not called by this name: add it to the setting router.hosts", 403)
        origin = head.header(b"origin")
        if origin is None:
            return
        if not self._origins.match(origin.lower()) and urlsplit(origin).netloc.lower() != host:
            raise BadRequest("web pages of this origin may not call the router: see the setting router.origins", 403)
        head.cors = b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\n" % head.fields[b"origin"]


PORTS = ("", ":*")


def preflight_headers(head: Head) -> list[tuple[bytes, bytes]]:
    """The answer to a browser that asks, before it sends something, whether it may."""
    asked = head.fields.get(b"access-control-request-headers", b"")
    return [
        (b"Access-Control-Allow-Methods", METHODS),
        *([(b"Access-Control-Allow-Headers", asked)] if asked else []),
        (b"Access-Control-Max-Age", b"43200"),
    ]
