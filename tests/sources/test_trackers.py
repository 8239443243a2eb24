"""Issues of trackers: one page each, with all that people said and did, and a graph without any LLM."""

from collections.abc import AsyncIterator
from pathlib import Path
from posixpath import normpath
from typing import Any
from urllib.parse import unquote

import orjson
import pytest
from aiohttp import web
from fake_server import FakeServer, serve
from farm import Farm, a_farm
from github_server import ANNA, BOB, GitHubServer
from gitlab_server import GitLabServer
from jira_server import USER, JiraServer
from pydantic import ValidationError

from gristmill.db import Database
from gristmill.models import TextPassage
from gristmill.models.language.extraction import extract_passages
from gristmill.sources.kinds import KINDS
from gristmill.sources.model import Description, Fetched, Source
from gristmill.sources.tracker.attached import find_linked
from gristmill.sources.tracker.github import GitHubOptions, match_files, name_site
from gristmill.sources.tracker.gitlab import UPLOAD
from gristmill.sources.tracker.gitlab_issue import describe_gitlab
from gristmill.sources.tracker.issue import find_mentions
from gristmill.sources.tracker.jira import JiraOptions, write_jql
from gristmill.sources.tracker.jira_issue import read_own_value

HASH = "0123456789" * 4
RAW = """
SELECT i.external, i.note, r.bytes FROM source_item i JOIN source_raw r ON r.item = i.id WHERE source = %(id)s
"""


@pytest.fixture
async def farm(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Farm]:
    monkeypatch.setenv("PROVIDER_TOKEN", "good")
    async with a_farm(db, tmp_path) as opened:
        yield opened


async def bring(farm: Farm, server: FakeServer, kind: str, **options: str) -> tuple[Source, dict[str, Description]]:
    """Poll a source by hand; what its items are, by their ids there."""
    given = {"url": server.url, "token": "env:PROVIDER_TOKEN", **options}
    source = await farm.add(kind, **given)
    await farm.by_hand(KINDS).poll(source)
    return source, await describe(farm, source)


async def describe(farm: Farm, source: Source) -> dict[str, Description]:
    rows = await farm.rows(RAW, id=source.id)
    describe_item = KINDS[source.kind].describe
    return {row.external: describe_item(Fetched("one", row.external, row.note, row.bytes)) for row in rows}


def page_of(found: Description) -> str:
    return (found.content or b"").decode()


def edges_of(found: Description) -> set[str]:
    about = {"type": "markdown", "title": found.title, "meta": dict(found.metadata)}
    (graph,) = extract_passages([TextPassage("Hello.", context=about)])
    return {f"{one.source} {one.type} {one.target}" for one in graph.relations}


@pytest.mark.parametrize("cloud", [True, False], ids=["cloud", "server"])
async def test_an_issue_of_jira_tells_all_that_was_said_and_done(farm: Farm, cloud: bool) -> None:
    async with serve(JiraServer(cloud=cloud)) as server:
        link = {"type": {"outward": "blocks", "inward": "is blocked by"}, "outwardIssue": {"key": "MILL-9"}}
        server.put("one", "The bearing sings, as in MILL-7.", issuelinks=[link], parent={"key": "MILL-2"})
        server.comment("one", f"Greased in {HASH}.")
        server.move("one", "Open", "In Progress")
        _, found = await bring(farm, server, "jira", user=USER)
    (issue,) = found.values()
    assert (issue.urn, issue.type, issue.title) == ("jira::MILL-1", "bugtracker", "MILL-1: About one")
    page = page_of(issue)
    assert page.startswith("# MILL-1: About one\n\n**Project:** MILL  \n**Type:** Bug  \n**Status:** In Progress  \n")
    assert "\n\nThe bearing sings, as in MILL-7.\n\n" in page
    assert f"## Bob Miller, 2024-03-01 00:00 UTC\n\nGreased in {HASH}." in page
    assert "- 2024-03-01 00:00 UTC, Anna Berg: status: Open → In Progress" in page
    assert issue.metadata["url"] == f"{server.url}/browse/MILL-1"
    assert {
        "person::anna berg REPORTED id::MILL-1",
        "person::anna berg HAS_ADDRESS address::anna@acme.test",
        "person::bob miller COMMENTED_ON id::MILL-1",
        "id::MILL-1 ASSIGNED_TO person::bob miller",
        "id::MILL-1 IN_PROJECT project::mill",
        "id::MILL-1 HAS_LABEL label::bearing",
        "id::MILL-1 BLOCKS id::MILL-9",
        "id::MILL-1 CHILD_OF id::MILL-2",
        "id::MILL-1 MENTIONS id::MILL-7",
        f"id::MILL-1 MENTIONS commit::{HASH}::MILL",
    } <= edges_of(issue)


