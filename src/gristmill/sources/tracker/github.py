"""GitHub as a tracker: issues and pull requests of repositories, at github.com or on an Enterprise server."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import orjson
from pydantic import Field, field_validator

from gristmill.sources.bringing import mark_version
from gristmill.sources.cursor import Page
from gristmill.sources.http import Answer, Provider, open_provider
from gristmill.sources.model import Bench, Connector, Kind, Listed, RawItem
from gristmill.sources.moments import sort_moment
from gristmill.sources.site import Site, sign_in, split_names
from gristmill.sources.tracker.connector import TrackerConnector, prune
from gristmill.sources.tracker.github_issue import describe_github
from gristmill.wording import format_count

LISTED = 100  # issues of one page of a listing
MOST_PAGES = 50  # of the events or comments of one issue
REPOSITORY = re.compile(r"[\w.-]{1,100}/[\w.-]{1,100}")
HEADERS = {
    "Accept": "application/vnd.github+json",
    "X-GitHub-Api-Version": "2022-11-28",
    "User-Agent": "gristmill",  # a call without a name is refused
}
UNREAD = frozenset(
    {"url", "node_id", "gravatar_id", "reactions", "performed_via_github_app", "repo", "_links", "verification", "tree"}
)


class GitHubOptions(Site):
    """Some repositories."""

    url: str = Field(
        default="https://api.github.com",
        pattern="^https?://",
        description="The address of the API; none: that of github.com. An Enterprise server: https://HOST/api/v3.",
    )
    repositories: str = Field(min_length=1, description="Repositories as owner/name, with commas between.")

    @field_validator("repositories")
    @classmethod
    def check_repositories(cls, repositories: str) -> str:
        for name in split_names(repositories):
            if not REPOSITORY.fullmatch(name):
                raise ValueError(f"“{name}” is no repository: write owner/name")
        return repositories


class GitHub:
    """Issues are known by their repository and number; to GitHub, a pull request is an issue, too."""

    portion = 5

    def __init__(self, provider: Provider, options: GitHubOptions) -> None:
        self._provider = provider
        self.streams: Sequence[str] = split_names(options.repositories)
        self._listed: dict[str, tuple[dict[str, Any], Answer]] = {}

    async def check(self) -> str:
        found: list[str] = []
        for name in self.streams:
            told = (await self._provider.get(f"/repos/{name}")).read_dict()
            found.append(f"{name} has {format_count(int(told.get('open_issues_count', 0)), 'open issue')}")
        return "; ".join(found) + "."

    async def list_updated(self, stream: str, since: str, skip: int) -> Page[Listed]:
        asked = {"state": "all", "sort": "updated", "direction": "asc", "per_page": LISTED, "page": skip // LISTED + 1}
        bound = {"since": f"{since[:19]}Z"} if since else {}
        answer = await self._provider.get(f"/repos/{stream}/issues", asked | bound)
        issues = answer.read_dicts()
        times = [sort_moment(one.get("updated_at")) for one in issues]
        listed = [Listed(f"{stream}#{one.get('number')}", time) for one, time in zip(issues, times, strict=True)]
        # a page brings its issues whole: only what belongs to each of them is asked for by itself
        self._listed = {one.external: (issue, answer) for one, issue in zip(listed, issues, strict=True)}
        return Page(listed, times, answer.has_next)

    async def fetch(self, ids: Sequence[str]) -> list[RawItem]:
        found = [await self._fetch_one(one) for one in ids]
        return [item for item in found if item is not None]

    async def _fetch_one(self, id_: str) -> RawItem | None:
        repository, _, number = id_.rpartition("#")
        issue, answer = self._listed.get(id_) or await self._find(f"/repos/{repository}/issues/{number}")
        if answer is None:
            return None
        pull = "pull_request" in issue
        place = f"/repos/{repository}/pulls/{number}"
        whole = {
            "issue": issue,
            "timeline": await self._read_all(f"/repos/{repository}/issues/{number}/timeline"),
            "pull": (await self._find(place))[0] if pull else {},
            "comments": await self._read_all(f"{place}/comments") if pull else [],
        }
        content = orjson.dumps(prune(whole, is_unread), option=orjson.OPT_SORT_KEYS)
        return RawItem(id_, content, mark_version(sort_moment(issue.get("updated_at")), answer.at))

    async def _find(self, path: str) -> tuple[dict[str, Any], Answer | None]:
        answer = await self._provider.find(path)
        return (answer.read_dict() if answer else {}), answer

    async def _read_all(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for page in range(1, MOST_PAGES + 1):
            answer = await self._provider.find(path, {"per_page": 100, "page": page})
            if answer is None:
                break
            found += answer.read_dicts()
            if not answer.has_next:
                break
        return found


def is_unread(key: str) -> bool:
    return key in UNREAD or (key.endswith("_url") and key != "html_url")


@asynccontextmanager
async def open_github(options: GitHubOptions, bench: Bench) -> AsyncGenerator[Connector]:
    headers: Mapping[str, str] = {**HEADERS, **await sign_in(options)}
    async with open_provider(options.url, headers) as provider:
        yield TrackerConnector(GitHub(provider, options), bench)


GITHUB = Kind(
    "github",
    "Issues and pull requests of repositories at GitHub.",
    GitHubOptions,
    open_github,
    describe_github,
)
