"""A small port that tells whether a worker lives, is ready, and what it counted."""

import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from typing_extensions import override

Page = tuple[HTTPStatus, str, bytes]
TEXT = "text/plain; charset=utf-8"
METRICS = "text/plain; version=0.0.4; charset=utf-8"


class HealthPort:
    """Served from threads of its own: a busy event loop still answers, and then says that it is busy."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        alive: Callable[[], bool],
        ready: Callable[[], bool],
        metrics: Callable[[], bytes],
    ) -> None:
        pages: dict[str, Callable[[], Page]] = {
            "/healthz": lambda: _verdict(alive()),
            "/readyz": lambda: _verdict(ready()),
            "/metrics": lambda: (HTTPStatus.OK, METRICS, metrics()),
        }
        self._server = ThreadingHTTPServer((host, port), _handler(pages))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="health", daemon=True)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _verdict(good: bool) -> Page:
    return (HTTPStatus.OK, TEXT, b"ok\n") if good else (HTTPStatus.SERVICE_UNAVAILABLE, TEXT, b"no\n")


def _handler(pages: dict[str, Callable[[], Page]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Three pages, nothing else."""

        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            status, kind, body = page() if page else (HTTPStatus.NOT_FOUND, TEXT, b"not found\n")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: Any) -> None:
            pass  # probes every few seconds are not worth a line each

    return Handler
