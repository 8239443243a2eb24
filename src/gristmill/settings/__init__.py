"""All settings, read once from `GRISTMILL_*` and an optional gristmill.toml, and handed on in slices."""

from gristmill.settings.documents import DocumentSettings
from gristmill.settings.embedding import EmbeddingSettings
from gristmill.settings.explain import explain_reason
from gristmill.settings.knowledge import KnowledgeSettings
from gristmill.settings.llm import LlmSettings
from gristmill.settings.loading import load, unknown_names
from gristmill.settings.log import LogSettings
from gristmill.settings.queue import QueueSettings
from gristmill.settings.router import BackendSettings, KeySettings, ModelSettings, NetworkSettings, RouterSettings
from gristmill.settings.settings import Settings
from gristmill.settings.values import Slice
from gristmill.settings.variables import environment

__all__ = [
    "BackendSettings",
    "DocumentSettings",
    "EmbeddingSettings",
    "KeySettings",
    "KnowledgeSettings",
    "LlmSettings",
    "LogSettings",
    "ModelSettings",
    "NetworkSettings",
    "QueueSettings",
    "RouterSettings",
    "Settings",
    "Slice",
    "environment",
    "explain_reason",
    "load",
    "unknown_names",
]
