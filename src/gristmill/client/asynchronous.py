"""The client for programs with an event loop: the same calls, awaited."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from gristmill.client import calls, core, models
from gristmill.client.calls import Call, Upload
from gristmill.client.failures import NotAnswering, choose_pause, read_problem

T = TypeVar("T")
E = TypeVar("E", models.DocumentEvent, models.RunEvent)


class AsyncClient:
    """Calls a server; `async with AsyncClient("http://127.0.0.1:6455", key) as mill`."""

    def __init__(self, server: str, key: str | None = None, **options: Any) -> None:
        self._http = httpx.AsyncClient(**core.make_options(server, key, **options))
        self._pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Any call of `gristmill.client.calls`; one that meets a busy server is sent again."""
        attempt = 0
        while True:
            attempt += 1
            answer, error = await self._try(call)
            pause = core.find_pause(call, attempt, answer)
            if pause is None:
                if answer is None:
                    raise NotAnswering(f"The server does not answer ({type(error).__name__}).") from error
                return core.read_answer(call, answer.status_code, answer.content)
            await self._pause(pause)

    async def _try(self, call: Call[Any]) -> tuple[httpx.Response | None, Exception | None]:
        with ExitStack() as stack:
            try:
                return await self._http.request(call.method, call.path, **core.make_request(call, stack)), None
            except httpx.TransportError as error:
                return None, error

    async def _walk(self, make: Callable[[str | None], Call[models.Portion[T]]]) -> AsyncIterator[T]:
        """All items of a list, portion by portion."""
        cursor: str | None = None
        while True:
            portion = await self.send(make(cursor))
            for item in portion.items:
                yield item
            if (cursor := portion.next) is None:
                return

    # --- documents

    async def upload(self, path: str | Path, *, name: str | None = None, **about: Any) -> models.Taken:
        """Add a file; `about` may have client, project, urn, title and written_at."""
        file = Path(path)
        (taken,) = (await self.send(calls.upload([Upload(file, name or file.name)], **about))).items
        return taken

    def documents(self, **wanted: Any) -> AsyncIterator[models.Document]:
        """All documents that fit (client, project, status, type, name, container, top), the newest first."""
        return self._walk(lambda cursor: calls.list_documents(cursor=cursor, **wanted))

    async def document(self, document: int) -> models.DocumentDetail:
        return await self.send(calls.show_document(document))

    async def pages(self, document: int) -> list[models.PageStatus]:
        return (await self.send(calls.list_pages(document))).items

    def texts(self, document: int) -> AsyncIterator[models.PageText]:
        return self._walk(lambda cursor: calls.list_texts(document, cursor))

    def chunks(self, document: int, page: int | None = None) -> AsyncIterator[models.Chunk]:
        return self._walk(lambda cursor: calls.list_chunks(document, page, cursor))

    async def original(self, document: int) -> bytes:
        return await self.send(calls.load_original(document))

    async def image(self, document: int, page: int, size: str = "page") -> bytes:
        """A picture of a page, as WebP."""
        return await self.send(calls.load_image(document, page, size))

    async def retry_document(
        self, document: int, phase: str | None = None, page: int | None = None, chunk: int | None = None
    ) -> models.Retried:
        return await self.send(calls.retry_document(document, phase, page, chunk))

    async def reindex(self, document: int) -> int:
        return (await self.send(calls.reindex_document(document))).document

    async def impact(self, document: int) -> models.Impact:
        return await self.send(calls.preview_removal(document))

    async def remove(self, document: int) -> models.Impact:
        return await self.send(calls.remove_document(document))

    def events(self, document: int, last_id: str | None = None) -> AsyncIterator[models.DocumentEvent]:
        """Progress until the document has ended; a stream that breaks is resumed where it was."""
        reader = core.EventReader(core.make_document_event, last_id)
        return self._follow(reader, lambda last: calls.stream_events(document, last))

    async def _follow(self, reader: core.EventReader[E], make: Callable[[str | None], Call[bytes]]) -> AsyncIterator[E]:
        failures = 0
        while not reader.is_over:
            try:
                async for event in self._stream(make(reader.last_id), reader):
                    failures = 0
                    yield event
                    if core.is_last(event):
                        return
            except httpx.TransportError as error:
                failures += 1
                if failures >= core.ATTEMPTS:
                    raise NotAnswering(f"The server does not answer ({type(error).__name__}).") from error
            if not reader.is_over:
                await self._pause(choose_pause(max(failures, 1), None))

    async def _stream(self, call: Call[bytes], reader: core.EventReader[E]) -> AsyncIterator[E]:
        async with self._http.stream("GET", call.path, headers=dict(call.headers), timeout=core.QUIET) as answer:
            reader.is_over = answer.status_code == core.NOTHING_NEW
            if answer.status_code >= 400:
                raise read_problem(answer.status_code, await answer.aread())
            async for line in answer.aiter_lines():
                for event in reader.feed(line):
                    yield event

    # --- knowledge

    async def search(self, query: str, **how: Any) -> models.Hits:
        """`how` may have alpha, max_results, knowledge_types, after, columns, expand, client and project."""
        return await self.send(calls.search(query, **how))

    async def nodes(self, name: str = "", **where: Any) -> Sequence[models.Node]:
        return (await self.send(calls.find_nodes(name, **where))).items

    async def node(self, key: str, **where: Any) -> models.NodeDetail:
        return await self.send(calls.show_node(key, **where))

    async def path(self, source: str, target: str, **where: Any) -> Sequence[models.Step] | None:
        return (await self.send(calls.find_path(source, target, **where))).steps

    async def merge(self, alias: str, key: str, client: str | None = None) -> models.Merge:
        return await self.send(calls.merge_nodes(alias, key, client))

    async def unmerge(self, merge: int, client: str | None = None) -> models.Merge:
        return await self.send(calls.undo_merge(merge, client))

    async def ingest(self, content: str, source_urn: str, *, wait: bool = True, **about: Any) -> models.Ingested:
        return await self.send(calls.ingest(content, source_urn, wait=wait, **about))

    # --- ask

    async def ask(self, question: str, **how: Any) -> models.Answer:
        """The whole answer; `how` may have client, project and conversation."""
        reader = core.AnswerReader()
        async for _ in self._stream_answer(question, reader, how):
            pass
        return reader.finish()

    async def ask_events(self, question: str, **how: Any) -> AsyncIterator[models.AnswerEvent]:
        """The answer as it is made; leaving the loop stops it, except in a conversation."""
        async for event in self._stream_answer(question, core.AnswerReader(), how):
            yield event

    async def _stream_answer(
        self, question: str, reader: core.AnswerReader, how: dict[str, Any]
    ) -> AsyncIterator[models.AnswerEvent]:
        call = calls.ask(question, **how)
        with ExitStack() as stack:
            asked = core.make_request(call, stack)
            try:
                async with self._http.stream(call.method, call.path, **asked, timeout=core.QUIET) as answer:
                    if answer.status_code >= 400:
                        raise read_problem(answer.status_code, await answer.aread())
                    async for line in answer.aiter_lines():
                        for event in reader.feed(line):
                            yield event
            except httpx.TransportError as error:
                raise NotAnswering(f"The server does not answer ({type(error).__name__}).") from error

    async def begin_conversation(self, **where: Any) -> models.Conversation:
        return await self.send(calls.begin_conversation(**where))

    def conversations(self) -> AsyncIterator[models.Conversation]:
        return self._walk(calls.list_conversations)

    async def stop_answer(self, conversation: int) -> bool:
        return (await self.send(calls.stop_answer(conversation))).stopped

    async def remove_conversation(self, conversation: int) -> None:
        await self.send(calls.remove_conversation(conversation))

    # --- runs

    async def start_run(self, request: str, **how: Any) -> models.Run:
        """Let agents do something; `how` may have client, project, repository and background."""
        return await self.send(calls.start_run(request, **how))

    def runs(self, **wanted: Any) -> AsyncIterator[models.Run]:
        """All runs that fit (state, client, project, q), the newest first."""
        return self._walk(lambda cursor: calls.list_runs(cursor=cursor, **wanted))

    async def run(self, run: int) -> models.RunDetail:
        return await self.send(calls.show_run(run))

    def steps(self, run: int) -> AsyncIterator[models.RunStep]:
        return self._walk(lambda cursor: calls.list_steps(run, cursor))

    def effects(self, run: int) -> AsyncIterator[models.Effect]:
        return self._walk(lambda cursor: calls.list_effects(run, cursor))

    async def stop_run(self, run: int) -> models.Run:
        return await self.send(calls.stop_run(run))

    def run_events(self, run: int, last_id: str | None = None) -> AsyncIterator[models.RunEvent]:
        """What is new of a run until it is over; a stream that breaks is resumed where it was."""
        reader = core.EventReader(core.make_run_event, last_id)
        return self._follow(reader, lambda last: calls.stream_run(run, last))

    def questions(self, **wanted: Any) -> AsyncIterator[models.Question]:
        """Questions that wait for a person (run), or `all` of them, the newest first."""
        return self._walk(lambda cursor: calls.list_questions(cursor=cursor, **wanted))

    async def answer_question(self, question: int, choice: str | None = None, answer: str = "") -> models.Question:
        return await self.send(calls.answer_question(question, choice, answer))

    # --- tasks and queues

    def tasks(self, **wanted: Any) -> AsyncIterator[models.Task]:
        """All tasks that fit (queue, kind, status, text …), the newest first."""
        return self._walk(lambda cursor: calls.list_tasks(cursor=cursor, **wanted))

    async def task(self, task: int) -> models.TaskDetail:
        return await self.send(calls.show_task(task))

    async def why(self, task: int) -> models.Why:
        return await self.send(calls.explain_task(task))

    async def retry_task(self, task: int) -> models.Retried:
        return await self.send(calls.retry_task(task))

    async def cancel_task(self, task: int) -> models.Cancelled:
        return await self.send(calls.cancel_task(task))

    async def queues(self) -> Sequence[models.Queue]:
        return (await self.send(calls.list_queues())).items
