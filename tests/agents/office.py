"""An office for tests: Jira, GitHub, GitLab, Confluence and a calendar in one server, which keeps what reaches it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web
from desk_work import PROJECT

from gristmill.scopes import Scope
from gristmill.sources import Wanted
from web_server import WebServer

TOKEN = "OFFICE_TOKEN"  # the variable of the environment in which the sources find their password
CHANGES = ("create_issue", "comment_on_issue", "move_issue", "create_page", "update_page", "add_event")


class Office(WebServer):
    """Jira, GitHub, GitLab, Confluence and a calendar in one; `made` holds every change that was taken."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, str, Any]] = []
        self.state = "To Do"
        self.page: dict[str, Any] = {"number": 3, "message": "by hand"}
        self.events: dict[str, bytes] = {}
        self.cloud = False
        self.cut_off = False
        self.gateway: int | None = None  # the status that a gateway answers with after the change was taken

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.seen.append(request)
        body = await request.read()
        response = self._show(request) if request.method == "GET" else self._take(request, body)
        if self.cut_off and request.method != "GET":
            assert request.transport is not None
            request.transport.close()
        if self.gateway is not None and request.method != "GET":
            return web.Response(status=self.gateway, headers={"Retry-After": "1"})
        return response

    def _take(self, request: web.Request, body: bytes) -> web.Response:
        path = request.path
        if path.startswith("/cal/"):
            if path in self.events:
                return web.Response(status=412)
            self.events[path] = body
            return web.Response(status=201)
        said = orjson.loads(body)
        if path.endswith("/transitions"):
            self.state = {"31": "Done"}[said["transition"]["id"]]
        if "/content/77" in path or "/pages/77" in path:
            if said["version"]["number"] != self.page["number"] + 1:
                return web.json_response({}, status=409)
            self.page = said["version"]
        self.made.append((request.method, path, said))
        made = {"id": "77", "key": "MILL-7", "number": 7, "iid": 7, "title": "Stones", "version": {"number": 1}}
        return web.json_response(
            {**made, "html_url": "https://x/7", "web_url": "https://x/7", "_links": {"webui": "/77"}}
        )

    def _show(self, request: web.Request) -> web.Response:
        match request.path.removeprefix("/wiki"):
            case "/api/v2/spaces" if not self.cloud:
                return web.Response(status=404)
            case "/api/v2/spaces":
                return web.json_response({"results": [{"id": "5", "key": "MILL"}]})
            case "/api/v2/spaces/5":
                return web.json_response({"id": "5", "key": "MILL"})
            case "/rest/api/content/77" | "/api/v2/pages/77":
                found = {"id": "77", "title": "Stones", "spaceId": "5", "space": {"key": "MILL"}, "version": self.page}
                return web.json_response({**found, "_links": {"webui": "/77"}})
            case path if path.endswith("/transitions"):
                ways = [{"id": "31", "name": "Finish", "to": {"name": "Done"}}] if self.state != "Done" else []
                return web.json_response({"transitions": ways})
            case path if "/issue/" in path:
                return web.json_response({"fields": {"status": {"name": self.state}}})
            case _:
                return web.Response(status=404)


@asynccontextmanager
async def run_office() -> AsyncGenerator[Office]:
    office = Office()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", office.answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    office.port = runner.addresses[0][1]
    try:
        yield office
    finally:
        await runner.cleanup()


def list_places(office: Office) -> list[Wanted]:
    """Its parts as sources of the project, of its client, and of a stranger."""
    url, token = office.at("").rstrip("/"), {"token": f"env:{TOKEN}"}
    calendar = {"url": f"{url}/cal/", "user": "anna", "password": f"env:{TOKEN}"}
    return [
        Wanted("jira", "jira", {"url": url, "projects": "MILL", **token}, PROJECT),
        Wanted("hub", "github", {"url": url, "repositories": "acme/mill", **token}, PROJECT),
        Wanted("lab", "gitlab", {"url": url, "projects": "acme/mill", **token}, Scope("acme")),
        Wanted("wiki", "confluence", {"url": f"{url}/wiki", "spaces": "MILL", **token}, PROJECT),
        Wanted("work", "caldav", calendar, PROJECT),
        Wanted("theirs", "jira", {"url": url, **token}, Scope("beta")),
    ]
