"""Commands that talk to a `gristmill up` elsewhere: the same output, made of what its API answers."""

import socket
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from itertools import islice
from pathlib import Path
from typing import Any

from gristmill.agents import (
    CheckpointSize,
    EffectLine,
    EffectRow,
    Question,
    Run,
    RunNews,
    RunView,
    RunWish,
    StepLine,
    WantedRuns,
    is_waiting,
)
from gristmill.cli.elsewhere import find_server
from gristmill.client import ApiError, Client, Document, NotAnswering, models
from gristmill.documents import (
    PagePhase,
    PageProgress,
    PhaseProgress,
    Progress,
    Removed,
    Skipped,
    Taken,
    UnitFailure,
)
from gristmill.errors import Refused, Transient, Unknown
from gristmill.ids import DocumentId, ScopeId, TaskId
from gristmill.knowledge import Hit, Hits, Snippet
from gristmill.queue import Cancelling, HistoryEvent, RetryRefusal, Revived, Task, Why
from gristmill.scopes import GLOBAL, Scope
from gristmill.settings import load

AT_ONCE = 4  # files that are sent at the same time


@contextmanager
def remote_client() -> Generator[Client]:
    """The client of the server elsewhere; its errors become those of a command."""
    settings = load()
    server = find_server()
    assert server is not None
    key = settings.key.get_secret_value() if settings.key else None
    try:
        with Client(server, key) as client:
            yield client
    except ApiError as error:
        raise (Unknown if error.status == 404 else Refused)(error.sentence) from error
    except NotAnswering as error:
        raise Transient(f"{server} does not answer: is gristmill up running there?") from error


# --- documents


def send_files(files: Sequence[Path], scope: Scope, tell: Callable[[str], None]) -> list[Taken]:
    """Several at a time; one that cannot be sent does not stop the others."""
    with remote_client() as client, ThreadPoolExecutor(AT_ONCE) as threads:

        def send(path: Path) -> Taken:
            tell(path.name)
            return _send_file(client, path, scope)

        return list(threads.map(send, files))


def _send_file(client: Client, path: Path, scope: Scope) -> Taken:
    urn = f"file://{socket.gethostname()}{path.resolve().as_uri().removeprefix('file://')}"
    try:
        taken = client.upload(path, urn=urn, client=scope.client or None, project=scope.project or None)
    except OSError as error:
        return Taken(path.name, urn, None, "refused", f"it cannot be read ({error.strerror or error})")
    except ApiError as error:
        if error.status not in (413, 422):
            raise
        return Taken(path.name, urn, None, "refused", error.sentence)
    document = None if taken.document is None else DocumentId(taken.document)
    return Taken(taken.name, taken.urn, document, taken.status, taken.reason)  # pyright: ignore[reportArgumentType] one of its words


def follow_remote(ids: Iterable[DocumentId]) -> list[Progress]:
    """Each document until it has ended."""
    ended: list[Progress] = []
    with remote_client() as client:
        for id_ in ids:
            last = None
            for event in client.events(id_):
                if event.document is not None:
                    last = make_progress(event.document)
            if last is not None:
                ended.append(last)
    return ended


def fetch_documents(limit: int, before: int | None, **wanted: Any) -> list[Progress]:
    with remote_client() as client:
        found = (make_progress(one) for one in client.documents(limit=min(limit, 200), **wanted))
        return list(islice((one for one in found if before is None or one.id < before), limit))


def fetch_document(document: int) -> tuple[Progress, list[Progress], list[PageProgress], models.DocumentDetail]:
    """A document, its parts, its pages, and all that is known of it."""
    with remote_client() as client:
        detail = client.document(document)
        parts = [make_progress(one) for one in client.documents(container=document, limit=200)]
        return make_progress(detail), parts, [_make_page(one) for one in client.pages(document)], detail


def make_failures(found: Iterable[models.Failure]) -> list[UnitFailure]:
    return [UnitFailure(TaskId(one.task), one.kind, one.page, one.ordinal, one.error, one.attempts) for one in found]


def make_skipped(found: Iterable[models.Skipped]) -> list[Skipped]:
    return [Skipped(one.phase, one.units, one.reason) for one in found]


def fetch_texts(document: int, page: int | None) -> dict[int, str]:
    with remote_client() as client:
        texts = {one.number: one.text for one in client.texts(document)}
    if page is not None and page not in texts:
        raise Unknown(f"There is no text of page {page} of document {document}, or not yet.")
    return texts if page is None else {page: texts[page]}


