"""The models of one worker: which of them the settings choose, and the processes they compute in."""

import os
from typing import Any

import psutil
import pytest

from gristmill.models import LlmExtractor, MiniLm, ModelPool, OllamaEmbedder, RuleExtractor
from gristmill.processes import ProcessPool
from gristmill.settings import DocumentSettings, EmbeddingSettings, LlmSettings, Settings


def settings(**more: Any) -> Settings:
    return Settings(documents=DocumentSettings(processes=1), **more)


async def find_process(pool: ProcessPool) -> psutil.Process:
    return psutil.Process(await pool.run(os.getpid, timeout=60, memory=0))


@pytest.mark.usefixtures("ends_children")
async def test_each_kind_of_model_has_a_process_of_its_own_that_ends_with_the_pool() -> None:
    async with ModelPool(settings()) as models:
        children = [await find_process(one) for one in (models.reading_processes, models.embedding_processes)]
        assert len({child.pid for child in children}) == 2
        assert all(child.is_running() for child in children)
    assert not any(child.is_running() for child in children)


async def test_by_default_the_built_in_model_embeds_and_the_rules_extract() -> None:
    async with ModelPool(settings()) as models:
        assert isinstance(models.embedder, MiniLm)
        assert isinstance(models.extractor, RuleExtractor)


async def test_another_embedder_leaves_the_built_in_one_beside_it_and_an_llm_adds_to_the_rules() -> None:
    chosen = settings(embedding=EmbeddingSettings(kind="ollama", model="m"), llm=LlmSettings(model="m"))
    async with ModelPool(chosen) as models:
        assert isinstance(models.embedder, OllamaEmbedder)
        assert isinstance(models.built_in_embedder, MiniLm)
        assert isinstance(models.extractor, LlmExtractor)
        assert models.extractor.waits > 2 * chosen.llm.timeout  # two attempts, and the wait for a turn at each
