"""A finder loads its model once, and only for questions that need it."""

from typing import Any

import pytest
from shelf import chunked, placed, searchable

from gristmill.db import Database
from gristmill.errors import Transient
from gristmill.knowledge import Finder, candidates, finder, vectors
from gristmill.models import FakeEmbedder, MiniLm
from gristmill.settings import KnowledgeSettings, Settings


class SlowModel(FakeEmbedder):
    """Stands for the built-in model, and remembers the questions that it was asked."""

    name = MiniLm.name

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    async def embed_question(self, text: str) -> bytes:
        self.asked.append(text)
        return await super().embed_question(text)


@pytest.fixture
async def model(db: Database, monkeypatch: pytest.MonkeyPatch) -> SlowModel:
    """The model of a database with one document."""
    slow = SlowModel()
    monkeypatch.setattr(finder, "make_embedder", lambda *_: slow)
    async with db.transaction() as tx:
        registered = await vectors.register(tx, slow)
        for chunk in await chunked(tx, await placed(tx, name="plan.md"), "New millstones come in May."):
            await searchable(tx, chunk, model=registered.id, embedder=slow)
    return slow


async def test_the_model_is_loaded_by_the_first_question_and_stays_loaded(db: Database, model: SlowModel) -> None:
    async with Finder(db, Settings()) as ours:
        for query in ("millstones", "May"):
            assert [hit.name for hit in await ours.find(query)] == ["plan.md"]
    assert model.asked == ["", "millstones", "May"]


async def test_words_alone_load_no_model(db: Database, model: SlowModel) -> None:
    async with Finder(db, Settings()) as ours:
        assert [hit.name for hit in await ours.find("millstones", alpha=0)] == ["plan.md"]
    assert model.asked == []


async def test_a_model_that_cannot_be_loaded_leaves_the_words(
    db: Database, model: SlowModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(text: str) -> bytes:
        raise Transient("The model is not there")

    monkeypatch.setattr(model, "embed_question", fail)
    async with Finder(db, Settings()) as ours:
        hits = await ours.find("millstones")
    assert [hit.name for hit in hits] == ["plan.md"]
    assert hits.note


async def test_a_finder_searches_with_the_settings_of_knowledge(
    db: Database, model: SlowModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    shares: list[float] = []

    def cut_nothing(scores: Any, bm25: Any, similar: Any, share: float) -> Any:
        shares.append(share)
        return scores

    monkeypatch.setattr(candidates, "cut_weak", cut_nothing)
    async with Finder(db, Settings(knowledge=KnowledgeSettings(meaning_share=0.07))) as ours:
        assert [hit.name for hit in await ours.find("millstones")] == ["plan.md"]
    assert shares == [0.07]
