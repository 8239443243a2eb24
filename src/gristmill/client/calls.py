"""Every call of the API as a value: what is sent, and what type comes back; both clients send the same ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar
from uuid import uuid4

from gristmill.client import models

T = TypeVar("T")
Params = Mapping[str, str | int | float | bool]


@dataclass(frozen=True)
class Upload:
    """A file that is opened anew for every attempt."""

    path: Path
    name: str  # with the folders that it is to have there


@dataclass(frozen=True)
class Call(Generic[T]):
    """One call; `kind` is the type of its answer, None where the bytes themselves are meant."""

    method: str
    path: str
    kind: type[T]
    params: Params = field(default_factory=dict[str, str | int | float | bool])
    json: Any = None
    files: Sequence[Upload] = ()
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


def get(path: str, kind: type[T], **params: Any) -> Call[T]:
    return Call("GET", path, kind, without_none(params))


def write(method: str, path: str, kind: type[T], json: Any = None, **params: Any) -> Call[T]:
    """A change: its key lets the server do it once, however often it is sent."""
    return Call(method, path, kind, without_none(params), json, headers={"Idempotency-Key": str(uuid4())})


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


# --- documents


def upload(files: Sequence[Upload], **about: Any) -> Call[models.TakenAll]:
    return Call("POST", "/documents", models.TakenAll, without_none(about), files=files)


def list_documents(**wanted: Any) -> Call[models.Portion[models.Document]]:
    return get("/documents", models.Portion[models.Document], **wanted)


def show_document(document: int) -> Call[models.DocumentDetail]:
    return get(f"/documents/{document}", models.DocumentDetail)


def list_pages(document: int) -> Call[models.Portion[models.PageStatus]]:
    return get(f"/documents/{document}/pages", models.Portion[models.PageStatus])


def list_texts(document: int, cursor: str | None = None) -> Call[models.Portion[models.PageText]]:
    return get(f"/documents/{document}/text", models.Portion[models.PageText], cursor=cursor)


def list_chunks(document: int, page: int | None, cursor: str | None) -> Call[models.Portion[models.Chunk]]:
    return get(f"/documents/{document}/chunks", models.Portion[models.Chunk], page=page, cursor=cursor)


def retry_document(document: int, phase: str | None, page: int | None, chunk: int | None) -> Call[models.Retried]:
    return write("POST", f"/documents/{document}/retry", models.Retried, phase=phase, page=page, chunk=chunk)


def reindex_document(document: int) -> Call[models.Reindexed]:
    return write("POST", f"/documents/{document}/reindex", models.Reindexed)


def preview_removal(document: int) -> Call[models.Impact]:
    return get(f"/documents/{document}/impact", models.Impact)


def remove_document(document: int) -> Call[models.Impact]:
    return write("DELETE", f"/documents/{document}", models.Impact)


def stream_events(document: int, last_id: str | None) -> Call[bytes]:
    return _stream(f"/documents/{document}/events", last_id)


def _stream(path: str, last_id: str | None) -> Call[bytes]:
    headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
    return Call("GET", path, bytes, headers=headers)


def load_original(document: int) -> Call[bytes]:
    return get(f"/documents/{document}/original", bytes)


def load_image(document: int, page: int, size: str) -> Call[bytes]:
    return get(f"/documents/{document}/pages/{page}/image", bytes, size=size)


# --- knowledge


def search(query: str, **how: Any) -> Call[models.Hits]:
    return Call("POST", "/kb/search", models.Hits, json={"query": query, **without_none(how)})


def find_nodes(name: str, **where: Any) -> Call[models.Portion[models.Node]]:
    return get("/kb/nodes", models.Portion[models.Node], name=name, **where)


def show_node(key: str, **where: Any) -> Call[models.NodeDetail]:
    return get("/kb/node", models.NodeDetail, key=key, **where)


def find_path(source: str, target: str, **where: Any) -> Call[models.Path]:
    return get("/kb/paths", models.Path, source=source, target=target, **where)


def merge_nodes(alias: str, key: str, client: str | None) -> Call[models.Merge]:
    return write("POST", "/kb/merges", models.Merge, without_none({"alias": alias, "key": key, "client": client}))


def undo_merge(merge: int, client: str | None) -> Call[models.Merge]:
    return write("DELETE", f"/kb/merges/{merge}", models.Merge, client=client)


def ingest(content: str, source_urn: str, *, wait: bool, **about: Any) -> Call[models.Ingested]:
    body = {"content": content, "source_urn": source_urn, **without_none(about)}
    return write("POST", "/kb/ingest/full", models.Ingested, body, **({} if wait else {"async": 1}))


# --- ask


def ask(question: str, **how: Any) -> Call[bytes]:
    """A stream of events: the answer may take minutes, and a stream says meanwhile that somebody works."""
    body = {"question": question, "stream": True, **without_none(how)}
    return Call("POST", "/ask", bytes, json=body, headers={"Accept": "text/event-stream"})


def begin_conversation(**where: Any) -> Call[models.Conversation]:
    return write("POST", "/conversations", models.Conversation, without_none(where))


def list_conversations(cursor: str | None) -> Call[models.Portion[models.Conversation]]:
    return get("/conversations", models.Portion[models.Conversation], cursor=cursor)


def stop_answer(conversation: int) -> Call[models.Stopped]:
    return write("POST", f"/conversations/{conversation}/stop", models.Stopped)


def remove_conversation(conversation: int) -> Call[bytes]:
    return write("DELETE", f"/conversations/{conversation}", bytes)


# --- runs


def start_run(request: str, **how: Any) -> Call[models.Run]:
    return write("POST", "/runs", models.Run, {"request": request, **without_none(how)})


def list_runs(**wanted: Any) -> Call[models.Portion[models.Run]]:
    return get("/runs", models.Portion[models.Run], **wanted)


def show_run(run: int) -> Call[models.RunDetail]:
    return get(f"/runs/{run}", models.RunDetail)


def list_steps(run: int, cursor: str | None) -> Call[models.Portion[models.RunStep]]:
    return get(f"/runs/{run}/steps", models.Portion[models.RunStep], cursor=cursor)


def list_effects(run: int, cursor: str | None) -> Call[models.Portion[models.Effect]]:
    return get(f"/runs/{run}/effects", models.Portion[models.Effect], cursor=cursor)


def stop_run(run: int) -> Call[models.Run]:
    return write("POST", f"/runs/{run}/stop", models.Run)


def stream_run(run: int, last_id: str | None) -> Call[bytes]:
    return _stream(f"/runs/{run}/events", last_id)


def list_questions(**wanted: Any) -> Call[models.Portion[models.Question]]:
    return get("/questions", models.Portion[models.Question], **wanted)


def answer_question(question: int, choice: str | None, answer: str) -> Call[models.Question]:
    body = without_none({"choice": choice, "answer": answer})
    return write("POST", f"/questions/{question}/answer", models.Question, body)


# --- tasks and queues


def list_tasks(**wanted: Any) -> Call[models.Portion[models.Task]]:
    return get("/tasks", models.Portion[models.Task], **wanted)


def show_task(task: int) -> Call[models.TaskDetail]:
    return get(f"/tasks/{task}", models.TaskDetail)


def explain_task(task: int) -> Call[models.Why]:
    return get(f"/tasks/{task}/why", models.Why)


def retry_task(task: int) -> Call[models.Retried]:
    return write("POST", f"/tasks/{task}/retry", models.Retried)


def cancel_task(task: int) -> Call[models.Cancelled]:
    return write("POST", f"/tasks/{task}/cancel", models.Cancelled)


def list_queues() -> Call[models.Portion[models.Queue]]:
    return get("/queues", models.Portion[models.Queue])
