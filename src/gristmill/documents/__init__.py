"""Documents: from files to pages to chunks, phase by phase, each unit by itself."""

from gristmill.documents.blobs import clear_copies
from gristmill.documents.finding import explain_lack, find_in_documents
from gristmill.documents.following import (
    LOOK_EVERY,
    Look,
    Overview,
    explain_failures,
    follow_documents,
    load_overview,
    place_error,
)
from gristmill.documents.intake import Added, add_again, add_file, advise_reindex, name_of
from gristmill.documents.model import Document
from gristmill.documents.progress import (
    MOST_FAILURES,
    Failure,
    PhaseProgress,
    Progress,
    Skipped,
    Tally,
    at_work,
    failures,
    holds_anything,
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
from gristmill.documents.removal import Removed, remove, remove_in_portions
from gristmill.documents.store import load, retry
from gristmill.documents.urgency import ORDINARY, Urgency, of_arrival

__all__ = [
    "LOOK_EVERY",
    "MOST_FAILURES",
    "ORDINARY",
    "Added",
    "Document",
    "Failure",
    "Look",
    "Overview",
    "PhaseProgress",
    "Progress",
    "Removed",
    "Skipped",
    "Tally",
    "Urgency",
    "add_again",
    "add_file",
    "advise_reindex",
    "at_work",
    "clear_copies",
    "explain_failures",
    "explain_lack",
    "failures",
    "find_in_documents",
    "follow_documents",
    "holds_anything",
    "listing",
    "load",
    "load_overview",
    "name_of",
    "names_of",
    "of_arrival",
    "pages",
    "place_error",
    "progress",
    "remove",
    "remove_in_portions",
    "retry",
    "setbacks",
    "skipped",
    "tally",
    "types",
    "with_parts",
]
