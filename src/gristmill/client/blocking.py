"""The client that waits for its answers."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx

from gristmill.client import calls, core, models
from gristmill.client.calls import Call, Upload
from gristmill.client.failures import NotAnswering, choose_pause, read_problem

T = TypeVar("T")
E = TypeVar("E", models.DocumentEvent, models.RunEvent)


class Client:
    """Calls a server; `with Client("http://127.0.0.1:6455", key) as mill`."""

    def __init__(self, server: str, key: str | None = None, **options: Any) -> None:
        self._http = httpx.Client(**core.make_options(server, key, **options))
        self._pause: Callable[[float], None] = time.sleep  # noqa: TID251 a blocking client waits

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def send(self, call: Call[T]) -> T:
        """Any call of `gristmill.client.calls`; one that meets a busy server is sent again."""
        attempt = 0
        while True:
            attempt += 1
            answer, error = self._try(call)
            pause = core.find_pause(call, attempt, answer)
            if pause is None:
                if answer is None:
                    raise NotAnswering(f"The server does not answer ({type(error).__name__}).") from error
                return core.read_answer(call, answer.status_code, answer.content)
            self._pause(pause)

    def _try(self, call: Call[Any]) -> tuple[httpx.Response | None, Exception | None]:
        with ExitStack() as stack:
            try:
                return self._http.request(call.method, call.path, **core.make_request(call, stack)), None
            except httpx.TransportError as error:
                return None, error

    def _walk(self, make: Callable[[str | None], Call[models.Portion[T]]]) -> Iterator[T]:
        """All items of a list, portion by portion."""
        cursor: str | None = None
        while True:
            portion = self.send(make(cursor))
            yield from portion.items
            if (cursor := portion.next) is None:
                return

    # --- documents

    def upload(self, path: str | Path, *, name: str | None = None, **about: Any) -> models.Taken:
        """Add a file; `about` may have client, project, urn, title and written_at."""
        file = Path(path)
        (taken,) = self.send(calls.upload([Upload(file, name or file.name)], **about)).items
        return taken

    def documents(self, **wanted: Any) -> Iterator[models.Document]:
        """All documents that fit (client, project, status, type, name, container, top), the newest first."""
        return self._walk(lambda cursor: calls.list_documents(cursor=cursor, **wanted))

    def document(self, document: int) -> models.DocumentDetail:
        return self.send(calls.show_document(document))

    def pages(self, document: int) -> list[models.PageStatus]:
        return self.send(calls.list_pages(document)).items

    def texts(self, document: int) -> Iterator[models.PageText]:
        return self._walk(lambda cursor: calls.list_texts(document, cursor))

    def chunks(self, document: int, page: int | None = None) -> Iterator[models.Chunk]:
        return self._walk(lambda cursor: calls.list_chunks(document, page, cursor))

    def original(self, document: int) -> bytes:
        return self.send(calls.load_original(document))

    def image(self, document: int, page: int, size: str = "page") -> bytes:
        """A picture of a page, as WebP."""
        return self.send(calls.load_image(document, page, size))

    def retry_document(
        self, document: int, phase: str | None = None, page: int | None = None, chunk: int | None = None
    ) -> models.Retried:
        return self.send(calls.retry_document(document, phase, page, chunk))

    def reindex(self, document: int) -> int:
        return self.send(calls.reindex_document(document)).document

    def impact(self, document: int) -> models.Impact:
        return self.send(calls.preview_removal(document))

    def remove(self, document: int) -> models.Impact:
        return self.send(calls.remove_document(document))

    def events(self, document: int, last_id: str | None = None) -> Iterator[models.DocumentEvent]:
        """Progress until the document has ended; a stream that breaks is resumed where it was."""
        reader = core.EventReader(core.make_document_event, last_id)
        return self._follow(reader, lambda last: calls.stream_events(document, last))

    def _follow(self, reader: core.EventReader[E], make: Callable[[str | None], Call[bytes]]) -> Iterator[E]:
        failures = 0
        while not reader.is_over:
            try:
                for event in self._stream(make(reader.last_id), reader):
                    failures = 0
                    yield event
                    if core.is_last(event):
                        return
            except httpx.TransportError as error:
                failures += 1
                if failures >= core.ATTEMPTS:
                    raise NotAnswering(f"The server does not answer ({type(error).__name__}).") from error
            if not reader.is_over:
                self._pause(choose_pause(max(failures, 1), None))

    def _stream(self, call: Call[bytes], reader: core.EventReader[E]) -> Iterator[E]:
        with self._http.stream("GET", call.path, headers=dict(call.headers), timeout=core.QUIET) as answer:
            reader.is_over = answer.status_code == core.NOTHING_NEW
            if answer.status_code >= 400:
                raise read_problem(answer.status_code, answer.read())
            for line in answer.iter_lines():
                yield from reader.feed(line)

    # --- knowledge

    def search(self, query: str, **how: Any) -> models.Hits:
        """`how` may have alpha, max_results, knowledge_types, after, columns, expand, client and project."""
        return self.send(calls.search(query, **how))

    def nodes(self, name: str = "", **where: Any) -> Sequence[models.Node]:
        return self.send(calls.find_nodes(name, **where)).items

    def node(self, key: str, **where: Any) -> models.NodeDetail:
        return self.send(calls.show_node(key, **where))

    def path(self, source: str, target: str, **where: Any) -> Sequence[models.Step] | None:
        return self.send(calls.find_path(source, target, **where)).steps

    def merge(self, alias: str, key: str, client: str | None = None) -> models.Merge:
        return self.send(calls.merge_nodes(alias, key, client))

    def unmerge(self, merge: int, client: str | None = None) -> models.Merge:
        return self.send(calls.undo_merge(merge, client))

    def ingest(self, content: str, source_urn: str, *, wait: bool = True, **about: Any) -> models.Ingested:
        return self.send(calls.ingest(content, source_urn, wait=wait, **about))

    # --- ask

    def ask(self, question: str, **how: Any) -> models.Answer:
        """The whole answer; `how` may have client, project and conversation."""
        reader = core.AnswerReader()
        for _ in self._stream_answer(question, reader, how):
            pass
        return reader.finish()

    def ask_events(self, question: str, **how: Any) -> Iterator[models.AnswerEvent]:
        """The answer as it is made; leaving the loop stops it, except in a conversation."""
        yield from self._stream_answer(question, core.AnswerReader(), how)

    def _stream_answer(
        self, question: str, reader: core.AnswerReader, how: dict[str, Any]
    ) -> Iterator[models.AnswerEvent]:
        call = calls.ask(question, **how)
        with ExitStack() as stack:
            asked = core.make_request(call, stack)
            try:
                with self._http.stream(call.method, call.path, **asked, timeout=core.QUIET) as answer:
                    if answer.status_code >= 400:
                        raise read_problem(answer.status_code, answer.read())
                    for line in answer.iter_lines():
                        yield from reader.feed(line)
            except httpx.TransportError as error:
                raise NotAnswering(f"The server does not answer ({type(error).__name__}).") from error

    def begin_conversation(self, **where: Any) -> models.Conversation:
        return self.send(calls.begin_conversation(**where))

    def conversations(self) -> Iterator[models.Conversation]:
        return self._walk(calls.list_conversations)

    def stop_answer(self, conversation: int) -> bool:
        return (self.send(calls.stop_answer(conversation))).stopped

    def remove_conversation(self, conversation: int) -> None:
        self.send(calls.remove_conversation(conversation))

    # --- runs

    def start_run(self, request: str, **how: Any) -> models.Run:
        """Let agents do something; `how` may have client, project, repository and background."""
        return self.send(calls.start_run(request, **how))

    def runs(self, **wanted: Any) -> Iterator[models.Run]:
        """All runs that fit (state, client, project, q), the newest first."""
        return self._walk(lambda cursor: calls.list_runs(cursor=cursor, **wanted))

    def run(self, run: int) -> models.RunDetail:
        return self.send(calls.show_run(run))

    def steps(self, run: int) -> Iterator[models.RunStep]:
        return self._walk(lambda cursor: calls.list_steps(run, cursor))

    def effects(self, run: int) -> Iterator[models.Effect]:
        return self._walk(lambda cursor: calls.list_effects(run, cursor))

    def stop_run(self, run: int) -> models.Run:
        return self.send(calls.stop_run(run))

    def run_events(self, run: int, last_id: str | None = None) -> Iterator[models.RunEvent]:
        """What is new of a run until it is over; a stream that breaks is resumed where it was."""
        reader = core.EventReader(core.make_run_event, last_id)
        return self._follow(reader, lambda last: calls.stream_run(run, last))

    def questions(self, **wanted: Any) -> Iterator[models.Question]:
        """Questions that wait for a person (run), or `all` of them, the newest first."""
        return self._walk(lambda cursor: calls.list_questions(cursor=cursor, **wanted))

    def answer_question(self, question: int, choice: str | None = None, answer: str = "") -> models.Question:
        return self.send(calls.answer_question(question, choice, answer))

    # --- tasks and queues

    def tasks(self, **wanted: Any) -> Iterator[models.Task]:
        """All tasks that fit (queue, kind, status, text …), the newest first."""
        return self._walk(lambda cursor: calls.list_tasks(cursor=cursor, **wanted))

    def task(self, task: int) -> models.TaskDetail:
        return self.send(calls.show_task(task))

    def why(self, task: int) -> models.Why:
        return self.send(calls.explain_task(task))

    def retry_task(self, task: int) -> models.Retried:
        return self.send(calls.retry_task(task))

    def cancel_task(self, task: int) -> models.Cancelled:
        return self.send(calls.cancel_task(task))

    def queues(self) -> Sequence[models.Queue]:
        return self.send(calls.list_queues()).items