@pytest.mark.parametrize("cloud", [True, False], ids=["cloud", "server"])
async def test_comments_that_a_search_leaves_out_are_fetched_by_themselves(farm: Farm, cloud: bool) -> None:
    async with serve(JiraServer(cloud=cloud)) as server:
        server.put("one")
        for n in range(120):
            server.comment("one", f"Remark {n}.")
        _, found = await bring(farm, server, "jira", user=USER)
    (issue,) = found.values()
    page = page_of(issue)
    assert all(f"Remark {n}." in page for n in range(120))


@pytest.mark.parametrize("cloud", [True, False], ids=["cloud", "server"])
async def test_fields_that_people_added_to_their_jira_are_read_under_their_names(farm: Farm, cloud: bool) -> None:
    async with serve(JiraServer(cloud=cloud)) as server:
        team, points, rank, criteria, unused, place = (
            server.add_field(*one)
            for one in (
                ("Team", "select"),
                ("Story points", "float"),
                ("Rank", "gh-lexo-rank"),
                ("Acceptance criteria", "textarea"),
                ("Unused", "textfield"),
                ("Place", "cascadingselect"),
            )
        )
        text = "It no longer sings, as https://example.org/silence says. " * 5
        server.put(
            "one",
            **{
                team: [{"value": "Grease"}, {"displayName": "Anna Berg"}],
                points: 5.0,
                rank: "0|i0001:",
                criteria: server.write(text),
                unused: None,
                place: {"value": "Hall", "child": {"value": "Mill 2"}},
            },
        )
        source, found = await bring(farm, server, "jira", user=USER)
    assert (await farm.look(source)).error is None
    issue = found["10001"]
    page = page_of(issue)
    assert "**Team:** Grease, Anna Berg  \n**Story points:** 5  \n**Place:** Hall / Mill 2  \n" in page
    assert "## Acceptance criteria\n\nIt no longer sings" in page
    assert "https://example.org/silence" in issue.text
    assert "Rank" not in page
    assert "Unused" not in page


def test_a_field_that_nobody_could_read_is_left_out() -> None:
    sprint = "com.atlassian.greenhopper.service.sprint.Sprint@1f2e[id=7,state=ACTIVE,name=Week 12,goal=]"
    assert read_own_value([sprint, {"name": "Week 13"}]) == "Week 12, Week 13"
    assert read_own_value({"progress": {"count": 3}}) == ""
    assert read_own_value([[[[None]]]]) == ""
    assert read_own_value(True) == "yes"


@pytest.mark.parametrize("cloud", [True, False], ids=["cloud", "server"])
async def test_a_file_of_an_issue_is_a_document_of_its_own_and_goes_with_it(farm: Farm, cloud: bool) -> None:
    async with serve(JiraServer(cloud=cloud)) as server:
        for name in ("one", "two"):
            server.put(name)
        first = server.attach("one", b"Grease the bearing.")
        server.attach("two", b"Leave the bearing alone.", "leave.txt")
        source, found = await bring(farm, server, "jira", user=USER)
        file = found[f"10001/attachment/{first}"]
        assert (file.urn, file.type, file.name) == (f"jira::MILL-1::{first}", "bugtracker", "notes.txt")
        assert f"file::MILL-1/{first}/notes.txt ATTACHED_TO id::MILL-1" in edges_of(file)
        await farm.work()
        urns = {"jira::MILL-1", "jira::MILL-2", "jira::MILL-1::500", "jira::MILL-2::501"}
        assert set(await farm.documents()) == urns
        calls = len(server.paths)
        await farm.poll(source)
        await farm.compare(source)
        assert not [path for path in server.paths[calls:] if "/secure/" in path]  # what is known is not fetched again
        late = server.attach("one", b"More.", "more.txt")
        await farm.poll(source)
        assert set(await farm.documents()) == {*urns, f"jira::MILL-1::{late}"}
        server.issues["one"]["fields"]["attachment"].pop(0)
        await farm.compare(source)
        assert set(await farm.documents()) == {*urns, f"jira::MILL-1::{late}"} - {"jira::MILL-1::500"}
        server.drop("one")
        await farm.compare(source, agreed=True)
        assert set(await farm.documents()) == {"jira::MILL-2", "jira::MILL-2::501"}


