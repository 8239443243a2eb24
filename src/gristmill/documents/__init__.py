"""Documents: from files to pages to chunks, phase by phase, each unit by itself."""

from gristmill.documents.blobs import Staged, stage
from gristmill.documents.finding import explain_lack, find_in_documents
from gristmill.documents.following import (
    LOOK_EVERY,
    Look,
    choose_pause,
    explain_failures,
    follow_documents,
    has_worker,
    place_error,
)
from gristmill.documents.intake import add_file, name_of
from gristmill.documents.model import Document
from gristmill.documents.notebook import index_document, store_chunk
from gristmill.documents.overview import Overview, load_overview, load_overview_of
from gristmill.documents.phases.definition import Phase, list_phases
from gristmill.documents.phases.passing import on_phase
from gristmill.documents.progress import (
    MOST_FAILURES,
    Failure,
    PageProgress,
    PhaseProgress,
    Progress,
    Skipped,
    Tally,
    count_documents,
    find_with_parts,
    holds_anything,
    list_at_work,
    list_columns,
    list_documents,
    list_failures,
    list_pages,
    list_setbacks,
    list_skipped,
    list_types,
    load_progress,
    names_of,
)
from gristmill.documents.removal import Removed, remove, remove_in_portions, remove_source
from gristmill.documents.spool import clear_copies
from gristmill.documents.store import OPEN, load_documents, load_texts, retry
from gristmill.documents.take_in import Item, Note, Taken, WholeText, add_again, say_reindex, take_in, take_in_many
from gristmill.documents.urgency import ORDINARY, Urgency, of_arrival

__all__ = [
    "LOOK_EVERY",
    "MOST_FAILURES",
    "OPEN",
    "ORDINARY",
    "Document",
    "Failure",
    "Item",
    "Look",
    "Note",
    "Overview",
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
    "choose_pause",
    "clear_copies",
    "count_documents",
    "explain_failures",
    "explain_lack",
    "find_in_documents",
    "find_with_parts",
    "follow_documents",
    "has_worker",
    "holds_anything",
    "index_document",
    "list_at_work",
    "list_columns",
    "list_documents",
    "list_failures",
    "list_pages",
    "list_phases",
    "list_setbacks",
    "list_skipped",
    "list_types",
    "load_documents",
    "load_overview",
    "load_overview_of",
    "load_progress",
    "load_texts",
    "name_of",
    "names_of",
    "of_arrival",
    "on_phase",
    "place_error",
    "remove",
    "remove_in_portions",
    "remove_source",
    "retry",
    "say_reindex",
    "stage",
    "store_chunk",
    "take_in",
    "take_in_many",
]
