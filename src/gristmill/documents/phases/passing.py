"""Binds the handler of a phase, so that its units go on to the next phase without any call of its own."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Protocol, TypeVar

from gristmill.db import Database
from gristmill.documents import store
from gristmill.documents.model import Document
from gristmill.ids import DocumentId
from gristmill.queue import Answer, Done, Handler, Letter, Skip, on


class PageLetter(Letter, Protocol):
    """A letter about a page; one about a chunk has its `ordinal`, too."""

    @property
    def document(self) -> DocumentId: ...

    @property
    def page(self) -> int: ...


P = TypeVar("P", bound=PageLetter)


def on_phase(
    letter: type[P],
    run: Callable[[list[P]], Awaitable[Sequence[Answer | Exception]]],
    *,
    db: Database,
    batch: int,
    timeout: timedelta | None = None,
    at_once: int | None = None,
) -> Handler:
    """The handler of a phase: a unit that is done or skipped is sent on to the phase behind this one.

    The phases of this program send their units on themselves: they have loaded the documents already.
    """

    async def run_and_send_on(letters: list[P]) -> list[Answer | Exception]:
        answers = await run(letters)
        async with db.transaction() as tx:
            documents = await store.load_documents(tx, {one.document for one in letters})
        return [_send_on(answer, one, documents) for answer, one in zip(answers, letters, strict=True)]

    return on(letter, run_and_send_on, batch=batch, timeout=timeout, at_once=at_once)


def _send_on(
    answer: Answer | Exception, letter: PageLetter, documents: dict[DocumentId, Document]
) -> Answer | Exception:
    document = documents.get(letter.document)
    if document is None or not isinstance(answer, Done | Skip):
        return answer
    own = next(phase.name for phase in document.phases.values() if phase.kind == letter.kind)
    following = document.unit_after(own, letter.page, getattr(letter, "ordinal", None))
    return replace(answer, then=(*answer.then, *following))