SECRET = "0123456789abcdef" * 2


def put_file(server: GitHubServer | GitLabServer, name: str, content: bytes) -> str:
    """Give the server a file; what stands in a text for it."""
    if isinstance(server, GitHubServer):
        path = f"/user-attachments/files/{len(server.files) + 1}/{name}"
        server.files[path] = content
        return f"[{name}]({server.url}{path})"
    server.files[f"/api/v4/projects/acme/tools/mill/uploads/{SECRET}/{name}"] = content
    return f"[{name}](/uploads/{SECRET}/{name})"


@pytest.mark.parametrize("kind", ["github", "gitlab"])
async def test_a_file_in_the_text_of_an_issue_is_a_document_of_its_own(farm: Farm, kind: str) -> None:
    options = {"repositories": "acme/mill"} if kind == "github" else {"projects": "acme/tools/mill"}
    async with serve(GitHubServer() if kind == "github" else GitLabServer()) as server:
        plan, gone = put_file(server, "plan.txt", b"Grease the bearing."), put_file(server, "gone.txt", b"x")
        server.put("one", f"See {plan}, {plan} and {gone}.")
        del server.files[next(path for path in server.files if path.endswith("gone.txt"))]
        source, found = await bring(farm, server, kind, **options)
        (file,) = [one for external, one in found.items() if "/attachment/" in external]
        issue = next(one for external, one in found.items() if "/attachment/" not in external)
        assert (file.type, file.name) == ("bugtracker", "plan.txt")
        assert file.urn.startswith(f"{issue.urn}::")
        assert sorted((await farm.states(source)).values()) == ["NEW", "NEW", "SET_ASIDE"]
        await farm.work()
        assert set(await farm.documents()) == {issue.urn, file.urn}
        calls = server.calls
        await farm.poll(source)
        await farm.compare(source)
        assert not [path for path in server.paths[calls:] if path.endswith("plan.txt")], "what is known is not fetched"
        server.put("one", "It is greased.")
        await farm.poll(source)
        await farm.compare(source, agreed=True)
        assert set(await farm.documents()) == {issue.urn}


@pytest.mark.parametrize(
    ("api", "site"),
    [("https://api.github.com", "https://github.com"), ("https://git.acme.test/api/v3", "https://git.acme.test")],
)
def test_files_of_github_lie_where_people_read_its_issues(api: str, site: str) -> None:
    assert name_site(api) == site
    files = match_files(site, "acme/mill")
    for path in ("user-attachments/assets/0a-1b", "user-attachments/files/1/a.pdf", "acme/mill/assets/1/0a-1b"):
        assert files.search(f"![x]({site}/{path})") is not None
    assert files.search(f"{site}/acme/mill/blob/main/files.md") is None
    assert files.search(f"{site}/acme/secret/files/1/a.pdf") is None, "the key may see more than who wrote the issue"
    assert files.search("https://elsewhere.test/user-attachments/files/1/a.pdf") is None


ASTRAY = ["..", "../../../../user", "%2e%2e/%2e%2e/repository", "..%2f..%2fuser", "%252e%252e/user", "a\\..\\b"]


@pytest.mark.parametrize("tail", ASTRAY)
def test_no_address_in_an_issue_leads_our_key_elsewhere(tail: str) -> None:
    site = "https://github.com"
    files = "/user-attachments/files/1"
    patterns = {f"{site}{files}": match_files(site, "acme/mill"), f"/uploads/{SECRET}": UPLOAD}
    for start, pattern in patterns.items():
        text = f"See {start}/{tail}, {start}/x/{tail} and {start}/plan.txt."
        places = [one.place for one in find_linked(text, pattern, "acme/mill#1", "acme/mill").values()]
        assert f"{start}/plan.txt" in places
        for place in places:
            path = unquote(unquote(place)).removeprefix(site)
            assert normpath(path) == path
            assert path.startswith(f"{start.removeprefix(site)}/")


