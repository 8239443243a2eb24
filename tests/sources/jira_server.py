"""A fake Jira: the Cloud with version 3 of its API, or a server of one's own with version 2."""

import re
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web
from fake_server import FakeServer, missing

USER = "anna@acme.test"
ANNA = {"displayName": "Anna Berg", "active": True, "emailAddress": "anna@acme.test"}
BOB = {"displayName": "Bob Miller", "active": True}
STATUS = {"self": "http://jira.test/rest/api/3/status/3", "id": "3", "name": "In Progress"}


def write_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000+0000")


def a_tree(text: str) -> dict[str, Any]:
    """A text as the Cloud keeps it."""
    return {
        "type": "doc",
        "version": 1,
        "content": [{"type": "paragraph", "content": [{"type": "text", "text": text}]}],
    }


@dataclass
class JiraServer(FakeServer):
    cloud: bool = True
    page: int = 100  # issues of one answer at most
    issues: dict[str, dict[str, Any]] = field(default_factory=dict)  # by the names that tests give them
    count: int = 0
    files: dict[str, bytes] = field(default_factory=dict)  # by their ids
    own_fields: list[dict[str, Any]] = field(default_factory=list)

    def put(self, name: str, text: str = "Hello.", *, at: datetime | None = None, **fields: Any) -> dict[str, Any]:
        """Add an issue, or change it."""
        moment = write_time(at or self.tick())
        if name not in self.issues:
            self.count += 1
            id_ = str(10_000 + self.count)
            place = f"{self.url}/rest/api/{3 if self.cloud else 2}/issue/{id_}"
            self.issues[name] = {"id": id_, "key": f"MILL-{self.count}", "self": place, "fields": {"created": moment}}
        issue = self.issues[name]
        known = {
            "summary": f"About {name}",
            "description": self.write(text),
            "status": STATUS,
            "issuetype": {"id": "1", "name": "Bug"},
            "priority": {"id": "2", "name": "High"},
            "project": {"id": "7", "key": "MILL", "name": "The mill"},
            "reporter": ANNA,
            "assignee": BOB,
            "labels": ["bearing"],
            "comment": a_page("comments", []),
        }
        issue["fields"] = known | issue["fields"] | {"description": self.write(text)} | fields | {"updated": moment}
        issue.setdefault("changelog", a_page("histories", []))
        return issue

    def write(self, text: str) -> Any:
        return a_tree(text) if self.cloud else text

    def comment(self, name: str, text: str, author: dict[str, Any] = BOB) -> None:
        issue = self.issues[name]
        moment = write_time(self.tick())
        comments = issue["fields"]["comment"]["comments"]
        comments.append({"id": str(len(comments) + 1), "author": author, "body": self.write(text), "created": moment})
        issue["fields"] |= {"comment": a_page("comments", comments), "updated": moment}

    def attach(self, name: str, data: bytes, file: str = "notes.txt") -> str:
        """Add a file to an issue; its id."""
        id_, moment = str(500 + len(self.files)), write_time(self.tick())
        self.files[id_] = data
        place = f"{self.url}/secure/attachment/{id_}/{file}"
        shown = {"id": id_, "filename": file, "author": BOB, "created": moment, "size": len(data), "content": place}
        fields = self.issues[name]["fields"]
        fields |= {"attachment": [*fields.get("attachment", []), shown], "updated": moment}
        return id_

    def add_field(self, name: str, custom: str = "textfield") -> str:
        """Add a field of one's own; its id."""
        id_ = f"customfield_{10_000 + len(self.own_fields)}"
        schema = {"type": "string", "custom": f"com.atlassian.jira.plugin.system.customfieldtypes:{custom}"}
        self.own_fields.append({"id": id_, "key": id_, "name": name, "custom": True, "schema": schema})
        return id_

    def move(self, name: str, before: str, after: str) -> None:
        """Change the status of an issue."""
        issue, moment = self.issues[name], write_time(self.tick())
        change = {"field": "status", "fieldtype": "jira", "fromString": before, "toString": after}
        histories = [{"id": "1", "author": ANNA, "created": moment, "items": [change]}]
        issue["changelog"] = a_page("histories", [*histories, *issue["changelog"]["histories"]])
        issue["fields"] |= {"status": STATUS | {"name": after}, "updated": moment}

    def drop(self, name: str) -> None:
        del self.issues[name]

    def is_allowed(self, request: web.Request) -> bool:
        if request.path.endswith("/serverInfo"):  # everybody may ask
            return True
        basic = b64encode(f"{USER}:{self.token}".encode()).decode()
        return request.headers.get("Authorization") == f"Basic {basic}"

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/rest/api/2/serverInfo", self.tell_server)
        router.add_get("/rest/api/2/myself", self.tell_user)
        api = f"/rest/api/{3 if self.cloud else 2}"
        if self.cloud:
            router.add_get(f"{api}/search/jql", self.search_cloud)
            router.add_post(f"{api}/search/approximate-count", self.count_issues)
            router.add_post(f"{api}/issue/bulkfetch", self.fetch_many)
        else:
            router.add_get(f"{api}/search", self.search_server)
            router.add_post(f"{api}/search", self.fetch_many)
        router.add_get(api + "/issue/{issueIdOrKey}", self.fetch_one)
        router.add_get(api + "/field", self.list_fields)
        router.add_get("/secure/attachment/{id}/{name}", self.download)
        router.add_get(api + "/issue/{issueIdOrKey}/comment", self.list_comments)
        router.add_get(api + "/issue/{issueIdOrKey}/changelog", self.list_changes)

    async def tell_server(self, request: web.Request) -> web.Response:
        kind = "Cloud" if self.cloud else "Server"
        return web.json_response({"baseUrl": self.url, "version": "1001.0.0", "deploymentType": kind})

    async def tell_user(self, request: web.Request) -> web.Response:
        return web.json_response({"accountId": "1", **ANNA, "timeZone": "Europe/Prague"})

    async def list_fields(self, request: web.Request) -> web.Response:
        return web.json_response(
            [{"id": "summary", "key": "summary", "name": "Summary", "custom": False}, *self.own_fields]
        )

    async def download(self, request: web.Request) -> web.Response:
        found = self.files.get(request.match_info["id"])
        return missing() if found is None else web.Response(body=found)

    def find(self, jql: str) -> list[dict[str, Any]]:
        """In the order of updates; only what our searches say is understood."""
        bound = re.search(r"updated >= (\d+)", jql)
        assert bound, jql
        assert jql.endswith("ORDER BY updated ASC, key ASC")
        since = write_time(datetime.fromtimestamp(int(bound[1]) / 1000, UTC))
        found = [one for one in self.issues.values() if one["fields"]["updated"] >= since]
        return sorted(found, key=lambda one: (one["fields"]["updated"], int(one["id"])))

    async def search_cloud(self, request: web.Request) -> web.Response:
        """A token names the last issue of the page before: what changes meanwhile is not counted."""
        found = self.find(request.query["jql"])
        if token := request.query.get("nextPageToken"):
            found = [one for one in found if place_of(one) > token]
        page = found[: min(self.page, int(request.query["maxResults"]))]
        more = len(found) > len(page)
        body: dict[str, Any] = {"issues": [show_some(one) for one in page], "isLast": not more}
        return web.json_response(body | ({"nextPageToken": place_of(page[-1])} if more else {}))

    async def search_server(self, request: web.Request) -> web.Response:
        found, start = self.find(request.query["jql"]), int(request.query.get("startAt", 0))
        most = min(self.page, int(request.query["maxResults"]))
        page = [show_some(one) for one in found[start : start + most]]
        return web.json_response({"startAt": start, "maxResults": most, "total": len(found), "issues": page})

    async def count_issues(self, request: web.Request) -> web.Response:
        return web.json_response({"count": len(self.issues)})

    async def fetch_many(self, request: web.Request) -> web.Response:
        asked = await request.json()
        ids = asked["issueIdsOrKeys"] if self.cloud else re.findall(r"\d+", asked["jql"])
        found = [self.show(one) for one in self.issues.values() if one["id"] in ids]
        return web.json_response({"issues": found} | ({"issueErrors": []} if self.cloud else {"total": len(found)}))

    def find_one(self, request: web.Request) -> dict[str, Any] | None:
        id_ = request.match_info["issueIdOrKey"]
        return next((one for one in self.issues.values() if one["id"] == id_), None)

    async def fetch_one(self, request: web.Request) -> web.Response:
        found = self.find_one(request)
        return web.json_response(self.show(found)) if found else missing()

    def show(self, issue: dict[str, Any]) -> dict[str, Any]:
        """As it is shown whole: of many comments only the last, and for a server the texts as HTML, too."""
        fields = issue["fields"]
        comments = fields.get("comment", {}).get("comments", [])
        shown = issue | {"fields": fields | {"comment": a_page("comments", comments[-20:], len(comments))}}
        if self.cloud:
            return shown
        bodies = [{"id": one["id"], "body": f"<p>{one['body']}</p>", "created": "a moment ago"} for one in comments]
        rendered = {"description": f"<p>{fields['description']}</p>", "created": "a moment ago"}
        return shown | {"renderedFields": rendered | {"comment": {"comments": bodies}}}

    async def list_comments(self, request: web.Request) -> web.Response:
        found = self.find_one(request)
        comments = found["fields"]["comment"]["comments"] if found else []
        start = int(request.query["startAt"])
        return web.json_response(a_page("comments", comments[start : start + 50], len(comments), start))

    async def list_changes(self, request: web.Request) -> web.Response:
        found = self.find_one(request)
        changes = found["changelog"]["histories"] if found else []
        return web.json_response(a_page("values", changes, len(changes)) | {"isLast": True})


def a_page(key: str, values: list[Any], total: int | None = None, start: int = 0) -> dict[str, Any]:
    many = len(values) if total is None else total
    return {"startAt": start, "maxResults": max(len(values), 1), "total": many, key: values}


def place_of(issue: dict[str, Any]) -> str:
    return f"{issue['fields']['updated']}/{issue['id']}"


def show_some(issue: dict[str, Any]) -> dict[str, Any]:
    fields = {name: issue["fields"][name] for name in ("updated", "project", "attachment") if name in issue["fields"]}
    return {
        "id": issue["id"],
        "key": issue["key"],
        "self": issue["self"],
        "fields": fields,
    }
