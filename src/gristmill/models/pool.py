"""The models of one worker, and the child processes in which they compute."""

import asyncio
import os
from contextlib import AbstractAsyncContextManager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Self

from gristmill.models.embedding import MiniLm, make_embedder
from gristmill.models.language import Extractor, RuleExtractor, RuleSummariser, Summariser
from gristmill.models.llm import LlmExtractor, LlmSummariser, RouterLlm

if TYPE_CHECKING:
    from gristmill.settings import Settings

TURN = timedelta(minutes=1)  # how long a call to the LLM waits for its turn; after that its task is put back


class ModelPool:
    """Everything a worker computes with; `async with` ends it.

    A child process starts when the first call needs it. Each kind of model has processes of its own, so that no process
    loads two models. Only splitting shares the processes of the embedder, because it counts the embedder's tokens.
    """

    def __init__(self, settings: "Settings") -> None:
        from gristmill.processes import ProcessPool  # noqa: PLC0415 the children import this room and need no queue

        processes = settings.documents.processes or os.cpu_count() or 1
        self.reading_processes = ProcessPool(processes, nice=settings.queue.nice)
        self.embedding_processes = ProcessPool(processes, nice=settings.queue.nice)
        self._parsing_processes = ProcessPool(processes, nice=settings.queue.nice)
        self.embedder = make_embedder(settings.embedding, self.embedding_processes)
        self.built_in_embedder = MiniLm(self.embedding_processes)
        self.llm = RouterLlm(settings.llm, turn=partial(_take_llm_turn, settings.llm.timeout))
        self.extractor = self._make_extractor(settings.llm.model, settings.llm.timeout + TURN)
        self.summariser = self._make_summariser(settings.llm.model)

    def _make_extractor(self, model: str, patience: timedelta) -> Extractor:
        rules = RuleExtractor(self._parsing_processes)
        return LlmExtractor(self.llm, rules, model=model, patience=patience) if model else rules

    def _make_summariser(self, model: str) -> Summariser:
        rules = RuleSummariser()
        return LlmSummariser(self.llm, rules, model=model) if model else rules

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.llm.close()
        await self.embedder.close()
        pools = self.reading_processes, self.embedding_processes, self._parsing_processes
        await asyncio.gather(*(pool.close() for pool in pools))


def _take_llm_turn(longest: timedelta) -> AbstractAsyncContextManager[None]:
    """A turn at the limiter `llm` for the task that asks; if nobody has set that limiter, nothing waits."""
    from gristmill.queue import current  # noqa: PLC0415 as above

    return current().take("llm", if_set=True, patience=TURN, hold=TURN + longest)
