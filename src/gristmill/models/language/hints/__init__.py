"""Reads by rules what a text asks for, of whom, and until when, in English, German, Czech and Croatian.

Pure functions: no clock, no database, no model. The same text and date give the same facts for ever.
"""

from gristmill.models.language.hints.facts import read_facts
from gristmill.models.language.hints.hints import make_hints
from gristmill.models.language.hints.model import (
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
)

__all__ = [
    "About",
    "ClientIdentity",
    "FoundAmount",
    "FoundDate",
    "FoundMention",
    "FoundReference",
    "FoundRequest",
    "Hint",
    "Hints",
    "Noise",
    "Payment",
    "TextEvidence",
    "TextFacts",
    "Urgency",
    "make_hints",
    "read_facts",
]
