"""Knowledge over HTTP: hits say why, nodes lead to nodes, texts of programs are kept whole, and clients stay apart."""

import asyncio
import hashlib
import hmac
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from pydantic import SecretStr
from serving import Web, serve

from gristmill.db import Database
from gristmill.documents import IngestText
from gristmill.documents.ingest import ingest_text
from gristmill.errors import Transient
from gristmill.models import Entity, Extraction, FakeEmbedder, Relation, RuleSummariser, TextPassage
from gristmill.queue import Handler, Worker, bind, on, set_queue
from gristmill.settings import FetchSettings, QueueSettings, Settings, WebSettings
from gristmill.sources import Fetcher, Posted
from gristmill.tasks import SendCallback
from gristmill.web.api import ingest as ingest_module
from gristmill.web.callbacks import send_callback

OWN, OTHER = "acme manager", "globex manager"
TEXT = (
    "Anna Berg of Nordwind GmbH signed the contract NW-2024-017 in Hamburg. The contract is worth 12,000 euros. "
    "It begins on 3 May 2024. The weather was fine that day. Nordwind GmbH delivers flour under the contract."
)


@pytest.fixture
async def web(db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Web]:
    """The finder's model is a fake one: no model is loaded for a few words."""
    async with serve(db, Settings(data=tmp_path)) as opened:
        monkeypatch.setattr(type(opened.app.state.services.finder), "embedders", [FakeEmbedder()])
        yield opened


async def post(web: Web, path: str, body: Any, caller: str = OWN, status: int = 201, **params: Any) -> Any:
    answer = await web.client(caller).post(f"/api/kb{path}", json=body, params=params)
    assert answer.status_code == status, answer.text
    return answer.json()


