"""Counts and times requests by their route, for /metrics and for the log; no query, no header, no secret is noted."""

import time
from collections.abc import Sequence

from fastapi.routing import iter_route_contexts
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gristmill.telemetry import log

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 10, 60)


class RequestMetrics:
    """One registry for each server process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "web_requests_total", "Requests answered.", ["method", "route", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "web_request_seconds", "Time until an answer ended.", ["route"], buckets=SECONDS, registry=self.registry
        )

    def observe(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def render(self) -> bytes:
        return generate_latest(self.registry)


class Observer:
    """The outermost layer: it sees every answer, refusals included."""

    def __init__(self, app: ASGIApp, metrics: RequestMetrics, routes: Sequence[BaseRoute]) -> None:
        self._app = app
        self._metrics = metrics
        self._paths = {id(one.original_route): one.path for one in iter_route_contexts(routes) if one.path}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            seconds = time.perf_counter() - began
            method = scope["method"] if scope["method"] in METHODS else "other"
            self._metrics.observe(method, self._name_route(scope), status, seconds)
            log.debug("request", method=method, path=scope["path"], status=status, ms=round(seconds * 1000, 1))

    def _name_route(self, scope: Scope) -> str:
        """The path as the route declares it: labels of metrics must not grow with what people ask."""
        return self._paths.get(id(scope.get("route")), "none")


METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
