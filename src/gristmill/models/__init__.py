"""The models of the house: OCR, embeddings, LLM and rules of language; each has a Protocol, a real and a fake one.

A worker imports this door, so nothing behind it loads a model before a child process calls it.
"""

from gristmill.models.embedding import (
    Embedder,
    FakeEmbedder,
    MiniLm,
    OllamaEmbedder,
    OpenAiEmbedder,
    embedder_name,
    make_embedder,
    tokens,
)
from gristmill.models.language import (
    LEVELS,
    SPEAKER,
    Entity,
    Extraction,
    Extractor,
    Passage,
    Relation,
    RuleExtractor,
    entity_key,
    relation_type,
)
from gristmill.models.llm import FakeLlm, Llm, LlmExtractor, Message, Picture, RouterLlm, TokenCount, schema_of
from gristmill.models.ocr import Recognised, has_tesseract, reader, recognise
from gristmill.models.pool import ModelPool

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
    "ModelPool",
    "OllamaEmbedder",
    "OpenAiEmbedder",
    "Passage",
    "Picture",
    "Recognised",
    "Relation",
    "RouterLlm",
    "RuleExtractor",
    "TokenCount",
    "embedder_name",
    "entity_key",
    "has_tesseract",
    "make_embedder",
    "reader",
    "recognise",
    "relation_type",
    "schema_of",
    "tokens",
]