async def test_a_file_that_cannot_be_had_or_is_too_large_does_not_hold_up_its_issue(farm: Farm) -> None:
    limited = farm.settings.documents.model_copy(update={"max_bytes": 1_000_000})
    farm.settings = farm.settings.model_copy(update={"documents": limited})
    async with serve(JiraServer()) as server:
        server.put("one")
        bad, _, good = (
            server.attach("one", b"x"),
            server.attach("one", b"x" * 1_000_001),
            server.attach("one", b"Good."),
        )
        server.fault = lambda request, call: web.Response(status=500) if f"/attachment/{bad}/" in request.path else None
        source = await farm.add("jira", url=server.url, user=USER, token="env:PROVIDER_TOKEN")
        await farm.by_hand(KINDS).poll(source)
        states = await farm.states(source)
        assert states.pop("10001") == "NEW"
        assert states.pop(f"10001/attachment/{good}") == "NEW"
        assert set(states.values()) == {"SET_ASIDE"}
        server.fault = lambda request, call: None
        await farm.by_hand(KINDS).compare(source)
        assert (await farm.states(source))[f"10001/attachment/{bad}"] == "NEW"


async def test_an_issue_that_moves_to_another_project_keeps_its_place_and_changes_its_name(farm: Farm) -> None:
    async with serve(JiraServer()) as server:
        server.put("one")
        source = await farm.add("jira", url=server.url, user=USER, token="env:PROVIDER_TOKEN")
        await farm.work()
        server.put("one")["key"] = "HR-5"
        await farm.poll(source)
        assert await farm.documents() == {"jira::HR-5": 1}
        await farm.compare(source)
        assert await farm.documents() == {"jira::HR-5": 1}


async def test_a_token_that_passes_for_a_stranger_deletes_nothing(farm: Farm) -> None:
    """Jira answers a search with an expired token as if nobody had asked: it shows what everybody may see."""
    async with serve(JiraServer()) as server:
        server.put("one")
        source, _ = await bring(farm, server, "jira", user=USER)
        server.issues.clear()
        denied = web.json_response(
            {"isLast": True, "issues": []}, headers={"X-Seraph-LoginReason": "AUTHENTICATED_FAILED"}
        )
        server.fault = lambda request, call: denied if request.path.endswith("/search/jql") else None
        await farm.by_hand(KINDS).compare(source)
        assert "does not know us any more" in str((await farm.look(source)).listing_error)
        assert [item.state for item in await farm.items(source)] == ["NEW"]


def test_a_search_has_bounds_that_mean_the_same_everywhere() -> None:
    options = JiraOptions.model_validate({"url": "https://jira.example.org", "projects": "A, B", "jql": "type = Bug"})
    since = "2024-03-01T00:00:00.000Z"
    assert write_jql(options, since) == (
        'updated >= 1709251200000 AND project in ("A", "B") AND (type = Bug) ORDER BY updated ASC, key ASC'
    )


async def test_an_issue_of_github_tells_all_that_was_said_and_done(farm: Farm) -> None:
    async with serve(GitHubServer()) as server:
        server.put("one", "It sings, see #7, acme/wheel#3 and MILL-4.", milestone=None)
        server.comment("one", "Greased.", BOB)
        server.add_event("one", "labeled", label={"name": "bearing", "color": "ff0000"})
        server.add_event("one", "renamed", rename={"from": "Noise", "to": "About one"})
        server.add_event("one", "closed", commit_id=HASH, state_reason="completed")
        server.issues["one"] |= {"state": "closed", "state_reason": "completed"}
        _, found = await bring(farm, server, "github", repositories="acme/mill")
    (issue,) = found.values()
    page = page_of(issue)
    assert (issue.urn, issue.type) == ("github::acme/mill#1", "bugtracker")
    assert "**Status:** closed (completed)" in page
    assert "## bob, 2024-03-01 00:00 UTC\n\nGreased." in page
    assert "bob: added the label bearing\n" in page
    assert "bob: renamed: Noise → About one\n" in page
    assert {
        "person::anna REPORTED issue::acme/mill#1",
        "person::bob COMMENTED_ON issue::acme/mill#1",
        "issue::acme/mill#1 ASSIGNED_TO person::bob",
        "issue::acme/mill#1 IN_PROJECT project::acme/mill",
        "issue::acme/mill#1 HAS_LABEL label::bearing",
        "issue::acme/mill#1 MENTIONS issue::acme/mill#7",
        "issue::acme/mill#1 MENTIONS issue::acme/wheel#3",
        "issue::acme/mill#1 MENTIONS id::MILL-4",
        f"issue::acme/mill#1 MENTIONS commit::{HASH}::acme/mill",
    } <= edges_of(issue)


