"""The letters about records: load a file, make its records findable, and look whether an empty account was filled."""

from dataclasses import dataclass
from typing import ClassVar

from gristmill.ids import DocumentId, ScopeId
from gristmill.queue import Envelope, Unique

INGESTION, VECTORIZATION = "ingestion", "vectorization"  # the queues


@dataclass(frozen=True)
class IngestData:
    """Load the rows of an import."""

    kind: ClassVar[str] = "ingestion.ingest_data"
    document: DocumentId


@dataclass(frozen=True)
class Vectorize:
    """Give vectors and terms to the next records of a project."""

    kind: ClassVar[str] = "vectorization.vectorize"
    scope: ScopeId


@dataclass(frozen=True)
class ProbeCredit:
    """Ask the provider of embeddings whether its account was filled."""

    kind: ClassVar[str] = "ingestion.probe_credit"


def ingest_letter(document: DocumentId, scope: ScopeId) -> Envelope:
    return Envelope(IngestData(document), unique=Unique(f"ingest:{document}"), scope=scope)


def vectorize_letter(scope: ScopeId) -> Envelope:
    """One job of a project asks the model at a time.

    It is not unique: records that come while a job is at its end need one of their own.
    """
    return Envelope(Vectorize(scope), serial_key=f"vectorize:{scope}", scope=scope)
