"""What both clients share: how a call becomes a request, an answer a value, and a stream events."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, cast

import httpx
import msgspec

from gristmill.client.calls import Call
from gristmill.client.failures import ATTEMPTS, BUSY, ApiError, choose_pause, read_problem
from gristmill.client.models import Answer, AnswerEvent, Document, DocumentEvent, RunEvent, RunNews

T = TypeVar("T")
TIMEOUT = httpx.Timeout(30.0, read=90.0)
QUIET = httpx.Timeout(30.0, read=60.0)  # of an event stream, which sends a sign of life every 15 seconds
NOTHING_NEW = 204  # the document has ended, and we know it
REPEATABLE = ("GET", "HEAD", "DELETE", "PUT")


def make_options(server: str, key: str | None, **more: Any) -> dict[str, Any]:
    """The arguments of httpx's client."""
    headers = {"User-Agent": "gristmill-client"} | ({"Authorization": f"Bearer {key}"} if key else {})
    return {"base_url": f"{server.rstrip('/')}/api", "headers": headers, "timeout": TIMEOUT, **more}


def make_request(call: Call[Any], stack: ExitStack) -> dict[str, Any]:
    """The arguments of one request; files are opened for as long as the stack is."""
    asked: dict[str, Any] = {"params": dict(call.params), "headers": dict(call.headers)}
    if call.files:
        opened = [(one.name, stack.enter_context(one.path.open("rb"))) for one in call.files]
        asked["files"] = [("files", file) for file in opened]
    elif call.json is not None:
        asked["content"] = msgspec.json.encode(call.json)
        asked["headers"] = {"Content-Type": "application/json", **asked["headers"]}
    return asked


def read_answer(call: Call[T], status: int, body: bytes) -> T:
    if status >= 400:
        raise read_problem(status, body)
    if call.kind is bytes:
        return cast(T, body)
    try:
        return msgspec.json.decode(body, type=call.kind)
    except msgspec.MsgspecError as error:
        raise ApiError(status, f"The answer cannot be read ({error}): is it a Gristmill server?") from error


def find_pause(call: Call[Any], attempt: int, answer: httpx.Response | None) -> float | None:
    """Seconds until a call is worth another try; None if it is not."""
    if attempt >= ATTEMPTS:
        return None
    if answer is not None:
        return choose_pause(attempt, answer.headers.get("retry-after")) if answer.status_code in BUSY else None
    safe = call.method in REPEATABLE or "Idempotency-Key" in call.headers
    return choose_pause(attempt, None) if safe else None


@dataclass
class EventLines:
    """Gathers the fields of an event from the lines of a stream (server-sent events)."""

    fields: dict[str, str] = field(default_factory=dict[str, str])

    def take(self, line: str) -> dict[str, str] | None:
        """The fields of the event that this line ends, if it ends one."""
        if line:
            name, _, value = line.partition(":")
            if name:
                self.fields[name] = value.removeprefix(" ")
            return None
        given, self.fields = self.fields, {}
        return given if "data" in given and "event" in given else None


@dataclass
class EventReader(Generic[T]):
    """Makes events of the lines of a stream, and remembers the last id."""

    make: Callable[[str, Mapping[str, str]], T]  # an event of its id and its fields
    last_id: str | None = None
    is_over: bool = False
    lines: EventLines = field(default_factory=EventLines)

    def feed(self, line: str) -> Iterator[T]:
        if given := self.lines.take(line):
            self.last_id = given.get("id", self.last_id)
            yield self.make(self.last_id or "", given)


def make_document_event(id_: str, given: Mapping[str, str]) -> DocumentEvent:
    document = None if given["event"] == "gone" else msgspec.json.decode(given["data"], type=Document)
    return DocumentEvent(id_, given["event"], document)


def make_run_event(id_: str, given: Mapping[str, str]) -> RunEvent:
    return RunEvent(id_, given["event"], msgspec.json.decode(given["data"], type=RunNews))


@dataclass
class AnswerReader:
    """Makes events of the lines of an answer, and knows the answer when it has come."""

    answer: Answer | None = None
    lines: EventLines = field(default_factory=EventLines)

    def feed(self, line: str) -> Iterator[AnswerEvent]:
        if given := self.lines.take(line):
            event = AnswerEvent(given["event"], msgspec.json.decode(given["data"], type=dict[str, Any]))
            self._note(event)
            yield event

    def _note(self, event: AnswerEvent) -> None:
        if event.what == "error":
            raise ApiError(503, str(event.fields.get("detail")))
        found = event.fields if event.what == "answer" else event.fields.get("answer")
        if event.what in ("answer", "message") and found is not None:
            self.answer = msgspec.convert(found, Answer)

    def finish(self) -> Answer:
        if self.answer is None:
            raise ApiError(503, "The answer ended before it was complete: ask again.")
        if self.answer.state == "failed":
            raise ApiError(503, self.answer.error or "The answer failed: ask again.")
        return self.answer


def is_last(event: DocumentEvent | RunEvent) -> bool:
    return event.what != "progress"
