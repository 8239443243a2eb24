"""GitLab as a tracker: issues and merge requests of projects, on any server."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from pydantic import Field

from gristmill.sources.bringing import mark_version
from gristmill.sources.cursor import Page
from gristmill.sources.http import Answer, Provider, open_provider
from gristmill.sources.model import Bench, Connector, Kind, Listed, RawItem
from gristmill.sources.moments import sort_moment
from gristmill.sources.site import Site, sign_in, split_names
from gristmill.sources.store import check_external
from gristmill.sources.tracker.connector import TrackerConnector, prune
from gristmill.sources.tracker.gitlab_issue import describe_gitlab
from gristmill.wording import format_count

LISTED = 100  # issues of one page of a listing
MOST_PAGES = 50  # of the notes or events of one issue
LISTS = {"#": "issues", "!": "merge_requests"}  # by the sign that stands before the number
UNREAD = frozenset({"avatar_url", "_links", "task_completion_status", "time_stats", "user_notes_count", "upvotes"})


class GitLabOptions(Site):
    """Some projects."""

    url: str = Field(pattern="^https?://", description="The address of the server, such as https://gitlab.com.")
    projects: str = Field(min_length=1, description="Projects as group/name or by number, with commas between.")


class Project(NamedTuple):
    """A project, as the source names it."""

    name: str
    lists: str  # the signs of what it has: "#", "!" or both
    open_issues: int


class GitLab:
    """Issues and merge requests are known by their project and number, as GitLab writes it: group/project#1."""

    portion = 10

    def __init__(self, provider: Provider, projects: Sequence[Project]) -> None:
        self._provider = provider
        self._projects = projects
        self.streams: Sequence[str] = [f"{one.name}{sign}" for one in projects for sign in one.lists]
        self._listed: dict[str, tuple[dict[str, Any], Answer]] = {}

    async def check(self) -> str:
        told = [await load_project(self._provider, one.name) for one in self._projects]
        return "; ".join(f"{one.name} has {format_count(one.open_issues, 'open issue')}" for one in told) + "."

    async def list_updated(self, stream: str, since: str, skip: int) -> Page[Listed]:
        asked: dict[str, str | int] = {"scope": "all", "state": "all", "order_by": "updated_at", "sort": "asc"}
        asked |= {"per_page": LISTED, "page": skip // LISTED + 1} | ({"updated_after": since} if since else {})
        answer = await self._provider.get(locate(stream), asked)
        issues = answer.read_dicts()
        times = [sort_moment(one.get("updated_at")) for one in issues]
        ids = [check_external(f"{stream}{one.get('iid')}") for one in issues]
        # a page brings its issues whole: only what belongs to each of them is asked for by itself
        self._listed = {id_: (issue, answer) for id_, issue in zip(ids, issues, strict=True)}
        listed = [Listed(id_, time) for id_, time in zip(ids, times, strict=True)]
        return Page(listed, times, has_more(answer))

    async def fetch(self, ids: Sequence[str]) -> list[RawItem]:
        found = [await self._fetch_one(one) for one in ids]
        return [item for item in found if item is not None]

    async def _fetch_one(self, id_: str) -> RawItem | None:
        at = max(id_.rfind(sign) for sign in LISTS) + 1
        place = f"{locate(id_[:at])}/{id_[at:]}"
        if id_ in self._listed:
            issue, answer = self._listed[id_]
        elif (answer := await self._provider.find(place)) is not None:
            issue = answer.read_dict()
        else:
            return None
        whole = {
            "issue": issue,
            "notes": await self._read_all(f"{place}/notes", {"sort": "asc", "order_by": "created_at"}),
            "states": await self._read_all(f"{place}/resource_state_events", {}),
            "labels": await self._read_all(f"{place}/resource_label_events", {}),
        }
        content = orjson.dumps(prune(whole, UNREAD.__contains__), option=orjson.OPT_SORT_KEYS)
        return RawItem(id_, content, mark_version(sort_moment(issue.get("updated_at")), answer.at))

    async def _read_all(self, path: str, asked: dict[str, str | int]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for page in range(1, MOST_PAGES + 1):
            answer = await self._provider.find(path, asked | {"per_page": 100, "page": page})
            if answer is None:
                break
            found += answer.read_dicts()
            if not has_more(answer):
                break
        return found


def locate(stream: str) -> str:
    """The path of the issues (`group/project#`) or merge requests (`group/project!`) of a project."""
    return f"/api/v4/projects/{quote(stream[:-1], safe='')}/{LISTS[stream[-1]]}"


def has_more(answer: Answer) -> bool:
    return bool(answer.headers.get("X-Next-Page", "").strip()) or answer.has_next


async def load_project(provider: Provider, name: str) -> Project:
    """What a project has; where issues or merge requests are switched off, there is nothing to list."""
    told = (await provider.get(f"/api/v4/projects/{quote(name, safe='')}")).read_dict()
    levels = {"#": told.get("issues_access_level"), "!": told.get("merge_requests_access_level")}
    signs = "".join(sign for sign, level in levels.items() if level != "disabled")
    return Project(name, signs, int(told.get("open_issues_count") or 0))


@asynccontextmanager
async def open_gitlab(options: GitLabOptions, bench: Bench) -> AsyncGenerator[Connector]:
    async with open_provider(options.url, await sign_in(options)) as provider:
        projects = [await load_project(provider, name) for name in split_names(options.projects)]
        yield TrackerConnector(GitLab(provider, projects), bench)


GITLAB = Kind(
    "gitlab",
    "Issues and merge requests of projects at GitLab.",
    GitLabOptions,
    open_gitlab,
    describe_gitlab,
)
