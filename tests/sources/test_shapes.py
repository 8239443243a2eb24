"""The fakes answer as the providers say that they answer: their answers fit the published descriptions.

Descriptions of Jira and Confluence lie in the public collections (`GRISTMILL_CORPORA`, or ../shared/corpora), that of
GitHub is the npm package @octokit/openapi, which `make test` fetches. GitLab publishes none for issues: its fake
follows the examples of its documentation.
"""

import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluence_server import USER, ConfluenceServer
from fake_server import FakeServer, Said, serve
from farm import Farm, a_farm
from github_server import BOB, GitHubServer
from jira_server import JiraServer
from jsonschema import Draft7Validator

from gristmill.db import Database
from gristmill.sources.kinds import KINDS

CORPORA = Path(os.environ.get("GRISTMILL_CORPORA", Path(__file__).parents[3] / "shared" / "corpora"))
PACKAGES = Path(os.environ.get("GRISTMILL_OPENAPI", Path(sys.prefix) / "openapi"))
GITHUB = PACKAGES / "api.github.com.json"
SCHEMAS = "#/components/schemas/"
COMBINED = ("allOf", "anyOf", "oneOf")


def load(path: Path) -> dict[str, Any]:
    if not path.exists():
        pytest.skip(f"there is no description at {path}")
    return orjson.loads(path.read_bytes())


class Described:
    """The answers that an OpenAPI document promises, as schemas in which nothing is allowed that it does not name."""

    def __init__(self, document: dict[str, Any]) -> None:
        self._document = document
        self._definitions: dict[str, Any] = {}

    def find(self, said: Said) -> Any:
        """The schema of an answer; None if the document does not know the question."""
        answers = self._document["paths"].get(said.path, {}).get(said.method.lower(), {}).get("responses", {})
        return answers.get(str(said.status), {}).get("content", {}).get("application/json", {}).get("schema")

    def check(self, schema: Any, body: Any) -> list[str]:
        """What is wrong with an answer."""
        whole = self._convert(schema)
        errors = Draft7Validator({**whole, "definitions": self._definitions}).iter_errors(body)
        return [f"{error.json_path}: {error.message[:300]}" for error in errors]

    def _convert(self, schema: Any, *, within: bool = False) -> Any:
        """As a JSON schema: OpenAPI says `nullable` where that has a type null."""
        if not isinstance(schema, dict):
            return schema
        if "$ref" in schema:
            return self._refer(schema["$ref"], within)
        found = {
            key: [self._convert(one, within=key == "allOf") for one in value] if key in COMBINED else value
            for key, value in schema.items()
        }
        if "properties" in found:
            found["properties"] = {name: self._convert(one, within=within) for name, one in found["properties"].items()}
            if not within:
                found.setdefault("additionalProperties", False)
        if isinstance(found.get("additionalProperties"), dict):
            found["additionalProperties"] = self._convert(found["additionalProperties"])
        if "items" in found:
            found["items"] = self._convert(found["items"])
        return {"anyOf": [{"type": "null"}, found]} if found.pop("nullable", False) else found

    def _refer(self, reference: str, within: bool) -> dict[str, str]:
        name = reference.removeprefix(SCHEMAS) + ("+" if within else "")
        if name not in self._definitions:
            self._definitions[name] = True  # until it is there: schemas name each other in circles
            schema = self._document["components"]["schemas"][name.removesuffix("+")]
            self._definitions[name] = self._convert(schema, within=within)
        return {"$ref": f"#/definitions/{name}"}


@pytest.fixture
async def farm(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Farm]:
    monkeypatch.setenv("PROVIDER_TOKEN", "good")
    async with a_farm(db, tmp_path) as opened:
        yield opened


async def ask_all(farm: Farm, server: FakeServer, kind: str, gone: str, **options: str) -> list[Said]:
    """All that a connector asks for: changes, one item by itself, ids, and whether it is well."""
    source = await farm.add(kind, url=server.url, token="env:PROVIDER_TOKEN", **options)
    hands = farm.by_hand(KINDS)
    await hands.poll(source)
    async with hands.opener.open(source) as connector:
        await connector.check()
        for item in await farm.items(source):
            assert [one async for one in connector.fetch([item.external])], item.external
        assert [one async for one in connector.fetch([gone])] == []
    assert (await farm.look(source)).error is None
    return server.said


def compare(described: Described, said: list[Said]) -> set[str]:
    """Compare all answers that are described; the paths of the others."""
    unknown: set[str] = set()
    for one in said:
        schema = described.find(one)
        if schema is None:
            unknown.add(one.path)
        else:
            assert described.check(schema, one.body) == [], one.path
    return unknown


async def test_the_fake_jira_answers_as_jira_does(farm: Farm) -> None:
    document = load(CORPORA / "openapi" / "jira-platform-v3.json")
    described = Described(document)
    async with serve(JiraServer()) as server:
        server.put("one", issuelinks=[])
        server.comment("one", "Hello.")
        server.move("one", "Open", "Done")
        server.put("two", **{server.add_field("Team"): "Grease"})
        server.attach("two", b"Grease the bearing.")
        for n in range(30):
            server.comment("two", f"Remark {n}.")
        said = await ask_all(farm, server, "jira", "999", user=USER)
    for one in said:
        one.path = one.path.replace("/api/2/", "/api/3/")
    unknown = compare(described, [one for one in said if one.status == 200])
    newer = {"/rest/api/3/search/jql", "/rest/api/3/search/approximate-count", "/rest/api/3/issue/bulkfetch"}
    assert unknown <= newer  # this description is older than these three
    for issue in (issue for one in said if one.path in newer for issue in one.body.get("issues", [])):
        assert described.check({"$ref": f"{SCHEMAS}IssueBean"}, issue) == []


async def test_the_fake_confluence_answers_as_confluence_does(farm: Farm) -> None:
    described = Described(load(CORPORA / "openapi" / "confluence-v2.json"))
    async with serve(ConfluenceServer()) as server:
        server.put("above", labels=["grease"])
        server.put("one", parent="1001")
        server.attach("notes", "one", b"Grease the bearing.")
        server.comment("below", "one", "Who greases it?")
        server.comment("beside", "one", "Which one?", "the bearing")
        said = await ask_all(farm, server, "confluence", "page/999", user=USER, spaces="MILL")
    for one in said:
        one.path = one.path.removeprefix("/api/v2").replace("{comment_id}", "{comment-id}")
    assert compare(described, [one for one in said if one.status == 200]) == set()


async def test_the_fake_github_answers_as_github_does(farm: Farm) -> None:
    described = Described(load(GITHUB))
    async with serve(GitHubServer()) as server:
        server.put("one")
        server.comment("one", "Hello.")
        label = {"name": "bearing", "color": "ff0000"}
        server.add_event("one", "labeled", label=label)
        server.add_event("one", "assigned", assignee=BOB)
        server.add_event("one", "renamed", rename={"from": "Noise", "to": "About one"})
        server.add_event("one", "closed", state_reason="completed")
        server.propose("two", "grease")
        server.remark("two", "src/bearing.py", 12, "Why?")
        server.review("two", "approved", "Good.")
        said = await ask_all(farm, server, "github", "acme/mill#999", repositories="acme/mill")
    assert compare(described, [one for one in said if one.status == 200]) == set()
