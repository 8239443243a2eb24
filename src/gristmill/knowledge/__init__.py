"""Knowledge: chunks, the search over them, and the graph of people and things that they name."""

from gristmill.knowledge import chunks, graph, keys, lexicon, vectors
from gristmill.knowledge.chunks import Chunk, Piece
from gristmill.knowledge.notebook import index_document, search_hybrid, store_chunk
from gristmill.knowledge.search import Hit, Hits, search
from gristmill.knowledge.terms import Terms, terms_of
from gristmill.knowledge.vectors import Embedders, make_searchable

__all__ = [
    "Chunk",
    "Embedders",
    "Hit",
    "Hits",
    "Piece",
    "Terms",
    "chunks",
    "graph",
    "index_document",
    "keys",
    "lexicon",
    "make_searchable",
    "search",
    "search_hybrid",
    "store_chunk",
    "terms_of",
    "vectors",
]
