"""Turns texts into vectors: with the built-in model in child processes, or at an endpoint."""

from gristmill.models.embedding import tokens
from gristmill.models.embedding.account import ask_balance
from gristmill.models.embedding.built_in import MiniLm
from gristmill.models.embedding.choice import get_embedder_name, make_embedder
from gristmill.models.embedding.embedder import Embedder
from gristmill.models.embedding.endpoints import OllamaEmbedder, OpenAiEmbedder
from gristmill.models.embedding.fake import FakeEmbedder
from gristmill.models.embedding.usage import Usage, compute_cost, measure_usage

__all__ = [
    "Embedder",
    "FakeEmbedder",
    "MiniLm",
    "OllamaEmbedder",
    "OpenAiEmbedder",
    "Usage",
    "ask_balance",
    "compute_cost",
    "get_embedder_name",
    "make_embedder",
    "measure_usage",
    "tokens",
]
