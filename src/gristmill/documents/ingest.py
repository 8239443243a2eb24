"""Keeps a text that a program hands over, in one task: chunks, vectors, nodes, edges and a summary."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from gristmill.db import Database, Tx
from gristmill.documents.hinting import find_hints
from gristmill.documents.letters import IngestText
from gristmill.documents.notebook import document_of_taken, prepare_text
from gristmill.documents.take_in import WholeText, take_in
from gristmill.errors import Permanent, Refused
from gristmill.ids import TaskId
from gristmill.knowledge import Embedders, Piece, chunks, graph
from gristmill.models import Extraction, Extractor, Summariser, TextPassage
from gristmill.queue import Done, current
from gristmill.scopes import Scope
from gristmill.tasks import SendCallback

MOST_NAMED = 200  # entities, and relations, that the result names
FIRST_PAGE = 1  # a text is one page; notes under the same URN come behind it


@dataclass(frozen=True)
class _Drawn:
    """What was drawn from one chunk, and the key of its input; None where there was nothing to draw from."""

    extraction: Extraction | None
    key: bytes


async def ingest_text(
    letter: IngestText, *, db: Database, embedders: Embedders, extractor: Extractor, summariser: Summariser
) -> Done:
    """The text is searchable and its part of the graph is there when the task is done, or nothing of it."""
    scope = Scope(letter.client, letter.project)
    prepared = await prepare_text(db, embedders, letter.content, letter.title)
    about = {"type": letter.type, "title": letter.title, "meta": letter.metadata}
    drawn = await _draw(db, extractor, letter.client, prepared.pieces, about)
    summary = await summariser.summarise(letter.content)
    item = WholeText(
        letter.urn,
        letter.title,
        letter.content,
        prepared,
        scope,
        letter.type,
        datetime.fromisoformat(letter.written_at) if letter.written_at else None,
        {**letter.metadata, "summary": summary},
    )
    then = (SendCallback(letter.callback, TaskId(current().id)),) if letter.callback else ()
    hints = await asyncio.to_thread(find_hints, letter)
    result = {**describe_result(letter.urn, summary, drawn), "hints": hints}
    return Done(partial(_write, item=item, drawn=drawn), then, result)


async def _draw(
    db: Database, extractor: Extractor, client: str, pieces: Sequence[Piece], about: dict[str, Any]
) -> list[_Drawn]:
    """The facts of each chunk; those that are known for the same input are not drawn again."""
    passages = [_make_passage(piece, about if n == 0 else {}) for n, piece in enumerate(pieces)]
    keys = [graph.extraction_key(client, one, extractor.version) if one else b"" for one in passages]
    async with db.transaction() as tx:
        known = await graph.find_extractions(tx, [key for key in keys if key])
    missing = [n for n, one in enumerate(passages) if one and keys[n] not in known]
    found: dict[int, Extraction] = {n: known[keys[n]] for n, one in enumerate(passages) if one and keys[n] in known}
    for at in range(0, len(missing), extractor.batch):
        some = missing[at : at + extractor.batch]
        asked = [one for n in some if (one := passages[n])]
        for n, answer in zip(some, await extractor.extract(asked), strict=True):
            if isinstance(answer, Exception):
                raise answer
            found[n] = answer
    return [_Drawn(found.get(n), keys[n]) for n in range(len(pieces))]


def _make_passage(piece: Piece, about: dict[str, Any]) -> TextPassage | None:
    text, kind = chunks.choose_sentences(piece.text, piece.kind)
    return TextPassage(text, piece.heading, kind, piece.language, about) if text else None


async def _write(tx: Tx, *, item: WholeText, drawn: Sequence[_Drawn]) -> None:
    try:
        document = document_of_taken(await take_in(tx, item))
    except Refused as error:  # it has become a file's meanwhile: trying again changes nothing
        raise Permanent(str(error)) from error
    found = await chunks.load(tx, [(document, FIRST_PAGE, n) for n in range(len(drawn))])
    for chunk, one in zip(found, drawn, strict=True):
        if chunk is not None and one.extraction is not None:
            await graph.save(tx, chunk.id, item.scope.client, one.extraction, one.key)


def describe_result(urn: str, summary: str, drawn: Sequence[_Drawn]) -> dict[str, Any]:
    """What the task leaves as its result."""
    given = [one.extraction for one in drawn if one.extraction]
    named = Counter[str]()
    entities = {entity.key: entity for one in given for entity in one.entities}
    for one in given:
        named.update({entity.key: entity.count for entity in one.entities})
    edges = {(fact.source, fact.type, fact.target) for one in given for fact in one.relations}
    return {
        "urn": urn,
        "chunks": len(drawn),
        "nodes": len(entities),
        "edges": len(edges),
        "summary": summary,
        "entities": [
            {"key": key, "type": entities[key].type, "name": entities[key].name, "count": count}
            for key, count in named.most_common(MOST_NAMED)
        ],
        "relationships": [
            {"from_key": source, "edge_type": type_, "to_key": target}
            for source, type_, target in sorted(edges)[:MOST_NAMED]
        ],
    }