async def get(web: Web, path: str, caller: str = OWN, **params: Any) -> Any:
    answer = await web.client(caller).get(f"/api/kb{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def chunk(web: Web, content: str, node: str = "person::anna berg", urn: str = "wiki:1", caller: str = OWN) -> int:
    body = {"documentId": urn, "content": content, "nodeKey": node}
    return (await post(web, "/chunks", body, caller))["chunk"]


# --- search


async def test_a_hit_says_where_it_stands_and_why(web: Web) -> None:
    await chunk(web, "Anna Berg grinds flour in Hamburg.")
    found = await post(web, "/search", {"query": "flour hamburg", "alpha": 0}, status=200)
    (hit,) = found["items"]
    assert (hit["urn"], hit["page"], hit["client"], hit["text"]) == (
        "wiki:1",
        1,
        "acme",
        "Anna Berg grinds flour in Hamburg.",
    )
    assert hit["lexical"] > 0
    assert "of the best possible" in hit["why"]
    assert [hit["snippet"]["text"][a:b] for a, b in hit["snippet"]["highlights"]] == ["flour", "Hamburg"]


@pytest.mark.parametrize(
    "wrong", [{}, {"query": "a", "alpha": 2}, {"query": "a", "maxResults": 0}, {"query": "a", "nonsense": 1},
              {"query": "a", "after": "2026-01-01T00:00:00"}, {"query": "a\0"}, {"query": "a", "expand": 7}]
)  # fmt: skip
async def test_a_wrong_question_gets_a_sentence(web: Web, wrong: dict[str, Any]) -> None:
    assert (await post(web, "/search", wrong, status=422))["detail"]


async def test_a_client_finds_nothing_of_another(web: Web) -> None:
    await chunk(web, "Anna Berg grinds flour in Hamburg.")
    assert (await post(web, "/search", {"query": "flour"}, OTHER, status=200))["items"] == []
    assert (await post(web, "/search", {"query": "flour", "client": "acme"}, OTHER, status=404))["status"] == 404
    for path, params in (
        ("/node", {"key": "person::anna berg"}),
        ("/neighbours", {"key": "person::anna berg"}),
        ("/paths", {"source": "person::anna berg", "target": "person::anna berg"}),
    ):
        answer = await web.client(OTHER).get(f"/api/kb{path}", params=params)
        assert answer.status_code == 404, path
    assert (await get(web, "/nodes", OTHER, name="anna"))["items"] == []
    assert (await get(web, "/nodes", "operator", name="anna", client="acme"))["items"][0]["name"] == "anna berg"


# --- the graph


async def test_nodes_and_edges_are_stated_with_evidence_and_read_again(web: Web) -> None:
    one = await chunk(web, "Anna Berg runs the mill.")
    await post(
        web,
        "/nodes",
        {"nodeKey": "org::Nordwind", "nodeType": "org", "properties": {"city": "Hamburg"}, "ragChunkIds": [one]},
    )
    edge = {"fromKey": "person::anna berg", "toKey": "org::nordwind", "edgeType": "runs", "evidence": [one]}
    assert await post(web, "/relationships", edge) == {
        "source": "person::anna berg",
        "type": "RUNS",
        "target": "org::nordwind",
    }
    node = await get(web, "/node", key="org::nordwind")
    assert (node["properties"], node["documents"]) == ({"city": "Hamburg"}, 1)
    assert [(n["key"], n["outward"]) for n in node["neighbours"]] == [("person::anna berg", False)]
    assert node["evidence"][0]["chunk"] == one
    around = await get(web, "/neighbours", key="person::anna berg")
    assert [step["type"] for step in around["edges"]] == ["RUNS"]
    (step,) = (await get(web, "/paths", source="org::nordwind", target="person::anna berg"))["steps"]
    assert step["shown_by"][0]["chunk"] == one
    (shown,) = (await get(web, "/evidence", source="person::anna berg", type="RUNS", target="org::nordwind"))["items"]
    assert "Anna Berg" in shown["snippet"]
    document = shown["document"]
    assert (await get(web, f"/documents/{document}/graph"))["total"] == 2
    assert (await web.client(OTHER).get(f"/api/kb/documents/{document}/graph")).status_code == 404


async def test_nobody_states_on_the_chunks_of_another(web: Web) -> None:
    one = await chunk(web, "Anna Berg runs the mill.")
    node = {"nodeKey": "org::x", "nodeType": "org", "ragChunkIds": [one]}
    assert (await post(web, "/nodes", node, OTHER, status=404))["detail"].startswith(f"There is no chunk {one}")
    edge = {"fromKey": "person::a", "toKey": "org::b", "edgeType": "runs", "evidence": [one]}
    await post(web, "/relationships", edge, OTHER, status=404)
    await post(web, "/relationships", {**edge, "evidence": []}, status=422)
    await post(web, "/nodes", node, "acme viewer", status=403)


async def test_a_merge_is_undone_by_its_client_alone(web: Web) -> None:
    await chunk(web, "Anna Berg runs the mill.")
    await chunk(web, "A. Berg rests.", "person::a. berg", "wiki:2")
    done = await post(web, "/merges", {"alias": "person::a. berg", "key": "person::anna berg"})
    assert done["mentions"] == 1
    assert (await get(web, "/node", key="a. berg"))["chunks"] == 2
    assert [one["id"] for one in (await get(web, "/merges"))["items"]] == [done["id"]]
    assert (await get(web, "/merges", OTHER))["items"] == []
    assert (await web.client(OTHER).delete(f"/api/kb/merges/{done['id']}")).status_code == 404
    assert (await web.client("acme/one manager").delete(f"/api/kb/merges/{done['id']}")).status_code == 403
    assert (await web.client(OWN).delete(f"/api/kb/merges/{done['id']}")).status_code == 200
    assert (await get(web, "/node", key="person::a. berg"))["chunks"] == 1
    assert (await web.client(OWN).delete(f"/api/kb/merges/{done['id']}")).status_code == 404


# --- whole texts


class FakeExtractor:
    """Finds one name and one fact in everything."""

    version = "test"
    batch = 2
    waits = timedelta()

    async def extract(self, passages: Sequence[TextPassage]) -> Sequence[Extraction | Exception]:
        anna, mill = Entity("person::anna berg", "person", "Anna Berg"), Entity("org::nordwind", "org", "Nordwind")
        return [Extraction((anna, mill), (Relation(anna.key, "RUNS", mill.key),)) for _ in passages]


class FakeFetcher(Fetcher):
    """Keeps what would be posted; fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        super().__init__(FetchSettings())
        self.posts: list[tuple[str, Any, str, Any]] = []
        self.failures = failures

    async def post(self, url: str, json: Any, *, key: str, headers: Any = None) -> Posted:
        self.posts.append((url, json, key, headers))
        if len(self.posts) <= self.failures:
            raise Transient("it is busy")
        return Posted(204, b"")


def handlers_of(db: Database, fetcher: Fetcher) -> dict[str, Handler]:
    extractor, embedders = FakeExtractor(), [FakeEmbedder()]
    keep = partial(ingest_text, db=db, embedders=embedders, extractor=extractor, summariser=RuleSummariser())
    settings = WebSettings(callback_key=SecretStr("sesame"))
    tell = partial(send_callback, db=db, fetcher=fetcher, settings=settings)
    return dict(bind(on(IngestText, keep), on(SendCallback, tell)))


async def work(db: Database, fetcher: Fetcher | None = None) -> None:
    handlers = handlers_of(db, fetcher or FakeFetcher())
    async with db.transaction() as tx:
        await set_queue(tx, "web", retry_base="10ms")
    await Worker(db, handlers, QueueSettings(), until_idle=True).run()


async def ingest(web: Web, status: int = 200, caller: str = OWN, body: Any = None, **params: Any) -> httpx.Response:
    wish = {"content": TEXT, "sourceUrn": "mail:7", "title": "Contract", "metadata": {"from": "anna"}, **(body or {})}
    answer = await web.client(caller).post("/api/kb/ingest/full", json=wish, params=params)
    assert answer.status_code == status, answer.text
    return answer


async def test_a_text_is_kept_while_the_caller_waits(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "LONELY", 60.0)
    call = asyncio.ensure_future(ingest(web))
    while not await pending(web):  # noqa: ASYNC110 the request is on its way
        await asyncio.sleep(0.01)
    await work(web.db)
    told = (await call).json()
    assert (told["urn"], told["chunks"], told["nodes"], told["edges"]) == ("mail:7", 1, 2, 1)
    assert told["entities"][0]["key"] == "person::anna berg"
    assert told["relationships"] == [{"from_key": "person::anna berg", "edge_type": "RUNS", "to_key": "org::nordwind"}]
    assert "contract" in told["summary"]
    assert all(sentence in TEXT for sentence in told["summary"].split(". ")[:1])
    (hit,) = (await post(web, "/search", {"query": "flour contract", "alpha": 0}, status=200))["items"]
    assert hit["document"] == told["document"]
    assert (await get(web, "/node", key="org::nordwind"))["chunks"] == 1
    detail = await web.client(OWN).get(f"/api/documents/{told['document']}")
    assert detail.json()["metadata"]["from"] == "anna"


async def test_a_text_gets_neutral_hints_with_their_words(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "LONELY", 60.0)
    content = "Could you please send the signed contract by 3 June 2026?\n\n> Could you call me by 1 May 2026?"
    about = {"content": content, "knowledgeType": "email", "writtenAt": "2026-05-04T09:00:00Z"}
    call = asyncio.ensure_future(ingest(web, body=about))
    while not await pending(web):  # noqa: ASYNC110 the request is on its way
        await asyncio.sleep(0.01)
    await work(web.db)
    hints = (await call).json()["hints"]
    assert {name: hint["value"] for name, hint in hints.items()} == {
        "hasActionableContent": True,
        "isAssignedToMe": False,
        "hasFutureDeadline": True,
        "suggestedDeadline": "2026-06-03T23:59:00Z",
        "urgency": "normal",
    }
    for hint in hints.values():
        for one in hint["evidence"]:
            assert one["where"] == "content"
            assert content[one["start"] : one["stop"]] == one["words"]
    assert "3 June 2026" in hints["suggestedDeadline"]["evidence"][0]["words"]


async def pending(web: Web) -> int:
    async with web.db.transaction() as tx:
        return await tx.value("SELECT count(*) FROM task WHERE kind = 'documents.ingest'")


async def test_nobody_waits_for_ever(web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "PATIENCE", 0.0)
    assert (await ingest(web, 202)).json()["status"] == "pending"
    monkeypatch.undo()
    monkeypatch.setattr(ingest_module, "LONELY", 0.0)  # nobody works here
    assert (await ingest(web, 202)).json()["status"] == "pending"


async def test_a_callback_is_signed_and_tried_again_with_the_same_key(web: Web) -> None:
    task = (await ingest(web, 202, body={"callbackUrl": "https://example.org/hook?s=1"}, **{"async": 1})).json()["task"]
    fetcher = FakeFetcher(failures=1)
    await work(web.db, fetcher)
    first, second = fetcher.posts
    assert first == second
    url, told, key, headers = first
    assert (url, told["task"], told["status"], told["result"]["urn"]) == (
        "https://example.org/hook?s=1",
        task,
        "completed",
        "mail:7",
    )
    assert key.startswith("gristmill-")
    signature = hmac.new(b"sesame", orjson.dumps(told), hashlib.sha256).hexdigest()
    assert headers == {"X-Gristmill-Signature": f"sha256={signature}"}


@pytest.mark.parametrize(
    "callback",
    [
        "http://127.0.0.1/x",
        "http://169.254.169.254/latest",
        "https://localhost/x",
        "ftp://example.org/x",
        "nonsense",
        "http://[::1]/",
    ],
)
async def test_a_callback_never_leads_inside(web: Web, callback: str) -> None:
    answer = await ingest(web, 422, body={"callbackUrl": callback}, **{"async": 1})
    assert answer.json()["detail"]
    assert await pending(web) == 0


@pytest.mark.parametrize(
    "wrong", [{"content": " "}, {"content": "a\0b"}, {"sourceUrn": " "}, {"writtenAt": "2026-01-01T00:00:00"},
              {"metadata": {"a": "\0"}}, {"content": ""}]
)  # fmt: skip
async def test_a_text_that_cannot_be_kept_is_refused_at_once(web: Web, wrong: dict[str, Any]) -> None:
    await ingest(web, 422, body=wrong)
    assert await pending(web) == 0


async def test_the_urn_of_a_file_is_the_files_own(web: Web) -> None:
    files = [("files", ("a.md", b"Good day."))]
    await web.client(OWN).post("/api/documents", files=files, params={"urn": "mail:7"})
    assert "was read from a file" in (await ingest(web, 422)).json()["detail"]
    assert (await ingest(web, 202, OTHER, **{"async": 1})).json()["task"]  # another client's is another one


async def test_a_project_writes_for_itself_alone(web: Web) -> None:
    await ingest(web, 404, "acme/one manager", body={"client": "acme", "project": "two"})
    await ingest(web, 403, "acme viewer")
    task = (await ingest(web, 202, "acme/one manager", **{"async": 1})).json()["task"]
    async with web.db.transaction() as tx:
        scope = await tx.one(
            "SELECT s.client, s.project FROM task t JOIN scope s ON s.id = t.scope WHERE t.id = %(id)s", id=task
        )
    assert scope == ("acme", "one")
