"""Which hits are evidence: what people wrote, and not what was noted of it; and where the first of them lead."""

from typing import Any, cast

import pytest
from evidence import store_page

from graph_shelf import contribute, rows
from gristmill.agents import Answerer
from gristmill.agents.ask.question import read_question
from gristmill.agents.ask.retrieval import FIRST, retrieve
from gristmill.db import Database
from gristmill.ids import ChunkId, DocumentId
from gristmill.knowledge import Finder, Hit, Hits, Snippet
from gristmill.models import FakeEmbedder
from gristmill.scopes import GLOBAL
from gristmill.settings import AskSettings, Settings


def make_hit(number: int, urn: str, *, part_of: str | None = None, score: float = 0.5, type_: str = "markdown") -> Hit:
    text = "The miller of Velmar grinds rye."
    return Hit(
        score=score,
        lexical=score,
        bm25=1.0,
        similarity=score,
        chunk=ChunkId(number),
        document=DocumentId(number),
        name=f"{number}.md",
        title=None,
        type=type_,
        urn=urn,
        part_of=part_of,
        version=1,
        client="",
        project="",
        page=1,
        start=0,
        stop=len(text),
        kind="text",
        language="en",
        heading="",
        text=text,
        snippet=Snippet(text, ()),
    )


class FoundBefore:
    """A finder that has these hits for every query, as many as are asked for."""

    def __init__(self, *hits: Hit) -> None:
        self.hits = hits

    async def find(self, query: str, scope: Any, *, limit: int, **_: Any) -> Hits:
        return Hits(self.hits[:limit])


async def list_urns(*hits: Hit) -> list[str]:
    found = await retrieve(cast(Finder, FoundBefore(*hits)), GLOBAL, read_question("who grinds rye", [], None))
    return [one.hit.urn for one in found.hits]


async def test_what_was_noted_of_a_stored_document_is_no_evidence_beside_it() -> None:
    note = make_hit(1, "atom:document::file:///a.md", part_of="a.md", score=0.9)
    assert await list_urns(note, make_hit(2, "file:///a.md")) == ["file:///a.md"]


async def test_what_a_person_added_has_no_other_text_and_stays() -> None:
    assert await list_urns(make_hit(1, "atom:task:7")) == ["atom:task:7"]


async def test_notes_do_not_push_documents_out() -> None:
    notes = [make_hit(n, f"atom:{n}", part_of="a.md", score=0.9) for n in range(1, FIRST // 2 + 1)]
    documents = [make_hit(100 + n, f"file:///{n}.md") for n in range(FIRST)]
    assert len(await list_urns(*notes, *documents)) == FIRST


async def test_what_an_agent_wrote_is_no_evidence() -> None:
    """A mail could otherwise have an agent write down what is cited later as if somebody had said it."""
    written = [
        make_hit(n, f"agent:{n}", type_=type_, score=0.9) for n, type_ in enumerate(("agent", "fact", "draft"), 2)
    ]
    assert await list_urns(*written, make_hit(1, "file:1")) == ["file:1"]


# --- where the first hits lead

NOISE = 30  # people who learned a trade


async def store_mill(db: Database) -> None:
    """The report names somebody by address alone; a mail tells whose address it is."""
    address = "p.raman@weirwheel.example"
    report = await store_page(db, f"The sluice of the mill was mended by {address}.", name="report.md")
    mail = await store_page(db, f"From: Priya Raman <{address}>", name="mail.eml")
    await store_page(db, "Priya Raman learned the trade in Leeds.", name="life.md")
    for number in range(NOISE):
        await store_page(db, f"Somebody {number} learned the trade in town {number}, with a person from there.")
    for document, fact in ((report, address), (mail, f"Priya Raman -HAS_ADDRESS-> {address}")):
        ((chunk,),) = await rows(db, "SELECT id FROM chunk WHERE document = %s", [document])
        await contribute(db, chunk, fact)


async def test_an_edge_of_the_graph_leads_to_a_name_that_the_first_hit_does_not_have(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store_mill(db)
    question = "Where did the person who mended the sluice learn the trade?"
    monkeypatch.setattr(Finder, "embedders", [FakeEmbedder()])  # no model is loaded for a few words
    async with Finder(db, Settings()) as finder:
        without = await retrieve(finder, GLOBAL, read_question(question), limit=AskSettings().passages)
        known, _ = await Answerer(db, finder, AskSettings(), None, "").find(question, GLOBAL)
    assert "life.md" not in [one.hit.name for one in without.hits]
    (found,) = [one for one in known.passages if one.name == "life.md"]
    assert found.via == "Priya Raman"
    assert found.number <= 3
