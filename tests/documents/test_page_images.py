"""Pictures of pages: drawn in child processes, kept on disk within a limit, gone with their document."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from documents.files import pdf, saved, scan
from gristmill.db import Database
from gristmill.documents import Document, Item, PageImages, load_documents, page_images, remove, take_in
from gristmill.documents.pages import Page
from gristmill.documents.reading import Limits, read
from gristmill.errors import Permanent, Unknown
from gristmill.ids import DocumentId
from gristmill.settings import DocumentSettings, Settings

pytestmark = pytest.mark.asyncio(loop_scope="session")
LETTER = "# Invoice 17\n\nThe mill of Anna Berg grinds flour all night, and in the morning it rests for a while."


@pytest_asyncio.fixture(loop_scope="session")
async def images(db: Database, tmp_path: Path) -> AsyncIterator[PageImages]:
    async with PageImages(db, Settings(data=tmp_path)) as made:
        yield made


async def opened(db: Database, name: str, content: bytes, type_: str | None, pages: int = 1) -> Document:
    """A document as its opening leaves it."""
    async with db.transaction() as tx:
        taken = await take_in(tx, Item(f"file:///{name}", name, content))
        about = "UPDATE document SET type = %(type)s, pages = %(pages)s WHERE id = %(id)s"
        await tx.execute(about, type=type_, pages=pages, id=taken.document)
        (document,) = (await load_documents(tx, [DocumentId(taken.document or 0)])).values()
    return document


def kept(tmp_path: Path) -> list[str]:
    return sorted(os.listdir(tmp_path / "images"))


async def test_a_page_is_drawn_once_and_kept(db: Database, images: PageImages, tmp_path: Path) -> None:
    document = await opened(db, "a.pdf", pdf([LETTER]), "pdf")
    drawn = await asyncio.gather(*(images.draw(document, 1, "thumbnail") for _ in range(5)))
    assert len(set(drawn)) == 1
    assert kept(tmp_path) == [page_images.name_image(document.hash, 1, "thumbnail")]
    written = (tmp_path / "images" / kept(tmp_path)[0]).stat().st_mtime_ns
    assert await images.draw(document, 1, "thumbnail") == drawn[0]
    assert len(await images.draw(document, 1, "page")) > len(drawn[0])
    assert (tmp_path / "images" / page_images.name_image(document.hash, 1, "thumbnail")).stat().st_mtime_ns == written


async def test_what_has_no_picture_says_so(db: Database, images: PageImages) -> None:
    note = await opened(db, "a.md", b"# Note", "markdown")
    with pytest.raises(Unknown, match="no picture of a page of the type markdown: its text is all"):
        await images.draw(note, 1, "page")
    fresh = await opened(db, "b.pdf", pdf([LETTER, LETTER]), None)
    with pytest.raises(Unknown, match="was not opened yet"):
        await images.draw(fresh, 1, "page")
    letter = await opened(db, "c.pdf", pdf([LETTER]), "pdf")
    with pytest.raises(Unknown, match="has no page 2: it has 1"):
        await images.draw(letter, 2, "page")


async def test_garbage_gets_a_sentence_and_costs_one_try(
    db: Database, images: PageImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = await opened(db, "a.pdf", b"%PDF-1.7 " + b"\xff" * 3_000, "pdf")
    asked: list[Any] = []
    ask = images._ask  # pyright: ignore[reportPrivateUsage]

    async def count(*args: Any) -> Any:
        asked.append(args)
        return await ask(*args)

    monkeypatch.setattr(images, "_ask", count)
    for _ in range(3):
        with pytest.raises(Permanent, match=r"damaged|corrupt"):
            await images.draw(broken, 1, "page")
    assert len(asked) == 1


async def test_a_page_that_takes_too_long_ends_its_process_and_nothing_else(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_images, "PATIENCE", 0.001)
    document = await opened(db, "a.pdf", pdf([LETTER]), "pdf")
    async with PageImages(db, Settings(data=tmp_path)) as hasty:
        with pytest.raises(Permanent, match=r"Page 1 took longer than 0\.001 seconds to draw"):
            await hasty.draw(document, 1, "page")
    monkeypatch.undo()
    async with PageImages(db, Settings(data=tmp_path)) as patient:
        assert await patient.draw(document, 1, "page")


async def test_pictures_take_no_more_room_than_they_may(db: Database, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, documents=DocumentSettings(images=1 << 20))
    async with PageImages(db, settings) as images:
        for n in range(4):
            (tmp_path / "images").mkdir(exist_ok=True)
            old = tmp_path / "images" / f"{'ab' * 32}-{n}-page.webp"
            old.write_bytes(b"x" * 400_000)
            os.utime(old, (n, n))
        monkey = await opened(db, "a.png", saved(scan("Invoice"), "PNG"), "image")
        images._swept = float("inf")  # pyright: ignore[reportPrivateUsage] not what is tested here
        await images.draw(monkey, 1, "page")
    assert sum(path.stat().st_size for path in (tmp_path / "images").iterdir()) < 1 << 20
    assert f"{'ab' * 32}-0-page.webp" not in kept(tmp_path)


async def test_pictures_go_with_their_document(db: Database, images: PageImages, tmp_path: Path) -> None:
    document = await opened(db, "a.pdf", pdf([LETTER]), "pdf")
    other = await opened(db, "b.pdf", pdf([LETTER + " Other."]), "pdf")
    for one in (document, other):
        await images.draw(one, 1, "thumbnail")
    async with db.transaction() as tx:
        await remove(tx, [document.id])
    await images.clear()
    assert kept(tmp_path) == [page_images.name_image(other.hash, 1, "thumbnail")]


async def test_a_copy_that_had_to_make_room_is_fetched_again(db: Database, images: PageImages, tmp_path: Path) -> None:
    document = await opened(db, "a.png", saved(scan("Invoice"), "PNG"), "image")
    run = images._pool.run  # pyright: ignore[reportPrivateUsage]
    taken: list[int] = []

    async def take_away(*args: Any, **limits: Any) -> Any:
        if not taken:
            taken.append(1)
            (tmp_path / "spool" / document.hash.hex()).unlink()
        return await run(*args, **limits)

    images._pool.run = take_away  # pyright: ignore[reportPrivateUsage,reportAttributeAccessIssue]
    assert await images.draw(document, 1, "page")


async def test_words_are_placed_on_the_picture(db: Database, images: PageImages, tmp_path: Path) -> None:
    content = pdf([LETTER])
    document = await opened(db, "a.pdf", content, "pdf")
    (tmp_path / "a.pdf").write_bytes(content)
    text = read(str(tmp_path / "a.pdf"), "pdf", 1, Limits()).text
    page = Page(document.id, 1, "text", text, None)
    at = text.index("Anna Berg")
    (place,) = await images.find_places(document, page, [(at, at + 9)])
    assert 0 < place.left < place.right < 1
    assert 0 < place.top < place.bottom < 0.3
    scanned = Page(document.id, 1, "ocr", text, None)  # read by a version that did not keep places
    assert await images.find_places(document, scanned, [(at, at + 9)]) == []
