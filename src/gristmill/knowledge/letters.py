"""The letters that knowledge sends itself."""

from dataclasses import dataclass
from typing import ClassVar

from gristmill.ids import ScopeId


@dataclass(frozen=True)
class FoldTerms:
    """Gather the terms of fresh chunks into segments, and drop the terms of chunks that are gone."""

    kind: ClassVar[str] = "knowledge.fold"
    scope: ScopeId


@dataclass(frozen=True)
class TidyTerms:
    """Ask for a fold in every scope that needs one."""

    kind: ClassVar[str] = "knowledge.tidy"


@dataclass(frozen=True)
class FillVectors:
    """Give every chunk a vector of this model and remove those of other models, a portion at a time."""

    kind: ClassVar[str] = "knowledge.fill"
    model: str
    after: int = 0  # the last chunk that has its vector
