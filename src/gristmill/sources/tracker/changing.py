"""Changes at trackers: an issue is opened, answered or moved to another state."""

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

import orjson

from gristmill.errors import Permanent, Refused
from gristmill.sources.http import HttpAnswer, Provider, open_provider
from gristmill.sources.model import Source
from gristmill.sources.site import sign_in, split_names
from gristmill.sources.tracker.github import HEADERS, GitHubOptions
from gristmill.sources.tracker.gitlab import GitLabOptions, locate
from gristmill.sources.tracker.jira import JiraOptions
from gristmill.sources.values import dig_text, read_things

KEY = re.compile(r"([A-Z][A-Z0-9_]{1,20})-\d{1,9}")
NUMBERED = re.compile(r"([\w./-]{1,200})#(\d{1,9})")
CLOSED, OPEN = ("closed", "close", "done"), ("open", "opened", "reopen")


class Made(NamedTuple):
    """What was made or changed, and where a person can look at it."""

    name: str
    url: str


class ChangeableTracker(Protocol):
    """A tracker that an agent may change, as far as its source reaches."""

    async def open_issue(self, project: str, title: str, text: str) -> Made: ...

    async def comment(self, issue: str, text: str) -> Made: ...

    async def move(self, issue: str, state: str) -> Made:
        """Let an issue be in a state; one that is in it already stays as it is."""
        ...


class JiraChanges:
    """By version 2 of the API, which the Cloud and servers of your own have, and which takes plain text."""

    def __init__(self, provider: Provider, options: JiraOptions) -> None:
        self._provider = provider
        self._projects = split_names(options.projects)
        self._url = options.url.rstrip("/")

    async def open_issue(self, project: str, title: str, text: str) -> Made:
        self._check(project)
        fields = {"project": {"key": project}, "summary": title, "description": text, "issuetype": {"name": "Task"}}
        return self._name(dig_text((await self._post("/issue", {"fields": fields})).read_dict(), "key"))

    async def comment(self, issue: str, text: str) -> Made:
        self._check_issue(issue)
        await self._post(f"/issue/{issue}/comment", {"body": text})
        return self._name(issue)

    async def move(self, issue: str, state: str) -> Made:
        self._check_issue(issue)
        wanted = state.casefold()
        now = (await self._provider.get(f"/rest/api/2/issue/{issue}", {"fields": "status"})).read_dict()
        if dig_text(now, "fields", "status", "name").casefold() == wanted:
            return self._name(issue)
        told = (await self._provider.get(f"/rest/api/2/issue/{issue}/transitions")).read_dict()
        ways = read_things(told.get("transitions"))
        fits = [one for one in ways if wanted in _name_way(one)]
        if not fits:
            names = ", ".join(dig_text(one, "to", "name") or dig_text(one, "name") for one in ways) or "nowhere"
            raise Refused(f"{issue} cannot become “{state}” now; it can become {names}.")
        await self._post(f"/issue/{issue}/transitions", {"transition": {"id": dig_text(fits[0], "id")}})
        return self._name(issue)

    def _check_issue(self, issue: str) -> None:
        found = KEY.fullmatch(issue)
        if found is None:
            raise Refused(f"“{issue}” is no issue of Jira: write PROJECT-12.")
        self._check(found[1])

    def _check(self, project: str) -> None:
        if self._projects and project not in self._projects:
            raise Refused(f"The source has no project {project}; it has {', '.join(self._projects)}.")

    def _name(self, issue: str) -> Made:
        return Made(issue, f"{self._url}/browse/{issue}")

    async def _post(self, path: str, body: Mapping[str, Any]) -> HttpAnswer:
        return await self._provider.change("POST", f"/rest/api/2{path}", orjson.dumps(body))


def _name_way(way: Mapping[str, Any]) -> set[str]:
    """The names that a person may use for a transition: its own, and that of the state that it leads to."""
    return {dig_text(way, "name").casefold(), dig_text(way, "to", "name").casefold()}


