"""Binds the letters about documents to what answers them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gristmill.db import Database
from gristmill.documents.desk import Desk
from gristmill.documents.phases.graph import build_graph
from gristmill.documents.phases.ocr import read_pages
from gristmill.documents.phases.opening import finish_document, open_document, seal_phase
from gristmill.documents.phases.split import split_pages
from gristmill.documents.phases.vector import embed_chunks
from gristmill.documents.spool import Spool
from gristmill.models import Embedder, Extractor
from gristmill.processes import ProcessPool
from gristmill.queue import Handler, on
from gristmill.settings import DocumentSettings
from gristmill.tasks import BuildGraph, EmbedChunk, FinishDocument, OpenDocument, ReadPage, SealPhase, SplitPage

PAGES_AT_ONCE = 64
CHUNKS_AT_ONCE = 64


@dataclass(frozen=True)
class Tools:
    """What work on documents needs."""

    db: Database
    reading: ProcessPool
    splitting: ProcessPool
    spool: Path
    embedder: Embedder
    extractor: Extractor
    settings: DocumentSettings
    at_hand: Sequence[Embedder] = ()  # for vectors of the model before, while the embedder's own are being filled


def document_handlers(tools: Tools) -> list[Handler]:
    db, settings = tools.db, tools.settings
    desk = Desk(tools.reading, tools.splitting, settings, tools.embedder.window)
    spool = Spool(db, tools.spool, settings.spool)
    longest = settings.timeout * 10  # waiting for a child counts, too; the call itself is limited in the child
    few = tools.reading.size + 1  # one gets ready while the others are read; more would only keep slots from other work
    opening = partial(
        open_document, db=db, desk=desk, spool=spool, max_bytes=settings.max_bytes, max_depth=settings.max_depth
    )
    reading = partial(read_pages, db=db, desk=desk, spool=spool)
    splitting = partial(split_pages, db=db, desk=desk)
    embedding = partial(embed_chunks, db=db, embedders=[tools.embedder, *tools.at_hand])
    building = partial(build_graph, db=db, extractor=tools.extractor)
    return [
        on(OpenDocument, opening, timeout=longest),
        on(ReadPage, reading, batch=PAGES_AT_ONCE, timeout=longest, at_once=few),
        on(SplitPage, splitting, batch=PAGES_AT_ONCE, timeout=longest, at_once=few),
        on(EmbedChunk, embedding, batch=CHUNKS_AT_ONCE, timeout=longest, at_once=few),
        on(BuildGraph, building, batch=tools.extractor.batch, timeout=longest + tools.extractor.waits, at_once=few),
        on(SealPhase, partial(seal_phase, db=db)),
        on(FinishDocument, partial(finish_document, db=db)),
    ]
