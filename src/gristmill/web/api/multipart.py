"""Reads a multipart body part by part, as it arrives: a file is never in memory or on disk as a whole."""

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import python_multipart
from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header

from gristmill.serving import Problem

MOST_PARTS = 1_000
LONGEST_HEAD = 16_384  # characters of the headers of one part


@dataclass
class BodyPart:
    """A part of a multipart body; `data` must be read before the next part is asked for, or is passed over."""

    field: str
    file: str | None  # the name of the file, with the folders that the sender gave it
    data: AsyncIterator[bytes]


@dataclass
class _Event:
    """What the parser has found: the head of a part, some of its bytes, or its end."""

    head: dict[bytes, bytes] | None = None
    data: bytes | None = None


@dataclass
class _Found:
    """Collects what the parser tells of one piece of the body."""

    events: deque[_Event] = field(default_factory=deque[_Event])
    head: dict[bytes, bytes] = field(default_factory=dict[bytes, bytes])
    name: bytes = b""
    value: bytes = b""

    def begin_part(self) -> None:
        self.head, self.name, self.value = {}, b"", b""

    def add_name(self, data: bytes, start: int, end: int) -> None:
        self.name = _check_head(self.name + data[start:end])

    def add_value(self, data: bytes, start: int, end: int) -> None:
        self.value = _check_head(self.value + data[start:end])

    def end_header(self) -> None:
        self.head[self.name.lower()] = self.value
        self.name = self.value = b""

    def end_head(self) -> None:
        self.events.append(_Event(head=self.head))

    def add_data(self, data: bytes, start: int, end: int) -> None:
        self.events.append(_Event(data=data[start:end]))

    def end_part(self) -> None:
        self.events.append(_Event())


def _check_head(text: bytes) -> bytes:
    if len(text) > LONGEST_HEAD:
        raise Problem(422, "The header of a part is too long.")
    return text


async def read_parts(request: Request) -> AsyncGenerator[BodyPart]:
    """The parts of the request in their order."""
    found = _Found()
    events = _read_events(request, found)
    seen = 0
    async for event in events:
        if event.head is None:
            continue
        seen += 1
        if seen > MOST_PARTS:
            raise Problem(422, f"A request may bring at most {MOST_PARTS:,} files: send the others in further ones.")
        data = _read_data(events)
        yield _make_part(event.head, data)
        async for _ in data:  # what nobody wanted to read
            pass


async def _read_data(events: AsyncIterator[_Event]) -> AsyncGenerator[bytes]:
    async for event in events:
        if event.data is None:
            return
        yield event.data
    raise broken()


async def _read_events(request: Request, found: _Found) -> AsyncGenerator[_Event]:
    parser = _make_parser(request, found)
    async for piece in request.stream():
        try:
            parser.write(piece)
        except FormParserError as error:
            raise broken() from error
        while found.events:
            yield found.events.popleft()


def _make_parser(request: Request, found: _Found) -> Any:
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise Problem(415, "Send files as multipart/form-data, each in a field “files”.")
    callbacks: dict[str, Any] = {
        "on_part_begin": found.begin_part,
        "on_header_field": found.add_name,
        "on_header_value": found.add_value,
        "on_header_end": found.end_header,
        "on_headers_finished": found.end_head,
        "on_part_data": found.add_data,
        "on_part_end": found.end_part,
    }
    return python_multipart.MultipartParser(boundary, cast(Any, callbacks))


def _make_part(head: dict[bytes, bytes], data: AsyncIterator[bytes]) -> BodyPart:
    kind, options = parse_options_header(head.get(b"content-disposition", b""))
    if kind != b"form-data" or b"name" not in options:
        raise broken()
    file = options.get(b"filename")
    return BodyPart(_text(options[b"name"]), None if file is None else _text(file), data)


def _text(name: bytes) -> str:
    """Browsers send names in UTF-8; what is not is shown as far as it can be."""
    return name.decode("utf-8", "replace")


def broken() -> Problem:
    return Problem(422, "The multipart body ends too early or is damaged: send it again.")