def retry_elsewhere(document: int, phase: str | None) -> tuple[Revived, str]:
    with remote_client() as client:
        status = client.document(document).status
        return make_revived(client.retry_document(document, phase)), status


def reindex_elsewhere(document: int) -> DocumentId:
    with remote_client() as client:
        return DocumentId(client.reindex(document))


def remove_elsewhere(documents: Sequence[int], confirm: Callable[[str], None]) -> Removed:
    with remote_client() as client:
        names = {one: client.document(one).name for one in documents}
        taken = sum(client.impact(one).documents for one in documents)
        if taken > 1:
            confirm(f"{taken} documents: {', '.join(names.values())} and what lies in them")
        return add_up(client.remove(one) for one in documents)


def add_up(gone: Iterable[models.Impact]) -> Removed:
    counts = [[getattr(one, field.name) for field in fields(Removed)] for one in gone]
    return Removed(*(sum(column) for column in zip(*counts, strict=True)))


def make_progress(one: Document) -> Progress:
    phases = tuple(PhaseProgress(*_values(phase, PhaseProgress._fields)) for phase in one.phases)
    values: dict[str, Any] = {field.name: getattr(one, field.name) for field in fields(Progress)}
    values["phases"] = phases
    return Progress(**values)


def _make_page(one: models.PageStatus) -> PageProgress:
    phases = tuple(
        PagePhase(
            phase.name,
            phase.label,
            phase.status,
            phase.error,
            None,
            phase.started_at,
            phase.finished_at,
            phase.retries,
            None,
        )
        for phase in one.phases
    )
    return PageProgress(one.number, one.method, one.chunks, phases)


def _values(one: object, names: Iterable[str]) -> list[Any]:
    return [getattr(one, name) for name in names]


# --- search


def search_elsewhere(query: str, scope: Scope | None, *, type: str | None, limit: int, **how: Any) -> Hits:
    where = _name_view(scope)
    with remote_client() as client:
        types = [type] if type else None
        found = client.search(query, max_results=min(limit, 200), knowledge_types=types, **where, **how)
    hits = Hits(_make_hit(one) for one in found.items)
    hits.note = found.note
    return hits


def _name_view(scope: Scope | None) -> dict[str, str | None]:
    """What is looked at, as the API names it: without a client, all that the key sees."""
    if scope is None:
        return {"client": None, "project": None}
    return {"client": scope.client or str(GLOBAL), "project": scope.project or None}


def _make_hit(one: models.Hit) -> Hit:
    shown: dict[str, Any] = {field.name: getattr(one, field.name) for field in fields(Hit) if hasattr(one, field.name)}
    shown.update(snippet=Snippet(one.snippet.text, tuple(one.snippet.highlights)), via=tuple(one.via))
    return Hit(**shown)


# --- ask


def ask_elsewhere(
    question: str, scope: Scope | None, conversation: int | bool | None
) -> Generator[tuple[str, dict[str, Any]]]:
    """The answer as it is made there. If the reader of a conversation leaves, its answer is stopped."""
    where = _name_view(scope)
    with remote_client() as client:
        number = conversation or None
        if conversation is True:  # it belongs to one client or to GLOBAL, never to all clients
            number = client.begin_conversation(**({} if scope in (None, GLOBAL) else where)).id
        is_told = number is None
        try:
            for event in client.ask_events(question, **where, conversation=number):
                if not is_told:  # only now: the server knows this conversation
                    yield "conversation", {"id": number}
                    is_told = True
                yield event.what, event.fields
        except (GeneratorExit, KeyboardInterrupt):
            if number is not None:
                client.stop_answer(number)
            raise


# --- runs


def start_elsewhere(wanted: RunWish) -> Run:
    where = {"client": wanted.scope.client or None, "project": wanted.scope.project or None}
    how = {"repository": wanted.repository, "background": not wanted.foreground}
    with remote_client() as client:
        return make_run(client.start_run(wanted.request, **where, **how))


def follow_elsewhere(run: int, last_id: str | None, tell: Callable[[RunNews], None]) -> RunNews:
    """The news with which it ended, or with which nothing goes on without a person."""
    with remote_client() as client:
        for event in client.run_events(run, last_id):
            news = _make_news(event)
            tell(news)
            if news.has_paused:
                return news
    raise Unknown(f"There is no run {run} any more.")


