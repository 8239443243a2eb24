"""The list of documents."""

from pathlib import Path

from paper import BLANK, HOSTILE, fail_to_open, put_document
from serving import ACME, GLOBEX, Web
from starlette.datastructures import QueryParams

from gristmill.documents import add_file
from gristmill.scopes import GLOBAL, Scope
from gristmill.web.console.document_list import ListView, read_list_view

MOST = 1 << 20


async def add(web: Web, folder: Path, name: str, scope: Scope = GLOBAL) -> int:
    (folder / name).write_text(f"Text of {name}.")
    taken = await add_file(web.db, folder / name, scope, max_bytes=MOST)
    assert taken.document is not None
    return taken.document


async def test_the_list_shows_documents_with_a_bar_for_each_phase(web: Web, tmp_path: Path) -> None:
    await add(web, tmp_path, "letter.txt")
    page = (await web.client("operator").get("/documents")).text
    assert "1 document, 0 done" in page
    assert "letter.txt" in page
    assert page.count('class="phase"') == 3


async def test_an_empty_list_says_how_documents_come_in(web: Web) -> None:
    page = (await web.client("operator").get("/documents")).text
    assert "No documents yet" in page
    assert "gristmill add FOLDER" in page


async def test_filters_and_order_are_kept_in_the_address(web: Web, tmp_path: Path) -> None:
    await add(web, tmp_path, "b-letter.txt")
    await put_document(web.db, "text", name="a-note.md")
    client = web.client("operator")
    waiting = (await client.get("/documents", params={"status": "pending"})).text
    assert "b-letter.txt" in waiting
    assert "a-note.md" not in waiting
    named = (await client.get("/documents", params={"name": "NOTE"})).text
    assert "a-note.md" in named
    assert "b-letter.txt" not in named
    ordered = (await client.get("/documents/rows", params={"sort": "name"})).text
    assert ordered.index("a-note.md") < ordered.index("b-letter.txt")
    assert "Nothing fits this filter" in (await client.get("/documents", params={"type": "pdf"})).text


async def test_an_open_document_stands_beside_the_list_and_one_that_is_gone_does_not(web: Web) -> None:
    document = await put_document(web.db, "text", name="note.md")
    client = web.client("operator")
    page = (await client.get("/documents", params={"open": document})).text
    assert "data-open id=" in page
    assert f'href="/documents/{document}" data-open-page' in page
    assert "data-open id=" not in (await client.get("/documents", params={"open": 999})).text


async def test_a_failed_document_says_what_failed_and_offers_to_try_again(web: Web, tmp_path: Path) -> None:
    document = await add(web, tmp_path, "broken.txt")
    await fail_to_open(web.db)
    page = (await web.client("operator").get("/documents")).text
    assert BLANK in page
    assert f'action="/documents/{document}/retry"' in page
    seen = (await web.client("operator viewer").get("/documents")).text
    assert BLANK in seen
    assert "/retry" not in seen


async def test_a_client_sees_its_own_documents_and_those_of_everybody(web: Web, tmp_path: Path) -> None:
    for name, scope in (("everybody.txt", GLOBAL), ("of-acme.txt", ACME), ("of-globex.txt", GLOBEX)):
        await add(web, tmp_path, name, scope)
    page = (await web.client("globex viewer").get("/documents")).text
    assert "everybody.txt" in page
    assert "of-globex.txt" in page
    assert "of-acme" not in page
    assert "acme" not in (await web.client("globex viewer").get("/documents", params={"client": "acme"})).text.replace(
        "client=acme", ""
    ).replace('value="acme"', "").replace('data-client="acme"', "")


async def test_a_view_is_saved_under_a_name_for_all_keys_of_its_scope_and_removed(web: Web) -> None:
    manager = web.client("acme manager")
    given = {"name": " Broken  ones ", "query": "status=failed&cursor=x&open=3&nonsense=1"}
    assert (await manager.post("/documents/views", data=given)).status_code == 303
    page = (await web.client("acme viewer").get("/documents")).text
    assert 'href="/documents?status=failed"' in page
    assert "Broken ones" in page
    assert "Broken ones" not in (await web.client("globex viewer").get("/documents")).text
    assert "Broken ones" not in (await web.client("operator").get("/documents")).text
    async with web.db.transaction() as tx:
        id_ = await tx.value("SELECT id FROM saved_view")
    assert (await web.client("globex manager").post(f"/documents/views/{id_}/remove")).status_code == 404
    assert (await web.client("acme viewer").post(f"/documents/views/{id_}/remove")).status_code == 403
    assert (await manager.post(f"/documents/views/{id_}/remove")).status_code == 303
    assert "Broken ones" not in (await manager.get("/documents")).text


async def test_a_view_without_a_usable_name_is_refused(web: Web) -> None:
    for name in ("   ", "x" * 61, "a\u202eb"):
        answer = await web.client("operator").post("/documents/views", data={"name": name, "query": ""})
        assert answer.status_code == 422
        assert "A view needs a name" in answer.text


async def test_hostile_names_are_shown_as_text(web: Web) -> None:
    for name in (HOSTILE, "x" * 200, "שלום‏.pdf"):
        await put_document(web.db, "text", name=name, title=name)
    page = (await web.client("operator").get("/documents")).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_an_address_says_all_and_what_cannot_be_meant_is_left_out() -> None:
    view = ListView("failed", "pdf", "x y", "acme", True, "name", "WzdLCJhIl0", 3)
    assert read_list_view(QueryParams(view.query)) == view
    odd = "status=lost&sort=hash&open=99999999999999999999&top=x"
    assert read_list_view(QueryParams(odd)) == ListView()
