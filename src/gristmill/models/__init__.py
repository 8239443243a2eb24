"""The models of the house, each behind a Protocol with a real and a fake implementation.

What only child processes may load is taken as a module, in the child: `from gristmill.models import ocr`.
"""

from gristmill.models import engines, tokens
from gristmill.models.embedding import Embedder, MiniLm, OllamaEmbedder, OpenAiEmbedder, embedder, model_of
from gristmill.models.entities import Entity, Extraction, Passage, Relation, entity_key, relation_type
from gristmill.models.extractors import Extractor, LlmExtractor, RuleExtractor
from gristmill.models.fakes import FakeEmbedder, FakeLlm
from gristmill.models.llm import Llm, Message, Picture, RouterLlm, TokenCount, schema_of
from gristmill.models.speech import LEVELS, SPEAKER

__all__ = [
    "LEVELS",
    "SPEAKER",
    "Embedder",
    "Entity",
    "Extraction",
    "Extractor",
    "FakeEmbedder",
    "FakeLlm",
    "Llm",
    "LlmExtractor",
    "Message",
    "MiniLm",
    "OllamaEmbedder",
    "OpenAiEmbedder",
    "Passage",
    "Picture",
    "Relation",
    "RouterLlm",
    "RuleExtractor",
    "TokenCount",
    "embedder",
    "engines",
    "entity_key",
    "model_of",
    "relation_type",
    "schema_of",
    "tokens",
]
