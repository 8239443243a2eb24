"""Files that come over HTTP: each is brought into the database as it arrives, and taken in by itself."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from datetime import datetime
from pathlib import PurePosixPath
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Query, Request

from gristmill.documents import Item, Staged, Taken, Urgency, hash_of, name_of, of_arrival, stage, take_in
from gristmill.errors import NoSpace, Permanent, Refused, Transient
from gristmill.serving import Caller, Manager, Services, services_of, take_files
from gristmill.web.api.document_answers import TakenAnswers, describe_taken
from gristmill.web.api.multipart import BodyPart, read_parts
from gristmill.web.gate.callers import TOKEN_FIELD
from gristmill.wording import format_bytes

ROUTES = APIRouter(prefix="/documents", tags=["documents"])
SMALL = 1 << 20  # bytes up to which a file goes with its document in one transaction
NAMED = 16  # digits of a file's hash in the URN of one that came without a folder
BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"files": {"type": "array", "items": {"type": "string", "format": "binary"}}},
                    "required": ["files"],
                }
            }
        },
    }
}


@ROUTES.post("", summary="Add files", openapi_extra={**take_files("documents"), **BODY})
async def upload_files(
    request: Request,
    caller: Manager,
    client: Annotated[str | None, Query(max_length=100, description="Whose they are to be.")] = None,
    project: Annotated[str | None, Query(max_length=100)] = None,
    urn: Annotated[
        str | None, Query(max_length=2000, description="Where the file comes from; only for a single file.")
    ] = None,
    title: Annotated[str | None, Query(max_length=300, description="Above all its chunks; only for one file.")] = None,
    written_at: Annotated[datetime | None, Query(description="Its date, with a time zone; only for one file.")] = None,
) -> TakenAnswers:
    """Each part of the multipart body that has a file name is a file. The answer says for each what became of it.

    A name may have folders (`reports/2026/may.pdf`): a file that comes again under the same path is a new version of
    the same document. A file without a folder is the same document only if its content is the same. `urn` names the
    document instead. Several requests at the same time are several times as fast.
    """
    services = services_of(request)
    scope = caller.choose_scope(client, project)
    about: dict[str, Any] = {"title": title, "written_at": written_at}
    found: list[Taken] = []
    services.change_in_parts()  # a file that is there already is left as it is
    async for part in read_parts(request):
        if part.file is None:
            refuse_field(part.field)
            continue
        if found and urn is not None:
            raise Refused("A URN names one document: send the files one by one, or without it.")
        item = Item("", name_of(path_of(part.file)), b"", scope, urgency=_urgency(len(found)), **about)
        found.append(await _take_file(services, caller, part, item, urn))
    if not found:
        raise Refused("There is no file in the request: send each as a part with a file name.")
    return TakenAnswers(items=[describe_taken(one) for one in found])


def refuse_field(name: str) -> None:
    """A client that stands in the body would be left out, and its file would be everybody's: say so before it is."""
    if name != TOKEN_FIELD:
        raise Refused(
            f"The body holds files alone, and no field “{name[:50]}”: client, project and urn go into the query."
        )


def _urgency(place: int) -> Urgency:
    """A person waits for the first of them."""
    return of_arrival(place, Urgency(foreground=True))


async def _take_file(services: Services, caller: Caller, part: BodyPart, item: Item, urn: str | None) -> Taken:
    """What became of one file; only an outage of the database ends the whole request."""
    try:
        content = await _bring(services, part.data)
        item = replace(item, content=content, urn=urn or make_urn(part.file or "", item.name, content))
        async with caller.transaction(services.db) as tx:
            taken = await take_in(tx, item)
            if taken.status in ("added", "changed"):
                await services.record(tx, caller, "add", f"document {taken.document}", name=item.name, urn=item.urn)
        return taken
    except (Transient, NoSpace):
        raise
    except (Permanent, Refused) as error:
        return Taken(item.name, urn or item.name, None, "refused", str(error))


async def _bring(services: Services, data: AsyncIterator[bytes]) -> bytes | Staged:
    """The bytes of a small file; a large one is in the database when this returns."""
    pieces = _limit(data, services.settings.documents.max_bytes)
    first = bytearray()
    async for piece in pieces:
        first += piece
        if len(first) > SMALL:
            return await stage(services.db, _chain(bytes(first), pieces))
    return bytes(first)


async def _limit(data: AsyncIterator[bytes], most: int) -> AsyncGenerator[bytes]:
    size = 0
    async for piece in data:
        size += len(piece)
        if size > most:
            raise Permanent(f"It is larger than the {format_bytes(most)} that are read (setting documents.max_bytes).")
        yield piece


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    yield first
    async for piece in rest:
        yield piece


def make_urn(file: str, name: str, content: bytes | Staged) -> str:
    """By its path if it has one, else by its content: two people's `scan.pdf` are two documents."""
    folders = [part for part in path_of(file).parts if part not in ("/", "..", ".")]
    if len(folders) > 1:
        return f"upload:{quote('/'.join(folders), safe='/', errors='replace')}"
    hash_ = content.hash if isinstance(content, Staged) else hash_of(content)
    return f"upload:{hash_.hex()[:NAMED]}/{quote(name, safe='', errors='replace')}"


def path_of(file: str) -> PurePosixPath:
    return PurePosixPath(file.replace("\\", "/"))
