"""The room of documents: which handler answers which of its letters, and with which limits."""

from functools import partial

from gristmill.documents.alarms import UNREAD_SCANS, find_unread_scans
from gristmill.documents.ingest import ingest_text
from gristmill.documents.letters import (
    BuildGraph,
    EmbedChunk,
    FinishDocument,
    IngestText,
    OpenDocument,
    ReadPage,
    SealPhase,
    SplitPage,
)
from gristmill.documents.parsers import Parsers
from gristmill.documents.phases.graph import build_graph
from gristmill.documents.phases.ocr import read_pages
from gristmill.documents.phases.opening import finish_document, open_document, seal_phase
from gristmill.documents.phases.split import split_pages
from gristmill.documents.phases.vector import embed_chunks
from gristmill.documents.spool import Spool
from gristmill.queue import Handler, on
from gristmill.rooms import Room, Tools, Watch

PAGES_AT_ONCE = 64
CHUNKS_AT_ONCE = 64


def bind_handlers(tools: Tools) -> list[Handler]:
    db, models, settings = tools.db, tools.models, tools.settings.documents
    parsers = Parsers(models.reading_processes, models.embedding_processes, settings, models.embedder.window)
    spool = Spool(db, tools.settings.data / "spool", settings.spool)
    longest = settings.timeout * 10  # waiting for a child counts, too; the call itself is limited in the child
    few = models.reading_processes.size + 1  # one gets ready while others are read; more would only take slots
    opening = partial(
        open_document, db=db, parsers=parsers, spool=spool, max_bytes=settings.max_bytes, max_depth=settings.max_depth
    )
    reading = partial(read_pages, db=db, parsers=parsers, spool=spool)
    splitting = partial(split_pages, db=db, parsers=parsers)
    # the second embedder makes vectors of the model before, while those of the first are being filled
    embedding = partial(embed_chunks, db=db, embedders=[models.embedder, models.built_in_embedder])
    extractor = models.extractor
    building = partial(build_graph, db=db, extractor=extractor)
    embedders = [models.embedder, models.built_in_embedder]
    ingesting = partial(ingest_text, db=db, embedders=embedders, extractor=extractor, summariser=models.summariser)
    return [
        on(OpenDocument, opening, timeout=longest),
        on(ReadPage, reading, batch=PAGES_AT_ONCE, timeout=longest, at_once=few),
        on(SplitPage, splitting, batch=PAGES_AT_ONCE, timeout=longest, at_once=few),
        on(EmbedChunk, embedding, batch=CHUNKS_AT_ONCE, timeout=longest, at_once=few),
        on(BuildGraph, building, batch=extractor.batch, timeout=longest + extractor.waits, at_once=few),
        on(IngestText, ingesting, timeout=longest + extractor.waits, at_once=few),
        on(SealPhase, partial(seal_phase, db=db)),
        on(FinishDocument, partial(finish_document, db=db)),
    ]


ROOM = Room(
    name="documents",
    letters=(OpenDocument, ReadPage, SplitPage, EmbedChunk, BuildGraph, IngestText, SealPhase, FinishDocument),
    handlers=bind_handlers,
    alarms=(Watch((UNREAD_SCANS,), find_unread_scans),),
)
