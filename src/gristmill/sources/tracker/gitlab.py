"""GitLab as a tracker: issues and merge requests of projects, on any server."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from pydantic import Field

from gristmill.sources.bringing import mark_version
from gristmill.sources.cursor import CursorPage
from gristmill.sources.http import LONGEST, HttpAnswer, Provider, open_provider
from gristmill.sources.model import Connector, ConnectorContext, Kind, Listed, RawItem
from gristmill.sources.moments import sort_moment
from gristmill.sources.site import Site, sign_in, split_names
from gristmill.sources.store import check_external
from gristmill.sources.tracker.attached import BESIDE, LINKED, IssueFile, find_linked, is_file
from gristmill.sources.tracker.connector import TrackerConnector, prune
from gristmill.sources.tracker.gitlab_issue import describe_gitlab
from gristmill.sources.values import read_text
from gristmill.wording import format_count

LISTED = 100  # issues of one page of a listing
MOST_PAGES = 50  # of the notes or events of one issue
# GitLab writes it without a machine
UPLOAD = re.compile(r"(?<![\w/.])/uploads/[0-9a-f]{32}/[^\s()\[\]<>\"'?#/]{1,255}")
NO_UPLOAD = "Its server does not give it: it is gone, or the server is older than GitLab 17.4."
LISTS = {"#": "issues", "!": "merge_requests"}  # by the sign that stands before the number
UNREAD = frozenset({"avatar_url", "_links", "task_completion_status", "time_stats", "user_notes_count", "upvotes"})


class GitLabOptions(Site):
    """Some projects."""

    url: str = Field(pattern="^https?://", description="The address of the server, such as https://gitlab.com.")
    projects: str = Field(min_length=1, description="Projects as group/name or by number, with commas between.")
    attachments: bool = Field(default=True, description="Whether files in the texts of issues come, too.")


class Project(NamedTuple):
    """A project, as the source names it."""

    name: str
    lists: str  # the signs of what it has: "#", "!" or both
    open_issues: int


class GitLab:
    """Issues and merge requests are known by their project and number, as GitLab writes it: group/project#1."""

    portion = 10

    def __init__(self, provider: Provider, projects: Sequence[Project], *, files: bool, max_bytes: int) -> None:
        self._provider = provider
        self._has_files = files
        self._max_bytes = max_bytes
        self._projects = projects
        self.streams: Sequence[str] = [f"{one.name}{sign}" for one in projects for sign in one.lists]
        self._listed: dict[str, tuple[dict[str, Any], HttpAnswer]] = {}

    @property
    def now(self) -> datetime | None:
        return self._provider.now

    async def check(self) -> str:
        told = [await load_project(self._provider, one.name) for one in self._projects]
        return "; ".join(f"{one.name} has {format_count(one.open_issues, 'open issue')}" for one in told) + "."

    async def list_updated(self, stream: str, since: str, skip: int) -> CursorPage[Listed]:
        asked: dict[str, str | int] = {"scope": "all", "state": "all", "order_by": "updated_at", "sort": "asc"}
        asked |= {"per_page": LISTED, "page": skip // LISTED + 1} | ({"updated_after": since} if since else {})
        answer = await self._provider.get(locate(stream), asked)
        issues = answer.read_dicts()
        times = [sort_moment(one.get("updated_at")) for one in issues]
        ids = [check_external(f"{stream}{one.get('iid')}") for one in issues]
        # the listing has whole issues: only their notes and events are asked for one by one
        self._listed = {id_: (issue, answer) for id_, issue in zip(ids, issues, strict=True)}
        listed = [Listed(id_, time) for id_, time in zip(ids, times, strict=True)]
        listed += [
            Listed(file, LINKED) for id_, issue in zip(ids, issues, strict=True) for file in self._find(issue, id_)
        ]
        return CursorPage(listed, times, has_more(answer))

    async def fetch(self, ids: Sequence[str]) -> list[RawItem]:
        found = [await self._fetch_one(one) for one in ids]
        return [item for item in found if item is not None]

    def _find(self, issue: Mapping[str, Any], external: str) -> dict[str, IssueFile]:
        text = read_text(issue.get("description")) if self._has_files else ""
        return find_linked(text, UPLOAD, external, external[: _find_sign(external)])

    async def _load(self, id_: str) -> tuple[dict[str, Any], HttpAnswer] | None:
        """An issue as a listing tells it."""
        if id_ in self._listed:
            return self._listed[id_]
        answer = await self._provider.find(_locate_issue(id_))
        return None if answer is None else (answer.read_dict(), answer)

    async def _fetch_file(self, id_: str) -> RawItem | None:
        """By the API, which knows our key; the address that stands in the text is for people who are signed in."""
        external = id_.partition(BESIDE)[0]
        loaded = await self._load(external)
        file = self._find(loaded[0], external).get(id_) if loaded else None
        if file is None:
            return None
        project = quote(file.project, safe="")
        found = await replace(file, place=f"/api/v4/projects/{project}{file.place}").bring(
            self._provider, id_, LINKED, self._max_bytes
        )
        return found or RawItem(id_, b"", LINKED, {}, NO_UPLOAD)

    async def _fetch_one(self, id_: str) -> RawItem | None:
        if is_file(id_):
            return await self._fetch_file(id_)
        place, loaded = _locate_issue(id_), await self._load(id_)
        if loaded is None:
            return None
        issue, answer = loaded
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


def _find_sign(id_: str) -> int:
    return max(id_.rfind(sign) for sign in LISTS)


def _locate_issue(id_: str) -> str:
    at = _find_sign(id_) + 1
    return f"{locate(id_[:at])}/{id_[at:]}"


def locate(stream: str) -> str:
    """The path of the issues (`group/project#`) or merge requests (`group/project!`) of a project."""
    return f"/api/v4/projects/{quote(stream[:-1], safe='')}/{LISTS[stream[-1]]}"


def has_more(answer: HttpAnswer) -> bool:
    return bool(answer.headers.get("X-Next-Page", "").strip()) or answer.has_next


async def load_project(provider: Provider, name: str) -> Project:
    """What a project has; where issues or merge requests are switched off, there is nothing to list."""
    told = (await provider.get(f"/api/v4/projects/{quote(name, safe='')}")).read_dict()
    levels = {"#": told.get("issues_access_level"), "!": told.get("merge_requests_access_level")}
    signs = "".join(sign for sign, level in levels.items() if level != "disabled")
    return Project(name, signs, int(told.get("open_issues_count") or 0))


@asynccontextmanager
async def open_gitlab(options: GitLabOptions, context: ConnectorContext) -> AsyncGenerator[Connector]:
    largest = max(LONGEST, context.max_bytes)
    async with open_provider(options.url, await sign_in(options), max_bytes=largest) as provider:
        projects = [await load_project(provider, name) for name in split_names(options.projects)]
        tracker = GitLab(provider, projects, files=options.attachments, max_bytes=context.max_bytes)
        yield TrackerConnector(tracker, context)


GITLAB = Kind(
    "gitlab",
    "Issues and merge requests of projects at GitLab.",
    GitLabOptions,
    open_gitlab,
    describe_gitlab,
)
