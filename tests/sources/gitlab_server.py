"""A fake GitLab: issues and merge requests of one project."""

from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from aiohttp import web
from fake_server import FakeServer, missing

PROJECT = "acme/tools/mill"
PLACE = "https://gitlab.test/acme/tools/mill"
LISTS = {"#": "issues", "!": "merge_requests"}


def a_user(id_: int, username: str, name: str) -> dict[str, Any]:
    place = f"https://gitlab.test/{username}"
    return {"id": id_, "username": username, "name": name, "state": "active", "avatar_url": None, "web_url": place}


ANNA, BOB = a_user(1, "anna", "Anna Berg"), a_user(2, "bob", "Bob Miller")


def write_time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")


@dataclass
class GitLabServer(FakeServer):
    issues: dict[str, dict[str, Any]] = field(default_factory=dict)  # by the names that tests give them
    notes: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    states: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    labels: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    disabled: str = ""  # the sign of what is switched off
    count: int = 0

    def put(
        self, name: str, text: str = "Hello.", *, at: datetime | None = None, sign: str = "#", **facts: Any
    ) -> dict[str, Any]:
        """Add an issue or a merge request, or change it."""
        moment = write_time(at or self.tick())
        if name not in self.issues:
            self.count += 1
            reference = f"{PROJECT}{sign}{self.count}"
            self.issues[name] = {
                "id": 100 + self.count,
                "iid": self.count,
                "project_id": 7,
                "title": f"About {name}",
                "state": "opened",
                "created_at": moment,
                "closed_at": None,
                "labels": ["bearing"],
                "milestone": None,
                "assignees": [BOB],
                "author": ANNA,
                "web_url": f"{PLACE}/-/{LISTS[sign]}/{self.count}",
                "references": {"short": f"{sign}{self.count}", "relative": f"{sign}{self.count}", "full": reference},
            }
        self.issues[name] |= {"description": text, **facts, "updated_at": moment}
        return self.issues[name]

    def comment(self, name: str, text: str, author: dict[str, Any] = BOB, **facts: Any) -> None:
        moment = write_time(self.tick())
        note = {"id": self.clock, "body": text, "author": author, "created_at": moment, "updated_at": moment}
        self.notes.setdefault(name, []).append(note | {"system": False, "noteable_type": "Issue"} | facts)
        self.issues[name]["updated_at"] = moment

    def close(self, name: str) -> None:
        moment = write_time(self.tick())
        event = {"id": self.clock, "user": ANNA, "created_at": moment, "resource_type": "Issue", "state": "closed"}
        self.states.setdefault(name, []).append(event)
        label = {"id": 1, "name": "done", "color": "#00ff00", "description": ""}
        added = {"id": self.clock, "user": ANNA, "created_at": moment, "label": label, "action": "add"}
        self.labels.setdefault(name, []).append(added)
        self.issues[name] |= {"state": "closed", "labels": ["bearing", "done"], "updated_at": moment}

    def drop(self, name: str) -> None:
        del self.issues[name]

    def add_routes(self, router: web.UrlDispatcher) -> None:
        project = "/api/v4/projects/{id}"
        router.add_get(project, self.tell_project)
        for sign, name in LISTS.items():
            place = f"{project}/{name}"
            router.add_get(place, partial(self.list_issues, sign=sign))
            router.add_get(place + "/{iid}", partial(self.tell_issue, sign=sign))
            for part in ("notes", "resource_state_events", "resource_label_events"):
                router.add_get(f"{place}/{{iid}}/{part}", partial(self.list_parts, sign=sign, part=part))
        router.add_get(project + "/uploads/{secret}/{name}", self.download)

    async def tell_project(self, request: web.Request) -> web.Response:
        if request.match_info["id"] not in (PROJECT, "7"):
            return missing()
        levels = {
            f"{name}_access_level": "disabled" if sign == self.disabled else "enabled" for sign, name in LISTS.items()
        }
        return web.json_response({"id": 7, "path_with_namespace": PROJECT, "open_issues_count": self.count, **levels})

    def find(self, sign: str) -> list[tuple[str, dict[str, Any]]]:
        return [(name, one) for name, one in self.issues.items() if sign in one["references"]["short"]]

    async def list_issues(self, request: web.Request, sign: str) -> web.Response:
        if sign == self.disabled:
            return web.json_response({"message": "403 Forbidden"}, status=403)
        assert (request.query["order_by"], request.query["sort"]) == ("updated_at", "asc")
        since = request.query.get("updated_after", "")
        found = [one for _, one in self.find(sign) if one["updated_at"] >= since]
        return cut(request, sorted(found, key=lambda one: (one["updated_at"], one["iid"])))

    async def tell_issue(self, request: web.Request, sign: str) -> web.Response:
        iid = int(request.match_info["iid"])
        found = next((one for _, one in self.find(sign) if one["iid"] == iid), None)
        return web.json_response(found) if found else missing()

    async def list_parts(self, request: web.Request, sign: str, part: str) -> web.Response:
        iid = int(request.match_info["iid"])
        name = next((name for name, one in self.find(sign) if one["iid"] == iid), "")
        kept = {"notes": self.notes, "resource_state_events": self.states, "resource_label_events": self.labels}[part]
        return cut(request, kept.get(name, []))


def cut(request: web.Request, found: list[dict[str, Any]]) -> web.Response:
    """One page of a list; the header numbers the next."""
    size, page = int(request.query["per_page"]), int(request.query.get("page", 1))
    following = str(page + 1) if len(found) > page * size else ""
    return web.json_response(found[(page - 1) * size : page * size], headers={"X-Next-Page": following})
