"""Refuses names that only DNS rebinding could lead here, and requests that foreign web pages make."""

from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from gristmill.hosts import KnownHosts, read_address, remove_port
from gristmill.serving import Problem
from gristmill.settings import WebSettings

SAFE = ("GET", "HEAD", "OPTIONS")


class OriginCheck:
    """Lets a request through if it names this machine by a known name, and comes from a program or our own page.

    A browser says where a request comes from (Sec-Fetch-Site), older ones say it where it matters (Origin). A person
    may follow a link from anywhere to a page; nothing else may come from elsewhere: no picture, script or event stream.
    """

    def __init__(self, app: ASGIApp, settings: WebSettings) -> None:
        self._app = app
        self._hosts = KnownHosts(settings.hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        self.check_host(headers.get("host", ""))
        check_origin(headers, scope.get("method", "GET"))
        await self._app(scope, receive, send)

    def check_host(self, host: str) -> None:
        # a bare address is not looked up: DNS cannot lead it elsewhere
        if not self._hosts.knows(host) and read_address(remove_port(host)) is None:
            raise Problem(403, "This server is not called by this name: add it to the setting web.hosts.")


def check_origin(headers: Headers, method: str) -> None:
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    is_own = origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").strip().lower()
    # a frame or an object of a foreign page navigates, too: a person who follows a link gets a document
    is_visit = (
        method in SAFE and headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    )
    if not is_own or (site not in (None, "same-origin", "none") and not is_visit):
        raise Problem(403, "Pages of other sites may not call this server.")