async def test_a_pull_request_has_its_branches_reviews_and_remarks(farm: Farm) -> None:
    async with serve(GitHubServer()) as server:
        server.propose("one", "grease")
        server.remark("one", "src/bearing.py", 12, "Why so much?")
        server.review("one", "approved", "Good.")
        server.add_event("one", "merged", commit_id=HASH)
        server.issues["one"]["pull_request"]["merged_at"] = "2024-03-01T11:00:00Z"
        _, found = await bring(farm, server, "github", repositories="acme/mill")
    (request,) = found.values()
    page = page_of(request)
    assert "**Type:** pull request  \n**Status:** merged" in page
    assert "**Branches:** grease → main" in page
    assert "on src/bearing.py:12\n\nWhy so much?" in page
    assert "on a review (approved)\n\nGood." in page
    assert "bob: merged" in page
    edges = edges_of(request)
    assert "issue::acme/mill#1 ON_BRANCH branch::acme/mill/grease" in edges
    assert f"issue::acme/mill#1 MENTIONS commit::{HASH}::acme/mill" in edges


async def test_an_issue_that_belongs_to_another_repository_now_is_gone_here(farm: Farm) -> None:
    async with serve(GitHubServer()) as server:
        for name in ("one", "two"):
            server.put(name)
        source, _ = await bring(farm, server, "github", repositories="acme/mill")
        server.drop("one")
        moved = web.Response(status=301, headers={"Location": "/repositories/2/issues/1"})
        server.fault = lambda request, call: moved if request.path.endswith("/issues/1") else None
        await farm.by_hand(KINDS).compare(source)
        await farm.work()
        assert await farm.states(source) == {"acme/mill#1": "DELETED", "acme/mill#2": "INDEXED"}


@pytest.mark.parametrize(
    "limit",
    [
        web.Response(status=403, text='{"message": "You have exceeded a secondary rate limit."}'),
        web.Response(status=403, headers={"X-RateLimit-Remaining": "0"}),
        web.Response(status=403, headers={"Retry-After": "60"}),
    ],
    ids=["words", "header", "pause"],
)
async def test_a_refusal_of_github_that_is_a_limit_is_waited_for(farm: Farm, limit: web.Response) -> None:
    async with serve(GitHubServer()) as server:
        server.put("one")
        server.fault = lambda request, call: limit if request.path.endswith("timeline") else None
        source, _ = await bring(farm, server, "github", repositories="acme/mill")
        looked = await farm.look(source)
        assert looked.waits_until is not None
        assert looked.failures == 0


async def test_a_merge_request_of_gitlab_tells_all_that_was_said_and_done(farm: Farm) -> None:
    async with serve(GitLabServer()) as server:
        branches = {"source_branch": "grease", "target_branch": "main", "merge_commit_sha": HASH}
        server.put("one", "Closes #7, follows !3.", sign="!", **branches)
        server.comment("one", "Why so much?", position={"new_path": "bearing.py", "new_line": 12})
        server.comment("one", "changed the description", system=True)
        server.close("one")
        _, found = await bring(farm, server, "gitlab", projects="acme/tools/mill")
    (request,) = found.values()
    page = page_of(request)
    assert (request.urn, request.type) == ("gitlab::acme/tools/mill!1", "bugtracker")
    assert "**Type:** merge request  \n**Status:** closed" in page
    assert "on bearing.py:12\n\nWhy so much?" in page
    assert "Bob Miller: changed the description\n" in page
    assert "Anna Berg: closed\n" in page
    assert "Anna Berg: added the label done\n" in page
    key = "issue::acme/tools/mill!1"
    assert {
        f"person::anna berg REPORTED {key}",
        f"{key} HAS_LABEL label::done",
        f"{key} MENTIONS issue::acme/tools/mill#7",
        f"{key} MENTIONS issue::acme/tools/mill!3",
        f"{key} MENTIONS commit::{HASH}::acme/tools/mill",
        f"{key} ON_BRANCH branch::acme/tools/mill/grease",
    } <= edges_of(request)


async def test_a_project_without_issues_has_merge_requests_alone(farm: Farm) -> None:
    async with serve(GitLabServer(disabled="#")) as server:
        server.put("one", sign="!")
        source, found = await bring(farm, server, "gitlab", projects="7")
        assert (await farm.look(source)).error is None
    assert [one.urn for one in found.values()] == ["gitlab::acme/tools/mill!1"]


async def test_links_of_an_issue_and_its_comments_are_written_down_with_the_text_around(farm: Farm) -> None:
    async with serve(GitHubServer()) as server:
        server.put("one", "As [the maker](https://maker.example/grease) says.")
        server.comment("one", "Compare https://library.example/bearings for more.")
        await farm.add("github", url=server.url, token="env:PROVIDER_TOKEN", repositories="acme/mill")
        await farm.work()
    rows = await farm.rows(
        "SELECT l.url, p.urn, p.label, p.context FROM link l JOIN link_place p ON p.link = l.id ORDER BY l.url"
    )
    assert [(row.url, row.urn, row.label) for row in rows] == [
        ("https://library.example/bearings", "github::acme/mill#1", ""),
        ("https://maker.example/grease", "github::acme/mill#1", "the maker"),
    ]
    assert "Compare https://library.example/bearings for more." in rows[0].context


