"""Documents: from files to pages to chunks, phase by phase, each unit by itself."""

from gristmill.documents.blobs import Staged, stage
from gristmill.documents.finding import explain_lack, find_in_documents
from gristmill.documents.intake import add_file, name_of
from gristmill.documents.model import Document
from gristmill.documents.notebook import index_document, store_chunk
from gristmill.documents.phases.definition import Phase, list_phases
from gristmill.documents.progress import (
    MOST_FAILURES,
    Failure,
    PageProgress,
    PhaseProgress,
    Progress,
    Skipped,
    Tally,
    at_work,
    failures,
    holds_anything,
    list_columns,
    listing,
    names_of,
    pages,
    progress,
    setbacks,
    skipped,
    tally,
    types,
    with_parts,
)
from gristmill.documents.removal import Removed, remove, remove_in_portions, remove_source
from gristmill.documents.spool import clear_copies
from gristmill.documents.store import OPEN, load, retry
from gristmill.documents.take_in import Item, Note, Taken, WholeText, add_again, say_reindex, take_in
from gristmill.documents.urgency import ORDINARY, Urgency, of_arrival

__all__ = [
    "MOST_FAILURES",
    "OPEN",
    "ORDINARY",
    "Document",
    "Failure",
    "Item",
    "Note",
    "PageProgress",
    "Phase",
    "PhaseProgress",
    "Progress",
    "Removed",
    "Skipped",
    "Staged",
    "Taken",
    "Tally",
    "Urgency",
    "WholeText",
    "add_again",
    "add_file",
    "at_work",
    "clear_copies",
    "explain_lack",
    "failures",
    "find_in_documents",
    "holds_anything",
    "index_document",
    "list_columns",
    "list_phases",
    "listing",
    "load",
    "name_of",
    "names_of",
    "of_arrival",
    "pages",
    "progress",
    "remove",
    "remove_in_portions",
    "remove_source",
    "retry",
    "say_reindex",
    "setbacks",
    "skipped",
    "stage",
    "store_chunk",
    "take_in",
    "tally",
    "types",
    "with_parts",
]
