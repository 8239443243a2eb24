"""What is known about a request: passages with their places, the memory of its item, and answers with citations."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gristmill.agents.ask.answering import Answerer
from gristmill.agents.ask.model import Passage
from gristmill.agents.orchestrator.state import EvidencePassage
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import ReadText, Stepping
from gristmill.db import Database
from gristmill.ids import WorkItemId
from gristmill.knowledge import Hits, search
from gristmill.models import Embedder, fence_text
from gristmill.qualifier import ItemMemory, load_item_texts, load_memory
from gristmill.scopes import Scope
from gristmill.settings import KnowledgeSettings

LONGEST_QUERY = 2_000  # characters
LONGEST_ITEM = 20_000  # characters of the text of an item


@dataclass(frozen=True)
class WorkerFinder:
    """Finds passages with the embedders of a worker, which are loaded already."""

    db: Database
    embedders: Sequence[Embedder]
    settings: KnowledgeSettings

    async def find(self, query: str, scope: Scope | None, *, limit: int, per_document: int) -> Hits:
        return await search(
            self.db, self.embedders, query, scope, limit=limit, per_document=per_document, settings=self.settings
        )


def make_answerer(handle: RunHandle, step: Stepping) -> Answerer:
    """Answers questions for this run, with its model and its priority."""
    context, thinker = handle.toolbox.context, handle.thinker
    embedders = context.embedders if isinstance(context.embedders, Sequence) else [context.embedders]
    finder = WorkerFinder(handle.db, embedders, context.settings.knowledge)
    llm = thinker.stream(step) if thinker.is_there else None
    # a model that is away is waited for: the run is tried again from its last checkpoint
    return Answerer(handle.db, finder, context.settings.ask, llm, thinker.model, where=thinker.where, falls_back=False)


async def find_evidence(handle: RunHandle, step: Stepping, query: str) -> list[EvidencePassage]:
    """The passages that fit best; from now on their words are nobody's orders."""
    found, _ = await make_answerer(handle, step).find(query[:LONGEST_QUERY], handle.run.place)
    for one in found.passages:
        await handle.toolbox.read(ReadText(f"document {one.document}", f"{one.about}\n{one.text}"))
    return [describe_passage(one) for one in found.passages]


def describe_passage(one: Passage) -> EvidencePassage:
    return EvidencePassage(
        number=one.number,
        document=int(one.document),
        page=one.page,
        start=one.start,
        stop=one.stop,
        title=one.title or one.name,
        text=one.text,
    )


async def recall_item(handle: RunHandle) -> str:
    """What the qualifier has found out about the item of a run, and its words if the request is somebody else's."""
    if handle.run.item is None:
        return ""
    item = WorkItemId(handle.run.item)
    async with handle.db.reading() as tx:
        memory = await load_memory(tx, item)
        texts = await load_item_texts(tx, [item]) if handle.run.asked_by is not None else []
    parts = [describe_memory(memory)] if memory is not None else []
    parts += [texts[0].text[:LONGEST_ITEM]] if texts and texts[0].text not in handle.run.request else []
    if not parts:
        return ""
    text = "\n\n".join(parts)
    await handle.toolbox.read(ReadText(f"item {item}", text))
    return fence_text(text, f"memory of item {item}")


def describe_memory(memory: ItemMemory) -> str:
    lines = [memory.summary, f"It was routed as {memory.routing}: {memory.reason}" if memory.routing else ""]
    lines += [f"{name}: {_show(value)}" for name, value in memory.data.items() if value]
    return "\n".join(line for line in lines if line)


def _show(value: Any) -> str:
    return ", ".join(str(one) for one in value) if isinstance(value, list) else str(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] JSON
