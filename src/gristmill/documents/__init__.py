"""Documents: from files to pages to chunks, phase by phase, each unit by itself."""

from gristmill.documents.intake import Added, add_again, add_file, files_in, name_of
from gristmill.documents.model import Document
from gristmill.documents.progress import (
    Failure,
    PhaseProgress,
    Progress,
    Tally,
    at_work,
    failures,
    listing,
    pages,
    progress,
    tally,
    with_parts,
)
from gristmill.documents.removal import Removed, remove, remove_in_portions
from gristmill.documents.store import load
from gristmill.documents.work import Tools, document_handlers

__all__ = [
    "Added",
    "Document",
    "Failure",
    "PhaseProgress",
    "Progress",
    "Removed",
    "Tally",
    "Tools",
    "add_again",
    "add_file",
    "at_work",
    "document_handlers",
    "failures",
    "files_in",
    "listing",
    "load",
    "name_of",
    "pages",
    "progress",
    "remove",
    "remove_in_portions",
    "tally",
    "with_parts",
]
