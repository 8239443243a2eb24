"""A fake Confluence: the Cloud with version 2 of its API, or a server of one's own."""

import re
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aiohttp import web
from fake_server import FakeServer, missing

USER = "anna@acme.test"
PEOPLE = {"a1": "Anna Berg", "b2": "Bob Miller"}
SPACES = {"100": "MILL", "200": "HR"}


def write_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


@dataclass
class Content:
    """A page, a file or a comment, as both editions keep it."""

    id: str
    title: str
    space: str  # its number
    body: Any = ""
    parent: str | None = None
    labels: list[str] = field(default_factory=list)
    page: str = ""  # of a file or a comment
    beside: str | None = None  # the words that a comment is about; empty: the whole page; None: it is no comment
    state: str = "open"  # of a comment
    data: bytes = b""
    version: int = 0
    modified: str = ""
    status: str = "current"
    is_blog: bool = False


@dataclass
class ConfluenceServer(FakeServer):
    cloud: bool = True
    page: int = 100  # pages or files of one answer at most
    contents: dict[str, Content] = field(default_factory=dict)  # by the names that tests give them
    count: int = 0

    def put(
        self, name: str, text: str = "Hello.", *, at: datetime | None = None, body: Any = None, **facts: Any
    ) -> Content:
        """Add a page, or change it."""
        if name not in self.contents:
            self.count += 1
            self.contents[name] = Content(str(1000 + self.count), f"About {name}", facts.pop("space", "100"))
        return self._change(name, at, body=f"<p>{text}</p>" if body is None else body, **facts)

    def attach(self, name: str, page: str, data: bytes, file: str = "notes.txt") -> Content:
        """Add a file to a page, or change it."""
        if name not in self.contents:
            self.count += 1
            self.contents[name] = Content(f"att{1000 + self.count}", file, self.contents[page].space)
        return self._change(name, None, page=self.contents[page].id, data=data)

    def comment(self, name: str, page: str, text: str, beside: str = "", **facts: Any) -> Content:
        """Say something on a page, or say it otherwise."""
        if name not in self.contents:
            self.count += 1
            self.contents[name] = Content(str(1000 + self.count), "Re: a page", self.contents[page].space)
        page_id = self.contents[page].id
        return self._change(name, None, page=page_id, body=f"<p>{text}</p>", beside=beside, **facts)

    def _change(self, name: str, at: datetime | None, **facts: Any) -> Content:
        content = self.contents[name]
        for fact, value in facts.items():
            setattr(content, fact, value)
        content.version += 1
        content.modified = write_time(at or self.tick())
        return content

    def drop(self, name: str) -> None:
        """A page goes with its files and comments."""
        gone = self.contents.pop(name)
        self.contents = {key: one for key, one in self.contents.items() if one.page != gone.id}

    def is_allowed(self, request: web.Request) -> bool:
        basic = b64encode(f"{USER}:{self.token}".encode()).decode()
        return request.headers.get("Authorization") == f"Basic {basic}"

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/download/{id}", self.redirect)
        router.add_get("/media/{id}", self.download)
        if self.cloud:
            router.add_get("/api/v2/spaces", self.list_spaces)
            router.add_get("/api/v2/spaces/{id}", self.tell_space)
            router.add_get("/api/v2/pages", self.list_pages)
            router.add_get("/api/v2/pages/{id}", self.tell_page)
            router.add_get("/api/v2/attachments", self.list_files)
            router.add_get("/api/v2/attachments/{id}", self.tell_file)
            router.add_get("/api/v2/footer-comments", self.list_comments)
            router.add_get("/api/v2/inline-comments", self.list_comments)
            router.add_get("/api/v2/footer-comments/{comment_id}", self.tell_comment)
            router.add_get("/api/v2/inline-comments/{comment_id}", self.tell_comment)
            router.add_post("/api/v2/users-bulk", self.name_people)
        else:
            router.add_get("/rest/api/content/search", self.search)
            router.add_get("/rest/api/search", self.count_pages)
            router.add_get("/rest/api/content/{id}", self.tell_content)

    def find(self, id_: str) -> Content | None:
        return next((one for one in self.contents.values() if one.id == id_), None)

    async def redirect(self, request: web.Request) -> web.Response:
        """Files lie elsewhere."""
        raise web.HTTPFound(f"/media/{request.match_info['id']}")

    async def download(self, request: web.Request) -> web.Response:
        found = self.find(request.match_info["id"])
        return web.Response(body=found.data) if found else missing()

    # --- the Cloud

    async def list_spaces(self, request: web.Request) -> web.Response:
        keys = request.query.get("keys", "").split(",")
        found = [show_space(id_) for id_, key in SPACES.items() if keys == [""] or key in keys]
        return web.json_response({"results": found, "_links": {"base": self.url}})

    async def tell_space(self, request: web.Request) -> web.Response:
        return web.json_response(show_space(request.match_info["id"]))

    async def list_pages(self, request: web.Request) -> web.Response:
        spaces = request.query.get("space-id", "").split(",")
        ids = request.query.get("id", "").split(",")
        found = [one for one in self.contents.values() if not one.page and one.status == "current"]
        found = [one for one in found if spaces == [""] or one.space in spaces]
        return self.cut(request, [one for one in found if ids == [""] or one.id in ids], self.show_page)

    async def list_files(self, request: web.Request) -> web.Response:
        found = [one for one in self.contents.values() if one.page and one.beside is None]
        return self.cut(request, found, self.show_file)

    async def list_comments(self, request: web.Request) -> web.Response:
        found = [one for one in self.contents.values() if is_comment(one, beside="inline" in request.path)]
        return self.cut(request, found, self.show_comment)

    def cut(self, request: web.Request, found: list[Content], show: Any) -> web.Response:
        """A cursor names the last one of the page before: what changes meanwhile is not counted."""
        found = sorted(found, key=lambda one: (one.modified, one.id), reverse=True)
        if cursor := request.query.get("cursor"):
            found = [one for one in found if f"{one.modified}/{one.id}" < cursor]
        page = found[: min(self.page, int(request.query["limit"]))]
        links = {"base": self.url}
        if len(found) > len(page):
            links["next"] = f"{request.path}?limit=250&cursor={page[-1].modified}/{page[-1].id}"
        return web.json_response({"results": [show(one) for one in page], "_links": links})

    def show_page(self, page: Content) -> dict[str, Any]:
        version = {"createdAt": page.modified, "number": page.version, "minorEdit": False, "authorId": "b2"}
        shown: dict[str, Any] = {"id": page.id, "status": page.status, "title": page.title, "spaceId": page.space}
        shown |= {"authorId": "a1", "createdAt": "2024-01-01T00:00:00.000Z", "version": version}
        shown |= {"parentId": page.parent, "parentType": "page"} if page.parent else {}
        return shown | {"body": {}, "_links": {"webui": f"/spaces/{SPACES[page.space]}/pages/{page.id}"}}

    async def tell_page(self, request: web.Request) -> web.Response:
        found = self.find(request.match_info["id"])
        if found is None:
            return missing()
        labels = [{"id": str(n), "name": name, "prefix": "global"} for n, name in enumerate(found.labels)]
        body = {"storage": {"representation": "storage", "value": found.body}}
        return web.json_response(self.show_page(found) | {"body": body, "labels": {"results": labels}})

    def show_file(self, file: Content) -> dict[str, Any]:
        version = {"createdAt": file.modified, "number": file.version, "authorId": "b2"}
        return {
            "id": file.id,
            "status": file.status,
            "title": file.title,
            "createdAt": "2024-01-01T00:00:00.000Z",
            "pageId": file.page,
            "mediaType": "text/plain",
            "fileSize": len(file.data),
            "downloadLink": f"/download/{file.id}",
            "version": version,
        }

    def show_comment(self, said: Content) -> dict[str, Any]:
        version = {"createdAt": said.modified, "number": said.version, "authorId": "b2"}
        shown: dict[str, Any] = {"id": said.id, "status": said.status, "title": said.title, "pageId": said.page}
        if said.beside:
            shown |= {"resolutionStatus": said.state, "properties": {"inlineOriginalSelection": said.beside}}
        return shown | {"version": version, "body": {}, "_links": {"webui": f"/pages/{said.page}?comment={said.id}"}}

    async def tell_comment(self, request: web.Request) -> web.Response:
        found = self.find(request.match_info["comment_id"])
        if found is None or not is_comment(found, beside="inline" in request.path):
            return missing()
        body = {"storage": {"representation": "storage", "value": found.body}}
        return web.json_response(self.show_comment(found) | {"body": body})

    async def tell_file(self, request: web.Request) -> web.Response:
        found = self.find(request.match_info["id"])
        return web.json_response(self.show_file(found)) if found else missing()

    async def name_people(self, request: web.Request) -> web.Response:
        ids = (await request.json())["accountIds"]
        found = [{"accountId": one, "displayName": PEOPLE[one], "publicName": PEOPLE[one]} for one in ids]
        return web.json_response({"results": found, "_links": {"base": self.url}})

    # --- a server of one's own

    async def search(self, request: web.Request) -> web.Response:
        cql, start = request.query["cql"], int(request.query["start"])
        found = self.query(cql)
        page = found[start : start + min(self.page, int(request.query["limit"]))]
        links = {"next": "/rest/api/content/search?…"} if len(found) > start + len(page) else {}
        results = [self.show_content(one) for one in page]
        return web.json_response({"results": results, "start": start, "size": len(page), "_links": links})

    def query(self, cql: str) -> list[Content]:
        """The newest first; only what our searches say is understood."""
        assert cql.endswith("order by lastmodified desc"), cql
        sort = cql.removeprefix("type = ").split()[0]
        since = re.search(r'lastmodified >= "([\d-]+)"', cql)
        spaces = re.search(r"space in \(([^)]*)\)", cql)
        found = [one for one in self.contents.values() if type_of(one) == sort and one.status == "current"]
        found = [one for one in found if not since or one.modified >= since[1]]
        found = [one for one in found if not spaces or SPACES[one.space] in spaces[1]]
        return sorted(found, key=lambda one: (one.modified, one.id), reverse=True)

    async def count_pages(self, request: web.Request) -> web.Response:
        return web.json_response({"results": [], "totalSize": len(self.query(request.query["cql"]))})

    async def tell_content(self, request: web.Request) -> web.Response:
        found = self.find(request.match_info["id"])
        return web.json_response(self.show_content(found)) if found else missing()

    def show_content(self, content: Content) -> dict[str, Any]:
        container = self.find(content.page)
        key = SPACES[content.space]
        return {
            "id": content.id,
            "type": type_of(content),
            "status": content.status,
            "title": content.title,
            "space": {"id": int(content.space), "key": key, "name": key},
            "history": {"createdBy": {"displayName": "Anna Berg"}, "createdDate": "2024-01-01T00:00:00.000+01:00"},
            "version": {"by": {"displayName": "Bob Miller"}, "when": content.modified, "number": content.version},
            "ancestors": [{"id": content.parent, "title": "Above"}] if content.parent else [],
            "container": {
                "id": content.page,
                "title": container.title if container else "",
                "type": type_of(container) if container else "page",
            },
            "extensions": self.show_extensions(content),
            "body": {"storage": {"value": content.body, "representation": "storage"}},
            "metadata": {"labels": {"results": [{"prefix": "global", "name": name} for name in content.labels]}},
            "_links": {"webui": f"/display/{key}/{content.id}", "download": f"/download/{content.id}"},
        }

    def show_extensions(self, content: Content) -> dict[str, Any]:
        if content.beside is None:
            return {"mediaType": "text/plain", "fileSize": len(content.data)}
        if not content.beside:
            return {"location": "footer"}
        about = {"originalSelection": content.beside, "markerRef": "4711"}
        return {"location": "inline", "inlineProperties": about, "resolution": {"status": content.state}}


def type_of(content: Content) -> str:
    if content.beside is not None:
        return "comment"
    if content.page:
        return "attachment"
    return "blogpost" if content.is_blog else "page"


def is_comment(content: Content, *, beside: bool) -> bool:
    return content.beside is not None and bool(content.beside) == beside


def show_space(id_: str) -> dict[str, Any]:
    return {"id": id_, "key": SPACES[id_], "name": SPACES[id_], "type": "global", "status": "current"}
