"""Understands text by rules and an English parse, without an LLM: names, values, speakers and facts."""

from gristmill.models.language.entities import (
    Entity,
    Extraction,
    Passage,
    Relation,
    make_entity_key,
    make_relation_type,
)
from gristmill.models.language.extractor import Extractor, RuleExtractor
from gristmill.models.language.speech import LOG_LEVELS, SPEAKER
from gristmill.models.language.summary import RuleSummariser, Summariser

__all__ = [
    "LOG_LEVELS",
    "SPEAKER",
    "Entity",
    "Extraction",
    "Extractor",
    "Passage",
    "Relation",
    "RuleExtractor",
    "RuleSummariser",
    "Summariser",
    "make_entity_key",
    "make_relation_type",
]
