"""Conventions: rules that people state in a small language, and that decisions follow."""

from gristmill.qualifier.conventions.contradictions import Contradiction
from gristmill.qualifier.conventions.language import format_convention, parse_convention
from gristmill.qualifier.conventions.matching import Material, match_condition
from gristmill.qualifier.conventions.model import Consequence, ConventionRule
from gristmill.qualifier.conventions.store import (
    Convention,
    ConventionVersion,
    InForce,
    add_convention,
    change_convention,
    count_firings,
    find_all_contradictions,
    find_contradictions_with,
    fold_firings,
    list_conventions,
    list_versions,
    load_convention,
    load_in_force,
    remove_convention,
)
from gristmill.qualifier.conventions.suggesting import suggest_convention

__all__ = [
    "Consequence",
    "Contradiction",
    "Convention",
    "ConventionRule",
    "ConventionVersion",
    "InForce",
    "Material",
    "add_convention",
    "change_convention",
    "count_firings",
    "find_all_contradictions",
    "find_contradictions_with",
    "fold_firings",
    "format_convention",
    "list_conventions",
    "list_versions",
    "load_convention",
    "load_in_force",
    "match_condition",
    "parse_convention",
    "remove_convention",
    "suggest_convention",
]
