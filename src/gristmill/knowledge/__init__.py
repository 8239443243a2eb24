"""Knowledge: chunks, the search over them, and the graph of people and things that they name."""

from gristmill.knowledge import chunks, graph, keys, lexicon, merging, vectors
from gristmill.knowledge.chunks import Chunk, Piece
from gristmill.knowledge.finder import Finder
from gristmill.knowledge.hybrid import search_hybrid
from gristmill.knowledge.marking import mark_words
from gristmill.knowledge.search import Hit, Hits, search
from gristmill.knowledge.snippets import Snippet
from gristmill.knowledge.terms import Terms, terms_of
from gristmill.knowledge.vectors import Embedders, make_searchable
from gristmill.knowledge.windows import LongTextEmbedder

__all__ = [
    "Chunk",
    "Embedders",
    "Finder",
    "Hit",
    "Hits",
    "LongTextEmbedder",
    "Piece",
    "Snippet",
    "Terms",
    "chunks",
    "graph",
    "keys",
    "lexicon",
    "make_searchable",
    "mark_words",
    "merging",
    "search",
    "search_hybrid",
    "terms_of",
    "vectors",
]