class GitHubChanges:
    """Issues of the repositories that the source names."""

    def __init__(self, provider: Provider, options: GitHubOptions) -> None:
        self._provider = provider
        self._repositories = split_names(options.repositories)

    async def open_issue(self, project: str, title: str, text: str) -> Made:
        check_named(project, self._repositories)
        return _read_github(await self._send("POST", f"/repos/{project}/issues", {"title": title, "body": text}))

    async def comment(self, issue: str, text: str) -> Made:
        path = self._locate(issue)
        return Made(issue, _read_github(await self._send("POST", f"{path}/comments", {"body": text})).url)

    async def move(self, issue: str, state: str) -> Made:
        wanted = "closed" if is_closed(state) else "open"
        return Made(issue, _read_github(await self._send("PATCH", self._locate(issue), {"state": wanted})).url)

    def _locate(self, issue: str) -> str:
        repository, number = split_issue(issue)
        check_named(repository, self._repositories)
        return f"/repos/{repository}/issues/{number}"

    async def _send(self, method: str, path: str, body: Mapping[str, Any]) -> HttpAnswer:
        return await self._provider.change(method, path, orjson.dumps(body))


def _read_github(answer: HttpAnswer) -> Made:
    told = answer.read_dict()
    return Made(f"#{told.get('number', '')}", dig_text(told, "html_url"))


class GitLabChanges:
    """Issues of the projects that the source names."""

    def __init__(self, provider: Provider, options: GitLabOptions) -> None:
        self._provider = provider
        self._projects = split_names(options.projects)

    async def open_issue(self, project: str, title: str, text: str) -> Made:
        check_named(project, self._projects)
        told = (await self._send("POST", locate(f"{project}#"), {"title": title, "description": text})).read_dict()
        return Made(f"{project}#{told.get('iid', '')}", dig_text(told, "web_url"))

    async def comment(self, issue: str, text: str) -> Made:
        await self._send("POST", f"{self._locate(issue)}/notes", {"body": text})
        return Made(issue, "")

    async def move(self, issue: str, state: str) -> Made:
        event = "close" if is_closed(state) else "reopen"
        told = (await self._send("PUT", self._locate(issue), {"state_event": event})).read_dict()
        return Made(issue, dig_text(told, "web_url"))

    def _locate(self, issue: str) -> str:
        project, number = split_issue(issue)
        check_named(project, self._projects)
        return f"{locate(f'{project}#')}/{quote(number)}"

    async def _send(self, method: str, path: str, body: Mapping[str, Any]) -> HttpAnswer:
        return await self._provider.change(method, path, orjson.dumps(body))


def split_issue(issue: str) -> tuple[str, str]:
    found = NUMBERED.fullmatch(issue)
    if found is None:
        raise Refused(f"“{issue}” is no issue: write owner/name#12.")
    return found[1], found[2]


def check_named(project: str, named: list[str]) -> None:
    if project not in named:
        raise Refused(f"The source has no project {project}; it has {', '.join(named)}.")


def is_closed(state: str) -> bool:
    if state.casefold() in CLOSED:
        return True
    if state.casefold() in OPEN:
        return False
    raise Refused(f"An issue is open or closed there, and never “{state}”.")


@asynccontextmanager
async def open_tracker(source: Source) -> AsyncGenerator[ChangeableTracker]:
    """The tracker that a source is, signed in as the source is."""
    given = dict(source.options)
    match source.kind:
        case "jira":
            options = JiraOptions.model_validate(given)
            async with open_provider(options.url, await sign_in(options)) as provider:
                yield JiraChanges(provider, options)
        case "github":
            at_github = GitHubOptions.model_validate(given)
            async with open_provider(at_github.url, {**HEADERS, **await sign_in(at_github)}) as provider:
                yield GitHubChanges(provider, at_github)
        case "gitlab":
            at_gitlab = GitLabOptions.model_validate(given)
            async with open_provider(at_gitlab.url, await sign_in(at_gitlab)) as provider:
                yield GitLabChanges(provider, at_gitlab)
        case _:
            raise Permanent(f"The source {source.name} is no tracker.")
