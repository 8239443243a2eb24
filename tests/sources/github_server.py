"""A fake GitHub: issues and pull requests of one repository."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aiohttp import web
from fake_server import FakeServer, missing, write_time

REPOSITORY = "acme/mill"
PLACE = f"/repos/{REPOSITORY}"
API = "https://api.github.test"
USER_LINKS = (
    *("followers", "following", "gists", "starred", "subscriptions", "organizations", "repos", "events"),
    "received_events",
)
REPOSITORY_LINKS = (
    *("archive", "assignees", "blobs", "branches", "collaborators", "comments", "commits", "compare", "contents"),
    *("contributors", "deployments", "downloads", "events", "forks", "git_commits", "git_refs", "git_tags", "hooks"),
    *("issue_comment", "issue_events", "issues", "keys", "labels", "languages", "merges", "milestones"),
    *("notifications", "pulls", "releases", "stargazers", "statuses", "subscribers", "subscription", "tags"),
    *("teams", "trees", "git", "ssh", "clone", "svn"),
)


def a_user(login: str) -> dict[str, Any]:
    links = {f"{name}_url": f"{API}/users/{login}/{name}" for name in USER_LINKS}
    return links | {
        "login": login,
        "id": sum(login.encode()),
        "node_id": "U1",
        "avatar_url": f"{API}/{login}.png",
        "gravatar_id": "",
        "url": f"{API}/users/{login}",
        "html_url": f"https://github.test/{login}",
        "type": "User",
        "site_admin": False,
    }


ANNA, BOB = a_user("anna"), a_user("bob")


def a_repository() -> dict[str, Any]:
    links = {f"{name}_url": f"{API}{PLACE}/{name}" for name in REPOSITORY_LINKS}
    flags = ("private", "fork", "has_downloads", "has_pages", "archived", "disabled")
    abilities = ("has_issues", "has_projects", "has_wiki", "has_discussions")
    counts = ("forks", "forks_count", "open_issues", "open_issues_count", "size", "stargazers_count", "watchers")
    times = ("created_at", "updated_at", "pushed_at")
    return {
        **links,
        **dict.fromkeys(flags, False),
        **dict.fromkeys(abilities, True),
        **dict.fromkeys([*counts, "watchers_count"], 0),
        **dict.fromkeys(times, "2024-01-01T00:00:00Z"),
        **dict.fromkeys(("description", "homepage", "language", "license", "mirror_url")),
        "id": 1,
        "node_id": "R1",
        "name": "mill",
        "full_name": REPOSITORY,
        "owner": ANNA,
        "url": f"{API}{PLACE}",
        "html_url": f"https://github.test/{REPOSITORY}",
        "default_branch": "main",
    }


@dataclass
class GitHubServer(FakeServer):
    issues: dict[str, dict[str, Any]] = field(default_factory=dict)  # by the names that tests give them
    timelines: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    pulls: dict[int, dict[str, Any]] = field(default_factory=dict)
    remarks: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    count: int = 0

    def put(self, name: str, text: str = "Hello.", *, at: datetime | None = None, **facts: Any) -> dict[str, Any]:
        """Add an issue, or change it."""
        moment = write_time(at or self.tick())
        if name not in self.issues:
            self.count += 1
            self.issues[name] = self.a_issue(self.count, f"About {name}", moment)
            self.timelines[self.count] = []
        self.issues[name] |= {"body": text, **facts, "updated_at": moment}
        return self.issues[name]

    def a_issue(self, number: int, title: str, moment: str) -> dict[str, Any]:
        place = f"{API}{PLACE}/issues/{number}"
        return {
            "id": 1000 + number,
            "node_id": f"I{number}",
            "url": place,
            "repository_url": f"{API}{PLACE}",
            "labels_url": f"{place}/labels{{/name}}",
            "comments_url": f"{place}/comments",
            "events_url": f"{place}/events",
            "html_url": f"https://github.test/{REPOSITORY}/issues/{number}",
            "number": number,
            "state": "open",
            "state_reason": None,
            "title": title,
            "user": ANNA,
            "labels": [{"id": 1, "name": "bearing", "color": "ff0000", "default": False}],
            "assignee": BOB,
            "assignees": [BOB],
            "milestone": None,
            "locked": False,
            "comments": 0,
            "closed_at": None,
            "created_at": moment,
            "updated_at": moment,
            "author_association": "OWNER",
        }

    def add_event(self, name: str, event: str, **facts: Any) -> None:
        """Something happens to an issue, at the next second."""
        issue, moment = self.issues[name], write_time(self.tick())
        number = issue["number"]
        id_ = 9000 + sum(map(len, self.timelines.values()))
        common = {"id": id_, "node_id": f"E{id_}", "url": f"{API}{PLACE}/issues/events/{id_}", "actor": BOB}
        common |= {"event": event, "commit_id": None, "commit_url": None, "created_at": moment}
        self.timelines[number].append(common | {"performed_via_github_app": None} | facts)
        issue["updated_at"] = moment

    def comment(self, name: str, text: str, author: dict[str, Any] = BOB) -> None:
        issue, moment = self.issues[name], write_time(self.tick())
        number, place = issue["number"], f"{API}{PLACE}/issues/comments/1"
        self.timelines[number].append(
            {
                "event": "commented",
                "actor": author,
                "id": 1,
                "node_id": "C1",
                "url": place,
                "body": text,
                "html_url": f"https://github.test/{REPOSITORY}/issues/{number}#issuecomment-1",
                "user": author,
                "created_at": moment,
                "updated_at": moment,
                "issue_url": f"{API}{PLACE}/issues/{number}",
                "author_association": "MEMBER",
            }
        )
        issue |= {"comments": issue["comments"] + 1, "updated_at": moment}

    def propose(self, name: str, head: str, text: str = "Hello.") -> int:
        """Make a pull request."""
        issue = self.put(name, text)
        number, place = issue["number"], f"{API}{PLACE}/pulls/{issue['number']}"
        web_place = f"https://github.test/{REPOSITORY}/pull/{number}"
        links = {
            "url": place,
            "html_url": web_place,
            "diff_url": f"{web_place}.diff",
            "patch_url": f"{web_place}.patch",
        }
        issue["pull_request"] = links | {"merged_at": None}
        issue["html_url"] = web_place
        ends = {
            end: {"label": f"acme:{ref}", "ref": ref, "sha": sha * 40, "user": ANNA, "repo": a_repository()}
            for end, ref, sha in (("head", head, "a"), ("base", "main", "b"))
        }
        names = ("comments", "commits", "html", "issue", "review_comments", "review_comment", "self", "statuses")
        self.pulls[number] = {
            **links,
            **ends,
            "id": 5000 + number,
            "node_id": f"P{number}",
            "issue_url": f"{API}{PLACE}/issues/{number}",
            "commits_url": f"{place}/commits",
            "review_comments_url": f"{place}/comments",
            "review_comment_url": f"{API}{PLACE}/pulls/comments{{/number}}",
            "comments_url": f"{API}{PLACE}/issues/{number}/comments",
            "statuses_url": f"{API}{PLACE}/statuses/{'a' * 40}",
            "_links": {one: {"href": f"{place}/{one}"} for one in names},
            "number": number,
            "state": "open",
            "locked": False,
            "title": issue["title"],
            "user": ANNA,
            "body": text,
            "labels": [],
            "milestone": None,
            "created_at": issue["created_at"],
            "updated_at": issue["updated_at"],
            "closed_at": None,
            "merged_at": None,
            "merge_commit_sha": None,
            "assignee": None,
            "author_association": "OWNER",
            "auto_merge": None,
            "draft": False,
            "merged": False,
            "mergeable": None,
            "mergeable_state": "clean",
            "merged_by": None,
            "maintainer_can_modify": False,
            **dict.fromkeys(("comments", "review_comments", "commits", "additions", "deletions", "changed_files"), 1),
        }
        return number

    def remark(self, name: str, path: str, line: int, text: str) -> None:
        """What a reviewer says about a line."""
        number, moment = self.issues[name]["number"], write_time(self.tick())
        place = f"{API}{PLACE}/pulls/{number}"
        self.remarks.setdefault(number, []).append(
            {
                "id": 1,
                "node_id": "RC1",
                "url": f"{API}{PLACE}/pulls/comments/1",
                "pull_request_review_id": 1,
                "diff_hunk": "@@ -1 +1 @@",
                "path": path,
                "line": line,
                "commit_id": "a" * 40,
                "original_commit_id": "a" * 40,
                "user": BOB,
                "body": text,
                "created_at": moment,
                "updated_at": moment,
                "html_url": f"https://github.test/{REPOSITORY}/pull/{number}#r1",
                "pull_request_url": place,
                "author_association": "MEMBER",
                "_links": {one: {"href": place} for one in ("self", "html", "pull_request")},
            }
        )
        self.issues[name]["updated_at"] = moment

    def review(self, name: str, state: str, text: str) -> None:
        """A reviewer says yes or no."""
        number, moment = self.issues[name]["number"], write_time(self.tick())
        place = f"https://github.test/{REPOSITORY}/pull/{number}#review-1"
        self.timelines[number].append(
            {
                "event": "reviewed",
                "id": 1,
                "node_id": "RV1",
                "user": BOB,
                "body": text,
                "state": state,
                "html_url": place,
                "pull_request_url": f"{API}{PLACE}/pulls/{number}",
                "_links": {one: {"href": place} for one in ("html", "pull_request")},
                "submitted_at": moment,
                "commit_id": "a" * 40,
                "author_association": "MEMBER",
            }
        )
        self.issues[name]["updated_at"] = moment

    def drop(self, name: str) -> None:
        del self.issues[name]

    def add_routes(self, router: web.UrlDispatcher) -> None:
        place = "/repos/{owner}/{repo}"
        router.add_get(place, self.tell_repository)
        router.add_get(f"{place}/issues", self.list_issues)
        router.add_get(place + "/issues/{issue_number}", self.tell_issue)
        router.add_get(place + "/issues/{issue_number}/timeline", self.list_events)
        router.add_get(place + "/pulls/{pull_number}", self.tell_pull)
        router.add_get(place + "/pulls/{pull_number}/comments", self.list_remarks)
        router.add_get("/user-attachments/files/{number}/{name}", self.download)

    async def tell_repository(self, request: web.Request) -> web.Response:
        return web.json_response(a_repository() | {"network_count": 0, "subscribers_count": 0})

    async def list_issues(self, request: web.Request) -> web.Response:
        assert request.query["state"] == "all"
        assert (request.query["sort"], request.query["direction"]) == ("updated", "asc")
        since = request.query.get("since", "")
        found = [one for one in self.issues.values() if one["updated_at"] >= since]
        return cut(request, sorted(found, key=lambda one: (one["updated_at"], one["number"])))

    async def tell_issue(self, request: web.Request) -> web.Response:
        number = int(request.match_info["issue_number"])
        found = next((one for one in self.issues.values() if one["number"] == number), None)
        if found is None:
            return web.json_response({"message": "This issue was deleted"}, status=410)
        return web.json_response(found)

    async def list_events(self, request: web.Request) -> web.Response:
        return cut(request, self.timelines[int(request.match_info["issue_number"])])

    async def tell_pull(self, request: web.Request) -> web.Response:
        found = self.pulls.get(int(request.match_info["pull_number"]))
        return web.json_response(found) if found else missing()

    async def list_remarks(self, request: web.Request) -> web.Response:
        return cut(request, self.remarks.get(int(request.match_info["pull_number"]), []))


def cut(request: web.Request, found: list[dict[str, Any]]) -> web.Response:
    """One page of a list; the header names the next."""
    size, page = int(request.query["per_page"]), int(request.query.get("page", 1))
    headers = {"Link": f'<{request.url}>; rel="next"'} if len(found) > page * size else {}
    return web.json_response(found[(page - 1) * size : page * size], headers=headers)
