"""A typed client of the API, for programs elsewhere: `Client` waits, `AsyncClient` is awaited; both do the same calls.

It imports nothing else of Gristmill, so it can be read and taken along by itself.
"""

from gristmill.client.asynchronous import AsyncClient
from gristmill.client.blocking import Client
from gristmill.client.failures import ApiError, NotAnswering
from gristmill.client.models import (
    Chunk,
    Document,
    DocumentDetail,
    DocumentEvent,
    Evidence,
    Hit,
    Hits,
    Impact,
    Ingested,
    Merge,
    Neighbour,
    Node,
    NodeDetail,
    PagePhase,
    PageStatus,
    PageText,
    Phase,
    Portion,
    Queue,
    Retried,
    Step,
    Taken,
    Task,
    TaskDetail,
    Why,
)

__all__ = [
    "ApiError",
    "AsyncClient",
    "Chunk",
    "Client",
    "Document",
    "DocumentDetail",
    "DocumentEvent",
    "Evidence",
    "Hit",
    "Hits",
    "Impact",
    "Ingested",
    "Merge",
    "Neighbour",
    "Node",
    "NodeDetail",
    "NotAnswering",
    "PagePhase",
    "PageStatus",
    "PageText",
    "Phase",
    "Portion",
    "Queue",
    "Retried",
    "Step",
    "Taken",
    "Task",
    "TaskDetail",
    "Why",
]