async def test_the_same_issue_of_two_sources_is_one_document_that_follows_its_changes(farm: Farm) -> None:
    async with serve(GitHubServer()) as server:
        server.put("one")
        options = {"url": server.url, "token": "env:PROVIDER_TOKEN", "repositories": "acme/mill"}
        first = await farm.add("github", **options)
        second = await farm.add("github", name="two", **options)
        await farm.work()
        assert await farm.documents() == {"github::acme/mill#1": 1}
        server.put("one", "Something else.")
        await farm.poll(first)
        assert set(await farm.documents()) == {"github::acme/mill#1"}
        await farm.poll(second)
        assert set(await farm.documents()) == {"github::acme/mill#1"}
        (item,), (other,) = await farm.items(first), await farm.items(second)
    assert item.document == other.document
    texts = await farm.rows(
        "SELECT convert_from(p.bytes, 'utf8') AS text FROM document d JOIN blob b ON b.hash = d.hash"
        " JOIN blob_piece p ON p.blob = b.id WHERE d.id = %(id)s",
        id=item.document,
    )
    assert "Something else." in texts[0].text  # what is new is not lost


def test_names_of_issues_are_told_from_other_signs() -> None:
    text = "See #3, group/sub/project!4, PROJ-5, !6, but not C#7, a!b or &#39;."
    assert find_mentions(text, "acme/mill!1", "acme/mill") == [
        "PROJ-5",
        "acme/mill#3",
        "group/sub/project!4",
        "acme/mill!6",
    ]
    assert find_mentions(text, "MILL-1", "MILL") == ["PROJ-5"]


@pytest.mark.parametrize(
    ("url", "more"),
    [
        ("http://jira.example.org", {"token": "env:X"}),
        ("https://anna:secret@jira.example.org", {}),
        ("https://jira.example.org?token=secret", {}),
        ("ftp://jira.example.org", {}),
        ("https://jira.example.org", {"token": "secret"}),
        ("https://jira.example.org", {"user": "anna"}),
        ("https://jira.example.org", {"jql": "type = Bug order  by created"}),
        ("https://jira.example.org", {"projects": 'A") OR ("B'}),
    ],
)
def test_options_that_tell_a_secret_or_break_the_search_are_refused(url: str, more: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JiraOptions.model_validate({"url": url, **more})


def test_a_repository_is_an_owner_and_a_name() -> None:
    assert GitHubOptions(repositories="acme/mill").url == "https://api.github.com"
    for name in ("mill", "https://github.com/acme/mill", "acme/mill/issues", "../x/y"):
        with pytest.raises(ValidationError):
            GitHubOptions(repositories=name)


def test_odd_fields_do_not_stop_the_rest_of_an_issue() -> None:
    issue = {
        "title": "One",
        "author": 7,
        "labels": {"a": 1},
        "assignees": [None, "x"],
        "milestone": [],
        "references": 3,
    }
    whole = {"issue": issue, "notes": ["x", {"body": 4}], "states": None, "labels": [{"label": None}]}
    found = describe_gitlab(Fetched("one", "acme/mill#1", {}, orjson.dumps(whole)))
    assert found.urn == "gitlab::acme/mill#1"
    assert ANNA["login"] not in page_of(found)


@pytest.mark.parametrize("depth", [64, 300])
async def test_an_issue_of_jira_that_is_nested_too_deep_keeps_no_other_away(farm: Farm, depth: int) -> None:
    tree: dict[str, Any] = {"type": "paragraph", "content": [{"type": "text", "text": "deep"}]}
    for _ in range(depth):
        tree = {"type": "bulletList", "content": [{"type": "listItem", "content": [tree]}]}
    async with serve(JiraServer()) as server:
        for n in range(3):
            server.put(f"issue {n}")
        server.put("deep", description={"type": "doc", "version": 1, "content": [tree]})
        source, found = await bring(farm, server, "jira", user=USER)
        states = await farm.states(source)
    assert len(found) == 3
    assert sorted(states.values()) == ["NEW", "NEW", "NEW", "SET_ASIDE"]