def fetch_runs(wanted: WantedRuns, limit: int) -> list[Run]:
    state = wanted.states[0] if wanted.states else None
    fits = {"state": state, "client": wanted.client, "project": wanted.project, "q": wanted.text}
    with remote_client() as client:
        return [make_run(one) for one in islice(client.runs(limit=min(limit, 500), **fits), limit)]


def fetch_run(run: int) -> RunView:
    with remote_client() as client:
        found = client.run(run)
        steps = [_make_line(one) for one in client.steps(run)]
        effects = [_make_effect(one) for one in client.effects(run)]
        questions = [_make_question(one) for one in client.questions(run=run, all=True)]
    size = CheckpointSize(found.checkpoints, found.checkpoint_bytes)
    return RunView(make_run(found), steps, effects, questions, size)


def answer_elsewhere(question: int, choice: str | None, words: str) -> Question:
    with remote_client() as client:
        return _make_question(client.answer_question(question, choice, words))


def stop_elsewhere(run: int) -> Run:
    with remote_client() as client:
        return make_run(client.stop_run(run))


def make_run(one: models.Run) -> Run:
    return Run(**_take(one, Run), scope=ScopeId(0), fence=0)


def _make_line(one: models.RunStep | models.RunLine) -> StepLine:
    waits = one.waits if isinstance(one, models.RunLine) else is_waiting(one.output)
    known = _take(one, StepLine)
    known["waits"] = waits
    return StepLine(**known)


def _make_effect(one: models.Effect) -> EffectRow:
    return EffectRow(**_take(one, EffectRow), hash=b"")


def _make_question(one: models.Question) -> Question:
    withdrawn = one.asked_at if one.state == "withdrawn" else None  # the API says that it was withdrawn, but not when
    return Question(**_take(one, Question), scope=ScopeId(0), key="", withdrawn_at=withdrawn)


def _make_news(event: models.RunEvent) -> RunNews:
    news = event.news
    return RunNews(
        event.id,
        make_run(news.run),
        [_make_line(one) for one in news.steps],
        [EffectLine(**_take(one, EffectLine)) for one in news.effects],
        [_make_question(one) for one in news.questions],
    )


def _take(one: object, kind: type[Any]) -> dict[str, Any]:
    """The fields of one of our types that an answer has."""
    return {field.name: getattr(one, field.name) for field in fields(kind) if hasattr(one, field.name)}


# --- tasks


def fetch_queues() -> Sequence[models.Queue]:
    with remote_client() as client:
        return client.queues()


def fetch_tasks(limit: int, **wanted: Any) -> list[Task]:
    with remote_client() as client:
        return [make_task(one) for one in islice(client.tasks(limit=min(limit, 500), **wanted), limit)]


def fetch_task(task: int) -> tuple[Task, list[HistoryEvent], Why]:
    with remote_client() as client:
        found = client.task(task)
    events = [HistoryEvent(one.at, one.what, one.attempt, None, one.text) for one in found.history]
    return make_task(found), events, Why(TaskId(task), found.status, found.why)


def explain_elsewhere(task: int) -> Why:
    with remote_client() as client:
        found = client.why(task)
    return Why(TaskId(found.id), found.state, found.sentence)


def retry_tasks_elsewhere(tasks: Sequence[int]) -> Revived:
    with remote_client() as client:
        done = [make_revived(client.retry_task(one)) for one in tasks]
    return Revived(tuple(t for one in done for t in one.tasks), tuple(r for one in done for r in one.refused))


def cancel_elsewhere(tasks: Sequence[int]) -> Cancelling:
    with remote_client() as client:
        done = [client.cancel_task(one) for one in tasks]
    cancelled = tuple(TaskId(task) for one in done for task in one.cancelled)
    return Cancelling(cancelled, tuple(TaskId(task) for one in done for task in one.asked))


def make_revived(done: models.Retried) -> Revived:
    refused = tuple(RetryRefusal(TaskId(one.id), one.reason) for one in done.refused)
    return Revived(tuple(TaskId(task) for task in done.tasks), refused)


def make_task(one: models.Task) -> Task:
    """A task with all that the API tells; it does not tell which worker holds the task."""
    known: dict[str, Any] = {field.name: getattr(one, field.name, None) for field in fields(Task)}
    known.update(suspect=False, cancel_requested=False, fingerprint=one.cluster, scope=ScopeId(0))
    return Task(**known)
