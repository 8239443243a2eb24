"""Understands text by rules and an English parse, without an LLM: names, values, speakers and facts."""

from gristmill.models.language.entities import (
    Entity,
    Extraction,
    Relation,
    TextPassage,
    make_entity_key,
    make_relation_type,
)
from gristmill.models.language.extractor import Extractor, RuleExtractor
from gristmill.models.language.hints import (
    About,
    ClientIdentity,
    FoundAmount,
    FoundDate,
    FoundMention,
    FoundReference,
    FoundRequest,
    Hint,
    Hints,
    Noise,
    Payment,
    TextEvidence,
    TextFacts,
    Urgency,
    make_hints,
    read_facts,
)
from gristmill.models.language.speech import LOG_LEVELS, SPEAKER
from gristmill.models.language.structure import MONTHS, Mention, find_shapes
from gristmill.models.language.summary import RuleSummariser, Summariser, quote_summary

__all__ = [
    "LOG_LEVELS",
    "MONTHS",
    "SPEAKER",
    "About",
    "ClientIdentity",
    "Entity",
    "Extraction",
    "Extractor",
    "FoundAmount",
    "FoundDate",
    "FoundMention",
    "FoundReference",
    "FoundRequest",
    "Hint",
    "Hints",
    "Mention",
    "Noise",
    "Payment",
    "Relation",
    "RuleExtractor",
    "RuleSummariser",
    "Summariser",
    "TextEvidence",
    "TextFacts",
    "TextPassage",
    "Urgency",
    "find_shapes",
    "make_entity_key",
    "make_hints",
    "make_relation_type",
    "quote_summary",
    "read_facts",
]
