"""Records: rows of tables, loaded fast, found by their words, their meaning and their columns."""

from gristmill.records.credit import CreditAccount, load_account, refresh_balance
from gristmill.records.imports import (
    RemovedImport,
    draft_import,
    list_imports,
    list_rejected,
    load_report,
    remove_import,
    remove_old_drafts,
    start_import,
)
from gristmill.records.intake import Drafted, LoadingImport, TableIntake
from gristmill.records.letters import INGESTION, VECTORIZATION, IngestData, Vectorize
from gristmill.records.model import FilePreview, Import, ImportPlan, Options, Record, RecordId, Rejected, RowCounts
from gristmill.records.readers import Readers
from gristmill.records.records import (
    EmbeddingProgress,
    export_records,
    export_rejected,
    find_project,
    list_columns,
    list_records,
    load_embedding_progress,
    load_record,
    remove_records,
)
from gristmill.records.vectorize import embed_records

__all__ = [
    "INGESTION",
    "VECTORIZATION",
    "CreditAccount",
    "Drafted",
    "EmbeddingProgress",
    "FilePreview",
    "Import",
    "ImportPlan",
    "IngestData",
    "LoadingImport",
    "Options",
    "Readers",
    "Record",
    "RecordId",
    "Rejected",
    "RemovedImport",
    "RowCounts",
    "TableIntake",
    "Vectorize",
    "draft_import",
    "embed_records",
    "export_records",
    "export_rejected",
    "find_project",
    "list_columns",
    "list_imports",
    "list_records",
    "list_rejected",
    "load_account",
    "load_embedding_progress",
    "load_record",
    "load_report",
    "refresh_balance",
    "remove_import",
    "remove_old_drafts",
    "remove_records",
    "start_import",
]
