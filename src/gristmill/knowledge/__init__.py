"""Knowledge: chunks, search over them, and the graph of who and what is in them."""

from gristmill.knowledge import chunks, graph, keys, lexicon, vectors
from gristmill.knowledge.chunks import Chunk, Piece
from gristmill.knowledge.finder import Finder
from gristmill.knowledge.notebook import index_document, search_hybrid, store_chunk
from gristmill.knowledge.search import Hit, Hits, search
from gristmill.knowledge.terms import Terms, terms_of
from gristmill.knowledge.vectors import Embedders, make_searchable

__all__ = [
    "Chunk",
    "Embedders",
    "Finder",
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
