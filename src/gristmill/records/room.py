"""The room of records: loads tables, and makes their rows findable."""

from datetime import timedelta
from functools import partial

from gristmill.db import Tx
from gristmill.documents import Spool
from gristmill.queue import Handler, on, set_queue
from gristmill.records.credit import EMPTY, check_account, probe_credit, watch_account
from gristmill.records.letters import INGESTION, VECTORIZATION, IngestData, ProbeCredit, Vectorize
from gristmill.records.load import ingest_data
from gristmill.records.readers import Readers
from gristmill.records.vectorize import vectorize
from gristmill.rooms import Room, Tools, Watch
from gristmill.settings import Settings

LOAD_LIMIT = timedelta(hours=24)  # a worker that dies is noticed by its heartbeat long before
EMBED_LIMIT = timedelta(hours=1)  # of one job, by a slow model


def bind_handlers(tools: Tools) -> list[Handler]:
    db, models, settings = tools.db, tools.models, tools.settings
    readers = Readers(models.reading_processes, settings.records)
    spool = Spool(db, settings.data / "spool", settings.documents.spool)
    loading = partial(ingest_data, db=db, readers=readers, spool=spool, settings=settings.records)
    embedders = [models.embedder, models.built_in_embedder]
    embedding = partial(vectorize, db=db, embedders=embedders, settings=settings.records, provider=settings.embedding)
    probing = partial(probe_credit, db=db, embedder=models.embedder, settings=settings.embedding)
    return [
        on(IngestData, loading, timeout=LOAD_LIMIT),
        on(Vectorize, embedding, timeout=EMBED_LIMIT),
        on(ProbeCredit, probing),
    ]


async def set_up_queues(tx: Tx, settings: Settings) -> None:
    """A job that has ended needs its payload no more."""
    for queue in (INGESTION, VECTORIZATION):
        await set_queue(tx, queue, clear_payload=True)


ROOM = Room(
    name="records",
    letters=(IngestData, Vectorize, ProbeCredit),
    handlers=bind_handlers,
    prepare=set_up_queues,
    checks=(check_account,),
    alarms=(Watch((EMPTY,), watch_account),),
)
