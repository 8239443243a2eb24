"""Knowledge: chunks, the search over them, and the graph of people and things that they name."""

from gristmill.knowledge import chunks, graph, keys, lexicon, merging, vectors
from gristmill.knowledge.chunks import Chunk, Piece
from gristmill.knowledge.finder import Finder
from gristmill.knowledge.hybrid import search_hybrid
from gristmill.knowledge.language import language_of
from gristmill.knowledge.marking import FUNCTION_WORDS, mark_words
from gristmill.knowledge.search import Hit, Hits, search
from gristmill.knowledge.snippets import Snippet
from gristmill.knowledge.terms import Terms, TermWord, fold, forms, terms_of, words
from gristmill.knowledge.vectors import Embedders, make_searchable
from gristmill.knowledge.weighing import WordWeight, weigh_words
from gristmill.knowledge.windows import LongTextEmbedder

__all__ = [
    "FUNCTION_WORDS",
    "Chunk",
    "Embedders",
    "Finder",
    "Hit",
    "Hits",
    "LongTextEmbedder",
    "Piece",
    "Snippet",
    "TermWord",
    "Terms",
    "WordWeight",
    "chunks",
    "fold",
    "forms",
    "graph",
    "keys",
    "language_of",
    "lexicon",
    "make_searchable",
    "mark_words",
    "merging",
    "search",
    "search_hybrid",
    "terms_of",
    "vectors",
    "weigh_words",
    "words",
]
