"""Jira as a tracker: the Cloud (version 3 of its API) and servers of your own (version 2)."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import orjson
from pydantic import Field, field_validator

from gristmill.errors import Permanent
from gristmill.sources.bringing import mark_version
from gristmill.sources.cursor import CursorPage
from gristmill.sources.http import LONGEST, HttpAnswer, Provider, open_provider
from gristmill.sources.model import Connector, ConnectorContext, Kind, Listed, RawItem
from gristmill.sources.moments import read_moment, sort_moment
from gristmill.sources.site import AccountSite, Keys, sign_in, split_names
from gristmill.sources.store import check_external
from gristmill.sources.tracker.attached import BESIDE, IssueFile, is_file
from gristmill.sources.tracker.connector import TrackerConnector, prune
from gristmill.sources.tracker.jira_issue import describe_jira
from gristmill.sources.values import dig_text, read_name, read_thing, read_things
from gristmill.wording import format_count

LISTED = 100  # issues of one page of a listing
MOST_PAGES = 100  # of the comments or changes of one issue
FIELDS = (
    *("summary", "description", "environment", "status", "resolution", "issuetype", "priority", "project", "reporter"),
    *("creator", "assignee", "labels", "components", "versions", "fixVersions", "duedate", "created", "updated"),
    *("parent", "subtasks", "issuelinks", "comment"),
)
UNREAD = frozenset({"self", "avatarUrls", "iconUrl", "expand", "statusCategory", "operations", "editmeta"})
TIMES = frozenset({"created", "updated"})
RENDERED = ("description", "environment", "comment")
DAY = 86_400_000  # the Cloud refuses a search without any bound: the second day of 1970 is one
MOST_CUSTOM = 200  # fields that people added, and that are asked for
# by which Jira itself orders issues or counts branches: nobody reads them
MACHINE_FIELDS = ("gh-lexo-rank", "devsummary", "vulnerabilitycf")
LOGIN_FAILED = ("AUTHENTICATED_FAILED", "AUTHENTICATION_DENIED", "AUTHORISATION_FAILED")


class JiraOptions(AccountSite):
    """A Jira, or some projects of it."""

    url: str = Field(pattern="^https?://", description="The address of Jira: https://….atlassian.net, or your server.")
    projects: Keys = Field(default="", description="Keys of projects, with commas between; none: all.")
    attachments: bool = Field(default=True, description="Whether files of issues come, too.")
    jql: str = Field(default="", description="A search that issues must fulfil besides, without ORDER BY.")

    @field_validator("jql")
    @classmethod
    def check_jql(cls, jql: str) -> str:
        if "order by" in " ".join(jql.lower().split()):
            raise ValueError("the order is ours: leave ORDER BY out")
        return jql


class Jira:
    """Issues are known by their number: their key changes when they move to another project."""

    streams: Sequence[str] = ("",)
    portion = 50

    def __init__(self, provider: Provider, options: JiraOptions, *, cloud: bool, max_bytes: int) -> None:
        self._provider = provider
        self._options = options
        self._cloud = cloud
        self._api = f"/rest/api/{3 if cloud else 2}"
        self._max_bytes = max_bytes
        self._tokens: dict[tuple[str, int], str] = {}
        self._files: dict[str, IssueFile] = {}  # of the issues that were listed last
        self._custom: dict[str, str] | None = None  # the names of fields that people added, by their ids

    @property
    def now(self) -> datetime | None:
        return self._provider.now

    async def check(self) -> str:
        jql = write_jql(self._options, "")
        if self._cloud:
            answer = await self._provider.ask(f"{self._api}/search/approximate-count", {"jql": jql})
            return f"It has about {format_count(int(answer.read_dict().get('count', 0)), 'issue')}."
        answer = await self._get("/search", {"jql": jql, "maxResults": 0})
        return f"It has {format_count(int(answer.read_dict().get('total', 0)), 'issue')}."

    async def list_updated(self, stream: str, since: str, skip: int) -> CursorPage[Listed]:
        jql = write_jql(self._options, since)
        if self._cloud:
            issues, more = await self._search_cloud(jql, since, skip)
        else:
            asked = {"jql": jql, "fields": self._listed_fields, "startAt": skip, "maxResults": LISTED}
            answer = await self._get("/search", asked)
            issues = answer.read_dicts("issues")
            more = bool(issues) and skip + len(issues) < int(answer.read_dict().get("total", 0))
        times = [_read_updated(one) for one in issues]
        listed = [Listed(_read_id(one), time) for one, time in zip(issues, times, strict=True)]
        self._files = {id_: file for one in issues for id_, file in read_files(one).items()}
        listed += [Listed(id_, file.created) for id_, file in self._files.items()]
        return CursorPage(listed, [floor_second(time) for time in times], more)

    @property
    def _listed_fields(self) -> str:
        return "updated,project,attachment" if self._options.attachments else "updated"

    async def _search_cloud(self, jql: str, since: str, skip: int) -> tuple[list[dict[str, Any]], bool]:
        """A page behind others of the same search: the Cloud numbers no pages, each names the next."""
        token = self._tokens.pop((since, skip), "")
        seen = skip if token else 0
        while True:
            asked: dict[str, str | int] = {"jql": jql, "fields": self._listed_fields, "maxResults": LISTED}
            answer = await self._get("/search/jql", asked | ({"nextPageToken": token} if token else {}))
            issues, token = answer.read_dicts("issues"), str(answer.read_dict().get("nextPageToken") or "")
            if seen >= skip or not token:
                break
            seen += len(issues)
        self._tokens = {(since, skip + len(issues)): token}
        return issues, bool(token) and not answer.read_dict().get("isLast", False)

    async def fetch(self, ids: Sequence[str]) -> list[RawItem]:
        found = await self._fetch_issues([one for one in ids if not is_file(one)])
        files = [await self._fetch_file(one) for one in ids if is_file(one)]
        return [*found, *(item for item in files if item is not None)]

    async def _fetch_file(self, id_: str) -> RawItem | None:
        file = self._files.get(id_)
        if file is None:
            issue = id_.partition(BESIDE)[0]
            answer = await self._provider.find(f"{self._api}/issue/{issue}", {"fields": "project,attachment"})
            file = read_files(answer.read_dict()).get(id_) if answer else None
        return await file.bring(self._provider, id_, file.created, self._max_bytes) if file else None

    async def _load_custom(self) -> dict[str, str]:
        """The names of the fields that people added to this Jira."""
        if self._custom is None:
            fields = (await self._get("/field", {})).read_dicts()
            own = [one for one in fields if one.get("custom") and not _is_machine_field(one)]
            self._custom = {dig_text(one, "id"): read_name(one, "name") for one in own[:MOST_CUSTOM]}
        return self._custom

    async def _fetch_issues(self, ids: Sequence[str]) -> list[RawItem]:
        if not ids:
            return []
        expand = "changelog" if self._cloud else "changelog,renderedFields"
        wanted = [*FIELDS, *await self._load_custom()]
        if len(ids) == 1:
            asked = {"fields": ",".join(wanted), "expand": expand}
            found = await self._provider.find(f"{self._api}/issue/{ids[0]}", asked)
            return [] if found is None else [await self._make_item(found.read_dict(), found)]
        if self._cloud:
            body = {"issueIdsOrKeys": list(ids), "fields": wanted, "expand": [expand]}
            answer = await self._provider.ask(f"{self._api}/issue/bulkfetch", body)
        else:
            # without validation, ids that are gone are left out; else the whole search would be refused
            jql = f"id in ({', '.join(ids)})"
            body = {"jql": jql, "fields": wanted, "expand": expand.split(","), "maxResults": len(ids)}
            answer = await self._provider.ask(f"{self._api}/search", body | {"validateQuery": False})
        return [await self._make_item(one, answer) for one in answer.read_dicts("issues")]

    async def _make_item(self, issue: dict[str, Any], answer: HttpAnswer) -> RawItem:
        id_, updated = _read_id(issue), _read_updated(issue)
        fields = read_thing(issue.get("fields"))
        if fields and not _is_whole(fields.get("comment"), "comments"):
            fields["comment"] = {"comments": await self._read_rest(f"/issue/{id_}/comment", "comments")}
        if self._cloud and not _is_whole(issue.get("changelog"), "histories"):
            issue["changelog"] = {"histories": await self._read_rest(f"/issue/{id_}/changelog", "values")}
        custom = await self._load_custom()
        issue["names"] = {field: name for field, name in custom.items() if fields.get(field) is not None}
        for unused in custom.keys() - issue["names"].keys():
            fields.pop(unused, None)
        if rendered := read_thing(issue.get("renderedFields")):
            # beside texts it holds times as “2 minutes ago”, which change by themselves
            texts = (*RENDERED, *issue["names"])
            issue["renderedFields"] = {name: prune(rendered.get(name), TIMES.__contains__) for name in texts}
        content = orjson.dumps(prune(issue, UNREAD.__contains__), option=orjson.OPT_SORT_KEYS)
        note = {"url": f"{self._options.url}/browse/{issue.get('key', '')}"}
        return RawItem(id_, content, mark_version(updated, answer.at), note)

    async def _read_rest(self, path: str, key: str) -> list[dict[str, Any]]:
        """All comments or changes of an issue that has more of them than its search gave."""
        found: list[dict[str, Any]] = []
        for _ in range(MOST_PAGES):
            asked = {"startAt": len(found), "maxResults": 100, "expand": "renderedBody"}
            answer = await self._get(path, asked)
            some = answer.read_dicts(key)
            found += some
            if not some or len(found) >= int(answer.read_dict().get("total", 0)):
                break
        return found

    async def _get(self, path: str, params: Mapping[str, str | int]) -> HttpAnswer:
        answer = await self._provider.get(self._api + path, params)
        if answer.headers.get("X-Seraph-LoginReason") in LOGIN_FAILED:  # Jira answers as to a stranger
            raise Permanent(f"{self._provider.host} does not know us any more: the token has expired.")
        return answer


def write_jql(options: JiraOptions, since: str) -> str:
    """A search in the order of updates. A number means the same moment in every time zone, unlike a date."""
    moment = read_moment(since) if since else None
    bounds = [f"updated >= {int(moment.timestamp()) * 1000 if moment else DAY}"]
    if projects := split_names(options.projects):
        quoted = ", ".join(f'"{name}"' for name in projects)
        bounds.append(f"project in ({quoted})")
    if options.jql.strip():
        bounds.append(f"({options.jql.strip()})")
    return f"{' AND '.join(bounds)} ORDER BY updated ASC, key ASC"


def floor_second(time: str) -> str:
    """A search looks at whole seconds alone."""
    return f"{time[:19]}.000Z" if time else time


def read_files(issue: dict[str, Any]) -> dict[str, IssueFile]:
    """The files of an issue, by the ids that they have as items."""
    fields, key = read_thing(issue.get("fields")), dig_text(issue, "key")
    project = read_name(fields.get("project"), "key") or key.rpartition("-")[0]
    return {
        f"{_read_id(issue)}{BESIDE}{dig_text(one, 'id')}": IssueFile(
            id=dig_text(one, "id"),
            name=read_name(one, "filename"),
            issue=key,
            project=project,
            author=read_name(one.get("author"), "displayName", "name"),
            created=read_name(one, "created"),
            size=int(one.get("size") or 0),
            place=read_name(one, "content"),
        )
        for one in read_things(fields.get("attachment"))
    }


def _is_machine_field(field: dict[str, Any]) -> bool:
    return read_name(field.get("schema"), "custom").endswith(MACHINE_FIELDS)


def _read_id(issue: dict[str, Any]) -> str:
    return check_external(str(issue.get("id", "")))


def _read_updated(issue: dict[str, Any]) -> str:
    return sort_moment(read_thing(issue.get("fields")).get("updated"))


def _is_whole(page: Any, key: str) -> bool:
    """Whether a page of comments or changes is all of them."""
    found = read_thing(page)
    return isinstance(found.get(key), list) and int(found.get("total") or 0) <= len(found[key])


@asynccontextmanager
async def open_jira(options: JiraOptions, context: ConnectorContext) -> AsyncGenerator[Connector]:
    largest = max(LONGEST, context.max_bytes)
    async with open_provider(options.url, await sign_in(options), max_bytes=largest) as provider:
        told = (await provider.get("/rest/api/2/serverInfo")).read_dict()
        if options.token:  # an expired token may pass for a stranger, who sees less: that is no deletion
            await provider.get("/rest/api/2/myself")
        cloud = told.get("deploymentType") == "Cloud"
        yield TrackerConnector(Jira(provider, options, cloud=cloud, max_bytes=context.max_bytes), context)


JIRA = Kind(
    "jira",
    "Issues of Jira, at Atlassian or on a server of your own.",
    JiraOptions,
    open_jira,
    describe_jira,
)
