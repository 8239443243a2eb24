"""The models: OCR, embeddings, LLM and rules of language.

Workers and all their child processes import this door. So no import behind it loads a model or its library; the first
call in a child process does.
"""

from gristmill.models.embedding import (
    Embedder,
    FakeEmbedder,
    MiniLm,
    OllamaEmbedder,
    OpenAiEmbedder,
    get_embedder_name,
    make_embedder,
    tokens,
)
from gristmill.models.language import (
    LOG_LEVELS,
    SPEAKER,
    Entity,
    Extraction,
    Extractor,
    Passage,
    Relation,
    RuleExtractor,
    make_entity_key,
    make_relation_type,
)
from gristmill.models.llm import FakeLlm, Llm, LlmExtractor, Message, Picture, RouterLlm, TokenCount, make_schema
from gristmill.models.ocr import RecognisedText, describe_engines, has_tesseract, recognise_text
from gristmill.models.pool import ModelPool

__all__ = [
    "LOG_LEVELS",
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
    "RecognisedText",
    "Relation",
    "RouterLlm",
    "RuleExtractor",
    "TokenCount",
    "describe_engines",
    "get_embedder_name",
    "has_tesseract",
    "make_embedder",
    "make_entity_key",
    "make_relation_type",
    "make_schema",
    "recognise_text",
    "tokens",
]
