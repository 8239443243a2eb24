"""Documents over HTTP: files come in side by side, are looked at, retried and removed; others see nothing of them."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Web, serve

from documents.files import pdf, put
from gristmill.db import Database
from gristmill.documents import DocumentFilter, find_documents
from gristmill.documents.reading import Limits, read
from gristmill.settings import DocumentSettings, Settings

LETTER = "# Invoice 17\n\nThe mill of Anna Berg grinds flour all night, and in the morning it rests for a while."
LARGE = b"The mill grinds all night.\n" * 100_000
OWN, OTHER = "acme manager", "globex manager"
FORM = "multipart/form-data; boundary=x"


@pytest.fixture
async def web(db: Database, tmp_path: Path) -> AsyncIterator[Web]:
    async with serve(db, Settings(data=tmp_path, documents=DocumentSettings(max_bytes=4 << 20))) as opened:
        yield opened


async def upload(web: Web, *files: tuple[str, bytes], caller: str = OWN, **params: Any) -> httpx.Response:
    parts = [("files", file) for file in files]
    return await web.client(caller).post("/api/documents", files=parts, params=params)


async def added(web: Web, name: str = "note.md", content: bytes = b"# Note\n\nGrind.", **more: Any) -> int:
    answer = await upload(web, (name, content), **more)
    assert answer.status_code == 200, answer.text
    (item,) = answer.json()["items"]
    assert item["status"] == "added", item
    return item["document"]


async def get(web: Web, path: str, caller: str = OWN, **params: Any) -> Any:
    answer = await web.client(caller).get(f"/api/documents{path}", params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def change(web: Web, statement: Any, **params: Any) -> None:
    async with web.db.transaction() as tx:
        await tx.execute(statement, **params)


# --- files come in


async def test_many_files_are_taken_in_each_by_itself(web: Web) -> None:
    answer = await upload(web, ("a.md", b"one"), ("b.md", b""), ("c.md", b"x" * (9 << 19)), ("dir/d.md", b"two"))
    items = answer.json()["items"]
    assert [(one["name"], one["status"]) for one in items] == [
        ("a.md", "added"),
        ("b.md", "added"),
        ("c.md", "refused"),
        ("d.md", "added"),
    ]
    assert "documents.max_bytes" in items[2]["reason"]
    assert items[3]["urn"] == "upload:dir/d.md"
    assert len((await get(web, ""))["items"]) == 3


async def test_a_large_file_comes_back_as_it_was(web: Web) -> None:
    original = await web.client(OWN).get(f"/api/documents/{await added(web, 'e.bin', LARGE)}/original")
    assert original.content == LARGE
    assert original.headers["content-length"] == str(len(LARGE))


async def test_a_path_is_one_document_and_a_bare_name_is_not(web: Web) -> None:
    await added(web, "plans/a.md", b"one")
    (changed,) = (await upload(web, ("plans/a.md", b"two"))).json()["items"]
    assert changed["status"] == "changed"
    assert await added(web, "scan.md", b"one") != await added(web, "scan.md", b"two")
    (same,) = (await upload(web, ("scan.md", b"two"))).json()["items"]
    assert same["status"] == "unchanged"
    (named,) = (await upload(web, ("scan.md", b"six"), urn="wiki:7", title="Wiki")).json()["items"]
    assert (named["urn"], named["status"]) == ("wiki:7", "added")


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\mill\\a.md", "/abs/a.md", 'q"u\r\no;te.md', "čeština ☃.md"])
async def test_any_name_is_only_a_name(web: Web, name: str) -> None:
    sent = name.replace('"', "%22").replace("\r\n", "%0D%0A").encode()  # as browsers do
    body = b'--x\r\nContent-Disposition: form-data; name="files"; filename="%b"' % sent
    body += b"\r\n\r\nGood day.\r\n--x--\r\n"
    kind = {"Content-Type": FORM}
    answer = await web.client(OWN).post("/api/documents", content=body, headers=kind)
    assert answer.status_code == 200, answer.text
    (item,) = answer.json()["items"]
    assert item["urn"].startswith("upload:")
    assert ".." not in item["urn"].split("/")
    back = await web.client(OWN).get(f"/api/documents/{item['document']}/original")
    assert back.headers["content-disposition"].startswith("attachment; filename=")
    assert back.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", FORM, 422),
        (b"garbage", FORM, 422),
        (b"--x\r\nContent-Disposition: form-data; name=a; filename=a\r\n\r\ncut off", FORM, 422),
        (b"--x\r\nContent-Disposition: nonsense\r\n\r\na\r\n--x--\r\n", FORM, 422),
        (b"--x\r\nContent-Disposition: form-data; name=a\r\n\r\na\r\n--x--\r\n", FORM, 422),
        (b"--x\r\n" + b"A" * 50_000 + b": b\r\n\r\na\r\n--x--\r\n", FORM, 422),
        (b"{}", "application/json", 415),
        (b"{}", "", 415),
    ],
)
async def test_a_broken_upload_gets_a_sentence_and_leaves_nothing(
    web: Web, body: bytes, kind: str, status: int
) -> None:
    answer = await web.client(OWN).post("/api/documents", content=body, headers={"Content-Type": kind})
    assert answer.status_code == status, answer.text
    assert answer.json()["detail"].endswith((".", "again.")), answer.text
    assert (await get(web, ""))["items"] == []


async def test_files_before_the_one_that_was_cut_off_are_kept(web: Web) -> None:
    head = b'--x\r\nContent-Disposition: form-data; name=files; filename="%b"\r\n\r\n%b\r\n'
    body = head % (b"whole.md", b"Good day.") + (head % (b"half.md", LARGE))[: 2 << 20]
    kind = {"Content-Type": FORM}

    async def dying() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 65_536):
            yield body[at : at + 65_536]

    answer = await web.client(OWN).post("/api/documents", content=dying(), headers=kind)
    assert answer.status_code == 422
    assert [one["name"] for one in (await get(web, ""))["items"]] == ["whole.md"]


async def test_the_same_file_from_two_at_once_is_one_document(web: Web) -> None:
    answers = await asyncio.gather(*(upload(web, ("dir/a.md", LARGE)) for _ in range(4)))
    items = [one.json()["items"][0] for one in answers]
    assert sorted(one["status"] for one in items) == ["added", "unchanged", "unchanged", "unchanged"]
    assert len({one["document"] for one in items}) == 1


async def test_a_client_in_the_body_is_refused_before_its_file_is_everybodys(web: Web) -> None:
    body = {"client": (None, b"acme"), "files": ("a.md", b"# of acme alone")}
    answer = await web.client(OWN).post("/api/documents", files=body)
    assert answer.status_code == 422
    assert "client, project and urn go into the query" in answer.json()["detail"]
    assert (await get(web, ""))["items"] == []


async def test_too_much_for_one_request_is_refused_before_it_is_read(web: Web) -> None:
    answer = await upload(web, ("a.bin", b"x" * (6 << 20)))
    assert answer.status_code == 413


# --- looking


async def test_a_list_goes_on_where_it_ended(web: Web) -> None:
    for n in range(5):
        await added(web, f"{n}.md", f"note {n}".encode())
    names: list[str] = []
    cursor = None
    while True:
        page = await get(web, "", limit=2, **({"cursor": cursor} if cursor else {}))
        names += [one["name"] for one in page["items"]]
        if (cursor := page["next"]) is None:
            break
    assert names == ["4.md", "3.md", "2.md", "1.md", "0.md"]
    assert [one["name"] for one in (await get(web, "", name="3."))["items"]] == ["3.md"]
    assert (await get(web, "", status="failed"))["items"] == []
    wrong = await web.client(OWN).get("/api/documents", params={"cursor": "nonsense"})
    assert wrong.status_code == 422


async def test_a_document_tells_all_about_itself(web: Web) -> None:
    id_ = await added(web, "a.pdf", pdf([LETTER]))
    one = await get(web, f"/{id_}")
    assert (one["name"], one["status"], one["summary"], one["client"]) == ("a.pdf", "pending", "not opened yet", "acme")
    assert (one["size"], one["containers"], one["failures"], one["has_picture"]) == (len(pdf([LETTER])), [], [], False)
    assert [phase["name"] for phase in one["phases"]] == ["ocr", "vector", "graph"]
    tree = await get(web, f"/{id_}/tree")
    assert (tree["document"]["id"], tree["parts"], tree["containers"]) == (id_, [], [])
    assert [one["version"] for one in (await get(web, f"/{id_}/versions"))["items"]] == [1]


async def opened(web: Web, tmp_path: Path) -> int:
    """A PDF whose page was read."""
    content = pdf([LETTER])
    id_ = await added(web, "a.pdf", content)
    text = read(put(tmp_path, "a.pdf", content), "pdf", 1, Limits()).text
    await change(web, "UPDATE document SET type = 'pdf', pages = 1 WHERE id = %(id)s", id=id_)
    await change(
        web,
        "INSERT INTO page (document, number, scope, method, text, key) "
        "SELECT id, 1, scope, 'text', %(text)s, '' FROM document WHERE id = %(id)s",
        text=text,
        id=id_,
    )
    await change(
        web,
        "INSERT INTO chunk (scope, document, page, ordinal, start, stop, tokens, text, hash, language) "
        "SELECT scope, id, 1, 0, 0, length(%(text)s), 9, %(text)s, '', 'en' FROM document WHERE id = %(id)s",
        text=text,
        id=id_,
    )
    await change(
        web,
        "INSERT INTO fresh_terms (chunk, scope, language, length, terms) "
        """SELECT id, scope, 'en', 9, '{"anna": 1, "berg": 1, "mill": 1}' FROM chunk WHERE document = %(id)s""",
        id=id_,
    )
    return id_


async def test_a_page_is_seen_as_text_as_picture_and_with_its_words_marked(web: Web, tmp_path: Path) -> None:
    id_ = await opened(web, tmp_path)
    text = (await get(web, f"/{id_}/pages/1/text"))["text"]
    assert (await get(web, f"/{id_}/text"))["items"] == [{"number": 1, "method": "text", "text": text}]
    picture = await web.client(OWN).get(f"/api/documents/{id_}/pages/1/image", params={"size": "thumbnail"})
    assert (picture.headers["content-type"], picture.content[:4]) == ("image/webp", b"RIFF")
    again = await web.client(OWN).get(
        f"/api/documents/{id_}/pages/1/image",
        params={"size": "thumbnail"},
        headers={"If-None-Match": picture.headers["etag"]},
    )
    assert (again.status_code, again.content) == (304, b"")
    (box,) = (await get(web, f"/{id_}/pages/1/boxes", start=text.index("Anna"), stop=text.index("Anna") + 4))["boxes"]
    assert 0 < box["left"] < box["right"] < 1
    marked = (await get(web, f"/{id_}/pages/1/boxes", q="annas Mill"))["boxes"]
    assert {text[one["start"] : one["stop"]] for one in marked} == {"Anna", "mill"}
    (chunk,) = (await get(web, f"/{id_}/chunks", page=1))["items"]
    assert text[chunk["start"] : chunk["stop"]] == chunk["text"]
    assert (await get(web, f"/{id_}/pages"))["items"][0]["number"] == 1


async def test_what_has_no_picture_is_answered_with_a_sentence(web: Web) -> None:
    id_ = await added(web)
    await change(web, "UPDATE document SET type = 'markdown', pages = 1 WHERE id = %(id)s", id=id_)
    answer = await web.client(OWN).get(f"/api/documents/{id_}/pages/1/image")
    assert (answer.status_code, "its text is all" in answer.json()["detail"]) == (404, True)
    missing = await web.client(OWN).get(f"/api/documents/{id_}/pages/1/boxes")
    assert missing.status_code == 422


async def test_nothing_that_was_sent_to_us_is_shown_as_a_page_of_ours(web: Web) -> None:
    id_ = await added(web, "evil.html", b"<script>alert(1)</script>")
    answer = await web.client(OWN).get(f"/api/documents/{id_}/original")
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"


# --- changing


async def test_a_removal_is_previewed_done_once_and_written_down(web: Web) -> None:
    id_ = await added(web)
    impact = await get(web, f"/{id_}/impact")
    assert (impact["documents"], impact["chunks"]) == (1, 0)
    answers = await asyncio.gather(*(web.client(OWN).delete(f"/api/documents/{id_}") for _ in range(3)))
    assert sorted(one.status_code for one in answers) == [200, 404, 404]
    (done,) = [one.json() for one in answers if one.status_code == 200]
    assert done == impact
    async with web.db.transaction() as tx:
        actions = await tx.all("SELECT action, subject FROM audit WHERE action IN ('add', 'remove') ORDER BY id")
    assert [tuple(row) for row in actions] == [("add", f"document {id_}"), ("remove", f"document {id_}")]


async def test_a_document_is_read_anew(web: Web) -> None:
    id_ = await added(web)
    answer = await web.client(OWN).post(f"/api/documents/{id_}/reindex")
    assert answer.status_code == 200
    assert (await get(web, f"/{answer.json()['document']}"))["version"] == 2
    older = await web.client(OWN).post(f"/api/documents/{id_}/reindex")
    assert (older.status_code, "newer version" in older.json()["detail"]) == (422, True)


async def test_what_failed_is_tried_again(web: Web) -> None:
    id_ = await added(web)
    nothing = await web.client(OWN).post(f"/api/documents/{id_}/retry")
    assert (nothing.status_code, nothing.json()["tasks"]) == (200, [])
    for params in ({"page": 1}, {"chunk": 1}, {"phase": "cooking"}, {"phase": "ocr", "page": 9}):
        refused = await web.client(OWN).post(f"/api/documents/{id_}/retry", params=params)
        assert refused.status_code == 422, refused.text


# --- events


async def events(web: Web, id_: int, last: str | None = None, caller: str = OWN) -> tuple[int, list[dict[str, str]]]:
    """All events of a stream, which must end."""
    headers = {"Last-Event-ID": last} if last else {}
    answer = await web.client(caller).get(f"/api/documents/{id_}/events", headers=headers)
    blocks = [block for block in answer.text.split("\n\n") if block.startswith("id:")]
    return answer.status_code, [dict(line.split(": ", 1) for line in block.splitlines()) for block in blocks]


async def test_progress_is_streamed_to_its_end_and_resumed_by_the_last_id(web: Web) -> None:
    id_ = await added(web)
    stream = asyncio.ensure_future(events(web, id_))
    while not web.app.state.services.watcher._last:  # noqa: ASYNC110 its first look is over
        await asyncio.sleep(0.01)
    await change(web, "UPDATE document SET completed_at = clock() WHERE id = %(id)s", id=id_)
    status, found = await stream
    assert (status, [one["event"] for one in found]) == (200, ["progress", "ended"])
    assert await events(web, id_, found[0]["id"]) == (200, found[1:])
    assert await events(web, id_, found[1]["id"]) == (204, [])
    assert (await events(web, id_, "nonsense"))[1] == found[1:]


# --- whose it is


PATHS = ("", "/tree", "/versions", "/versions/1", "/pages", "/text", "/pages/1/text", "/chunks", "/pages/1/image",
         "/pages/1/boxes?start=0&stop=3", "/original", "/impact", "/events")  # fmt: skip


async def test_another_client_learns_nothing(web: Web, tmp_path: Path) -> None:
    id_ = await opened(web, tmp_path)
    never = id_ + 999
    for path in PATHS:
        theirs = await web.client(OTHER).get(f"/api/documents/{id_}{path}")
        nobodys = await web.client(OTHER).get(f"/api/documents/{never}{path}")
        assert theirs.status_code == 404, path
        assert theirs.text.replace(f"document {id_}", "") == nobodys.text.replace(f"document {never}", ""), path
    for method, path in (("POST", "/retry"), ("POST", "/reindex"), ("DELETE", "")):
        assert (await web.client(OTHER).request(method, f"/api/documents/{id_}{path}")).status_code == 404
    assert (await get(web, "", caller=OTHER))["items"] == []
    assert (await upload(web, ("a.md", b"x"), caller=OTHER, client="acme")).status_code == 404
    async with web.db.transaction() as tx:
        assert len((await find_documents(tx, DocumentFilter())).documents) == 1


async def test_a_viewer_only_looks(web: Web) -> None:
    id_ = await added(web)
    viewer = web.client("acme viewer")
    assert (await viewer.get(f"/api/documents/{id_}")).status_code == 200
    assert (await upload(web, ("a.md", b"x"), caller="acme viewer")).status_code == 403
    for method, path in (("POST", "/retry"), ("POST", "/reindex"), ("DELETE", "")):
        assert (await viewer.request(method, f"/api/documents/{id_}{path}")).status_code == 403
    assert (await web.client(None).get(f"/api/documents/{id_}")).status_code == 401


async def test_what_is_everybodys_is_seen_by_all_and_changed_by_the_operator(web: Web) -> None:
    id_ = await added(web, caller="operator manager")
    assert (await get(web, f"/{id_}"))["client"] == ""
    for method, path in (("POST", "/retry"), ("POST", "/reindex"), ("DELETE", "")):
        answer = await web.client(OWN).request(method, f"/api/documents/{id_}{path}")
        assert (answer.status_code, "not change it" in answer.json()["detail"]) == (403, True)
    assert (await web.client("operator manager").delete(f"/api/documents/{id_}")).status_code == 200
