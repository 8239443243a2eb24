"""The local service: a running `gristmill up` answers the searches of its own user, and nobody waits for it in vain."""

import asyncio
import os
import stat
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gristmill.errors import Refused, Transient
from gristmill.ids import ChunkId, DocumentId
from gristmill.knowledge import Hit, Hits
from gristmill.knowledge.snippets import Snippet
from gristmill.scopes import GLOBAL, Scope
from gristmill.settings import EmbeddingSettings, KnowledgeSettings, Settings
from gristmill.web import LocalService, SearchRequest, ask_search
from gristmill.web.local import client
from gristmill.web.local.sockets import bind_socket

HIT = Hit(
    score=0.51,
    lexical=0.2,
    bm25=3.3333333333333335,
    similarity=0.25,
    chunk=ChunkId(7),
    document=DocumentId(3),
    name="plan.md",
    title="The plan",
    type="markdown",
    urn="file:///plan.md",
    part_of="letter.eml",
    version=2,
    client="acme",
    project="mill",
    page=1,
    start=4,
    stop=30,
    kind="text",
    language="en",
    heading="Stones",
    text="New millstones come in May – „soon“.",
    snippet=Snippet("New millstones", ((4, 14),)),
    via=("stone",),
)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path, database_url="postgresql:///mill")


def answer_with(*hits: Hit, note: str | None = None) -> Callable[[SearchRequest], Awaitable[Hits]]:
    async def answer(request: SearchRequest) -> Hits:
        found = Hits(hits)
        found.note = note
        return found

    return answer


async def test_an_answer_arrives_with_all_fields_of_its_hits(settings: Settings) -> None:
    async with LocalService(settings, answer_with(HIT, note="A note.")):
        hits = await ask_search(settings, "millstones", GLOBAL)
    assert hits is not None
    assert (list(hits), hits.note) == ([HIT], "A note.")
    assert all(getattr(hits[0], field.name) == getattr(HIT, field.name) for field in fields(Hit))


async def test_scope_and_options_are_passed_along(settings: Settings) -> None:
    heard: list[SearchRequest] = []

    async def answer(request: SearchRequest) -> Hits:
        heard.append(request)
        return Hits()

    since = datetime(2026, 12, 1, tzinfo=UTC)
    how = {"alpha": 0.0, "limit": 3, "type": "pdf", "after": since, "expand": 2}
    async with LocalService(settings, answer):
        assert await ask_search(settings, "“May” –", Scope("acme", "mill"), **how) == []
    (request,) = heard
    assert request.scope == Scope("acme", "mill")
    assert (request.query, {name: getattr(request, name) for name in how}) == ("“May” –", how)


async def test_without_a_service_nobody_answers(settings: Settings) -> None:
    assert await ask_search(settings, "millstones", GLOBAL) is None


async def test_only_its_owner_may_use_the_socket_and_it_goes_with_the_service(settings: Settings) -> None:
    path = settings.data / "local.sock"
    async with LocalService(settings, answer_with()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert not path.exists()


async def test_binding_the_socket_changes_no_rights_of_files_that_others_write(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "umask", lambda mask: pytest.fail("the umask belongs to the whole process"))  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
    path = settings.data / "local.sock"
    bind_socket(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_service_that_searches_in_another_way_does_not_answer(settings: Settings) -> None:
    async with LocalService(settings, answer_with(HIT)):
        other = settings.model_copy(update={"knowledge": KnowledgeSettings(meaning_share=0.1)})
        assert await ask_search(other, "millstones", GLOBAL) is None


async def test_a_socket_that_a_killed_process_left_is_replaced(settings: Settings) -> None:
    bind_socket(settings.data / "local.sock").close()
    assert await ask_search(settings, "millstones", GLOBAL) is None
    async with LocalService(settings, answer_with(HIT)) as service:
        assert service.is_serving
        assert await ask_search(settings, "millstones", GLOBAL) == [HIT]


async def test_a_second_service_goes_without_and_leaves_the_first_alone(settings: Settings) -> None:
    async with LocalService(settings, answer_with(HIT)):
        async with LocalService(settings, answer_with()) as second:
            assert not second.is_serving
        assert await ask_search(settings, "millstones", GLOBAL) == [HIT]


@pytest.mark.parametrize("length", [1, 200])
async def test_the_path_of_the_data_folder_may_be_longer_than_a_socket_allows(length: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        data = Path(place) / ("d" * length)
        data.mkdir()
        async with LocalService(Settings(data=data), answer_with(HIT)):
            assert await ask_search(Settings(data=data), "millstones", GLOBAL) == [HIT]


async def test_a_data_folder_that_is_not_there_is_gone_without(tmp_path: Path) -> None:
    async with LocalService(Settings(data=tmp_path / "gone"), answer_with()) as service:
        assert not service.is_serving


@pytest.mark.parametrize(
    "other", [{"database_url": "postgresql:///other"}, {"embedding": EmbeddingSettings(model="other")}]
)
async def test_a_search_of_another_database_or_model_is_not_answered(settings: Settings, other: dict) -> None:
    async with LocalService(settings, answer_with(HIT)):
        assert await ask_search(settings.model_copy(update=other), "millstones", GLOBAL) is None


async def test_a_refusal_is_raised_as_it_is(settings: Settings) -> None:
    async def refuse(request: SearchRequest) -> Hits:
        raise Refused("No document is of the type “jpg”: there are pdf.")

    async with LocalService(settings, refuse):
        with pytest.raises(Refused, match=r"^No document is of the type “jpg”: there are pdf\.$"):
            await ask_search(settings, "millstones", GLOBAL)


@pytest.mark.parametrize("error", [Transient("the database is away"), RuntimeError("a fault of ours")])
async def test_any_other_failure_of_the_service_is_left_to_the_caller(settings: Settings, error: Exception) -> None:
    async def fail(request: SearchRequest) -> Hits:
        raise error

    async with LocalService(settings, fail):
        assert await ask_search(settings, "millstones", GLOBAL) is None


async def test_nobody_waits_for_long_for_a_service_that_hangs(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "ANSWER", 0.2)
    released = asyncio.Event()

    async def hang(request: SearchRequest) -> Hits:
        await released.wait()
        return Hits()

    async with LocalService(settings, hang):
        assert await ask_search(settings, "millstones", GLOBAL) is None
        released.set()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a socket away")
async def test_a_socket_of_another_user_is_not_asked(settings: Settings) -> None:
    async with LocalService(settings, answer_with(HIT)):
        os.chown(settings.data / "local.sock", 65534, -1)
        assert await ask_search(settings, "millstones", GLOBAL) is None


async def test_half_a_character_is_left_to_the_search_itself(settings: Settings) -> None:
    async with LocalService(settings, answer_with(HIT)):
        assert await ask_search(settings, "mill\ud800", GLOBAL) is None
