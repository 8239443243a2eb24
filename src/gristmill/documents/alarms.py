"""What alarms ask about documents: scans of which OCR read nothing."""

from dataclasses import dataclass

from gristmill.db import Tx, queries
from gristmill.ids import DocumentId, ScopeId
from gristmill.settings import Settings
from gristmill.telemetry import Finding
from gristmill.wording import format_count

SQL = queries("gristmill.documents", "alarms.sql")
UNREAD_SCANS = "unread-scans"
SHOWN = 3  # names in the sentence
ADVICE = (
    "Look at their pictures: if people can read them, install Tesseract’s data for their language, and reindex them."
)


@dataclass(frozen=True)
class UnreadScans:
    """Scans of one client without any text."""

    scope: ScopeId
    n: int
    names: list[str]
    ids: list[DocumentId]


async def find_unread_scans(tx: Tx, settings: Settings) -> list[Finding]:
    """Scanned documents of the last day that have no text at all: nobody finds them, and nothing failed."""
    return [describe_unread_scans(row) for row in await tx.all(SQL["unread_scans"], UnreadScans)]


def describe_unread_scans(row: UnreadScans) -> Finding:
    named = ", ".join(f"{name} ({id_})" for name, id_ in zip(row.names[:SHOWN], row.ids, strict=False))
    more = ", …" if row.n > SHOWN else ""
    sentence = f"OCR read no text in {format_count(row.n, 'scanned document')} of the last day: {named}{more}."
    return Finding(UNREAD_SCANS, "ocr", sentence, ADVICE, scope=row.scope)
