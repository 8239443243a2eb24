"""Chooses the embedder that the settings name."""

from typing import TYPE_CHECKING

from gristmill.models.embedding.built_in import MiniLm
from gristmill.models.embedding.embedder import Embedder
from gristmill.models.embedding.endpoints import OllamaEmbedder, OpenAiEmbedder, get_endpoint_name

if TYPE_CHECKING:  # the child processes import this file and need neither
    from gristmill.processes import ProcessPool
    from gristmill.settings import EmbeddingSettings


def make_embedder(settings: "EmbeddingSettings", pool: "ProcessPool") -> Embedder:
    """Make the embedder that the settings name."""
    if settings.kind == "minilm":
        return MiniLm(pool)
    return OllamaEmbedder(settings) if settings.kind == "ollama" else OpenAiEmbedder(settings)


def get_embedder_name(settings: "EmbeddingSettings") -> str:
    """The name of that embedder, without making it."""
    return MiniLm.name if settings.kind == "minilm" else get_endpoint_name(settings)
