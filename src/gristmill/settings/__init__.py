"""All settings, read once from `GRISTMILL_*` and an optional gristmill.toml, and handed on in slices."""

from gristmill.settings.agents import AgentsSettings
from gristmill.settings.alarms import AlarmSettings, Channel, CommandChannel, EmailChannel, WebhookChannel
from gristmill.settings.ask import AskSettings
from gristmill.settings.documents import DocumentSettings
from gristmill.settings.embedding import EmbeddingSettings
from gristmill.settings.explain import explain_reason
from gristmill.settings.fetch import Delay, FetchSettings
from gristmill.settings.knowledge import KnowledgeSettings
from gristmill.settings.llm import LlmSettings
from gristmill.settings.loading import load, locate_file, unknown_names
from gristmill.settings.log import LogSettings
from gristmill.settings.mail_server import MailServer
from gristmill.settings.qualifier import QualifierSettings
from gristmill.settings.queue import QueueSettings
from gristmill.settings.records import RecordsSettings
from gristmill.settings.references import NoSecret, Reference, read_reference
from gristmill.settings.router import BackendSettings, KeySettings, ModelSettings, NetworkSettings, RouterSettings
from gristmill.settings.settings import Settings
from gristmill.settings.sources import SourceSettings
from gristmill.settings.values import Slice
from gristmill.settings.variables import environment
from gristmill.settings.web import WebSettings

__all__ = [
    "AgentsSettings",
    "AlarmSettings",
    "AskSettings",
    "BackendSettings",
    "Channel",
    "CommandChannel",
    "Delay",
    "DocumentSettings",
    "EmailChannel",
    "EmbeddingSettings",
    "FetchSettings",
    "KeySettings",
    "KnowledgeSettings",
    "LlmSettings",
    "LogSettings",
    "MailServer",
    "ModelSettings",
    "NetworkSettings",
    "NoSecret",
    "QualifierSettings",
    "QueueSettings",
    "RecordsSettings",
    "Reference",
    "RouterSettings",
    "Settings",
    "Slice",
    "SourceSettings",
    "WebSettings",
    "WebhookChannel",
    "environment",
    "explain_reason",
    "load",
    "locate_file",
    "read_reference",
    "unknown_names",
]
