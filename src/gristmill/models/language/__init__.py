"""Understands text by rules and an English parse, without an LLM: names, values, who speaks, and who did what."""

from gristmill.models.language.entities import Entity, Extraction, Passage, Relation, entity_key, relation_type
from gristmill.models.language.extractor import Extractor, RuleExtractor
from gristmill.models.language.speech import LEVELS, SPEAKER

__all__ = [
    "LEVELS",
    "SPEAKER",
    "Entity",
    "Extraction",
    "Extractor",
    "Passage",
    "Relation",
    "RuleExtractor",
    "entity_key",
    "relation_type",
]
