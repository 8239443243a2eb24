"""The models of the house, each behind a Protocol with a real and a fake implementation."""

from gristmill.models.entities import Entity, Extraction, Passage, Relation, entity_key, relation_type
from gristmill.models.extractors import Extractor, RuleExtractor
from gristmill.models.fakes import FakeLlm
from gristmill.models.llm import Llm, Message, Picture, RouterLlm, TokenCount, schema_of

__all__ = [
    "Entity",
    "Extraction",
    "Extractor",
    "FakeLlm",
    "Llm",
    "Message",
    "Passage",
    "Picture",
    "Relation",
    "RouterLlm",
    "RuleExtractor",
    "TokenCount",
    "entity_key",
    "relation_type",
    "schema_of",
]
