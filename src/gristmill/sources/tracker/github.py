"""GitHub as a tracker: issues and pull requests of repositories, at github.com or on an Enterprise server."""

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import orjson
from pydantic import Field, field_validator

from gristmill.sources.bringing import mark_version
from gristmill.sources.cursor import CursorPage
from gristmill.sources.http import LONGEST, HttpAnswer, Provider, open_provider
from gristmill.sources.model import Connector, ConnectorContext, Kind, Listed, RawItem
from gristmill.sources.moments import sort_moment
from gristmill.sources.site import Site, sign_in, split_names
from gristmill.sources.tracker.attached import BESIDE, LINKED, IssueFile, find_linked, is_file
from gristmill.sources.tracker.connector import TrackerConnector, prune
from gristmill.sources.tracker.github_issue import describe_github
from gristmill.sources.values import read_text
from gristmill.wording import format_count

LISTED = 100  # issues of one page of a listing
MOST_PAGES = 50  # of the events or comments of one issue
NO_FILE = "GitHub does not give it: it is gone, or our key may not see it."
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
    attachments: bool = Field(default=True, description="Whether files in the texts of issues come, too.")

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

    def __init__(self, provider: Provider, web: Provider, options: GitHubOptions, max_bytes: int) -> None:
        """`web` is where people read the issues: the API has no files."""
        self._provider = provider
        self._web = web
        self._site = name_site(options.url)
        self._has_files = options.attachments
        self._max_bytes = max_bytes
        self.streams: Sequence[str] = split_names(options.repositories)
        self._listed: dict[str, tuple[dict[str, Any], HttpAnswer]] = {}

    @property
    def now(self) -> datetime | None:
        return self._provider.now

    async def check(self) -> str:
        found: list[str] = []
        for name in self.streams:
            told = (await self._provider.get(f"/repos/{name}")).read_dict()
            found.append(f"{name} has {format_count(int(told.get('open_issues_count', 0)), 'open issue')}")
        return "; ".join(found) + "."

    async def list_updated(self, stream: str, since: str, skip: int) -> CursorPage[Listed]:
        asked = {"state": "all", "sort": "updated", "direction": "asc", "per_page": LISTED, "page": skip // LISTED + 1}
        bound = {"since": f"{since[:19]}Z"} if since else {}
        answer = await self._provider.get(f"/repos/{stream}/issues", asked | bound)
        issues = answer.read_dicts()
        times = [sort_moment(one.get("updated_at")) for one in issues]
        listed = [Listed(f"{stream}#{one.get('number')}", time) for one, time in zip(issues, times, strict=True)]
        # the listing has whole issues: only their comments and events are asked for one by one
        self._listed = {one.external: (issue, answer) for one, issue in zip(listed, issues, strict=True)}
        listed += [
            Listed(file, LINKED) for id_, (issue, _) in self._listed.items() for file in self._find_files(issue, id_)
        ]
        return CursorPage(listed, times, answer.has_next)

    async def fetch(self, ids: Sequence[str]) -> list[RawItem]:
        found = [await self._fetch_one(one) for one in ids]
        return [item for item in found if item is not None]

    def _find_files(self, issue: Mapping[str, Any], external: str) -> dict[str, IssueFile]:
        repository = external.rpartition("#")[0]
        text = read_text(issue.get("body")) if self._has_files else ""
        return find_linked(text, match_files(self._site, repository), external, repository)

    async def _fetch_file(self, id_: str) -> RawItem | None:
        external = id_.partition(BESIDE)[0]
        repository, _, number = external.rpartition("#")
        issue, answer = self._listed.get(external) or await self._find(f"/repos/{repository}/issues/{number}")
        file = self._find_files(issue, external).get(id_) if answer else None
        if file is None:
            return None
        found = await file.bring(self._web, id_, LINKED, self._max_bytes)
        return found or RawItem(id_, b"", LINKED, {}, NO_FILE)

    async def _fetch_one(self, id_: str) -> RawItem | None:
        if is_file(id_):
            return await self._fetch_file(id_)
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

    async def _find(self, path: str) -> tuple[dict[str, Any], HttpAnswer | None]:
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


def name_site(api: str) -> str:
    """Where people read what this API tells."""
    return (
        "https://github.com" if api.rstrip("/") == "https://api.github.com" else api.partition("/api/")[0].rstrip("/")
    )


def match_files(site: str, repository: str) -> re.Pattern[str]:
    """Addresses of files that people put into an issue of a repository, of today and of former years.

    Not those of other repositories: our key may see what the writer of the issue may not.
    """
    own = rf"{re.escape(site)}/(?:user-attachments|{re.escape(repository)})/(?:assets|files)/"
    return re.compile(rf"(?:{own}|https://user-images\.githubusercontent\.com/)[\w./%-]{{1,300}}")


def is_unread(key: str) -> bool:
    return key in UNREAD or (key.endswith("_url") and key != "html_url")


@asynccontextmanager
async def open_github(options: GitHubOptions, context: ConnectorContext) -> AsyncGenerator[Connector]:
    headers: Mapping[str, str] = {**HEADERS, **await sign_in(options)}
    largest = max(LONGEST, context.max_bytes)
    async with (
        open_provider(options.url, headers) as provider,
        open_provider(name_site(options.url), await sign_in(options), max_bytes=largest) as web,
    ):
        yield TrackerConnector(GitHub(provider, web, options, context.max_bytes), context)


GITHUB = Kind(
    "github",
    "Issues and pull requests of repositories at GitHub.",
    GitHubOptions,
    open_github,
    describe_github,
)
