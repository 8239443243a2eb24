"""The page of a document."""

from pathlib import Path

import pytest
from paper import BLANK, HOSTILE, fail_to_open, put_document
from serving import ACME, GLOBEX, Web
from starlette.datastructures import QueryParams

from gristmill.documents import PageProgress, add_file
from gristmill.documents.progress import PagePhase
from gristmill.scopes import GLOBAL
from gristmill.web.console.document_view import judge_page
from gristmill.web.console.marking import TextSpan
from gristmill.web.console.page_view import PageWish, read_wish

TABS = ("pages", "graph", "parts", "versions", "about", "activity", "nonsense")


async def test_the_text_of_a_page_is_shown_with_its_chunks_and_the_words_of_the_search(web: Web) -> None:
    document = await put_document(web.db, "One.", "# Mill\n\nThe bearing broke.", name="diary.md")
    page = (await web.client("operator").get(f"/documents/{document}", params={"page": 2, "q": "bearing"})).text
    assert "2 of 2" in page
    assert 'data-chunk="0"' in page
    assert 'The <mark data-at="12">bearing</mark> broke.' in page


async def test_without_a_search_the_passage_that_was_found_is_marked(web: Web) -> None:
    document = await put_document(web.db, "The bearing broke.")
    page = (await web.client("operator").get(f"/documents/{document}", params={"at": "4-11"})).text
    assert '<mark data-at="4">bearing</mark>' in page
    assert "is-chosen" in page


async def test_a_page_that_was_not_read_yet_says_so(web: Web, tmp_path: Path) -> None:
    (tmp_path / "new.txt").write_text("new")
    taken = await add_file(web.db, tmp_path / "new.txt", GLOBAL, max_bytes=1 << 20)
    page = (await web.client("operator").get(f"/documents/{taken.document}")).text
    assert "Not opened yet" in page
    assert f'data-events="/api/documents/{taken.document}/events"' in page
    whole = await put_document(web.db, "text")
    assert "There is no page 9" in (await web.client("operator").get(f"/documents/{whole}?page=9")).text


@pytest.mark.parametrize("tab", TABS)
async def test_every_part_of_the_page_shows_hostile_texts_as_text(web: Web, tab: str) -> None:
    facts = ["Jane -KNOWS-> Bob"]
    document = await put_document(web.db, HOSTILE, name=HOSTILE, title=HOSTILE, facts=facts, urn=f"test:{HOSTILE}")
    asked = {"tab": tab, "q": HOSTILE}
    page = await web.client("operator").get(f"/documents/{document}", params=asked)
    assert page.status_code == 200
    assert "<script>alert" not in page.text
    assert 'href="javascript:' not in page.text


@pytest.mark.parametrize("piece", ["", "/pane", "/head", "/thumbs", "/pages/1/view", "/delete"])
async def test_nothing_of_another_client_is_shown(web: Web, piece: str) -> None:
    document = await put_document(web.db, "secret", name="secret.md", scope=ACME)
    answer = await web.client("globex manager").get(f"/documents/{document}{piece}")
    assert answer.status_code == 404
    assert "secret" not in answer.text
    assert (await web.client("acme manager").get(f"/documents/{document}{piece}")).status_code == 200


async def test_a_number_that_no_document_has_is_not_found(web: Web) -> None:
    for number in (0, 999, 2**63, 10**30):
        assert (await web.client("operator").get(f"/documents/{number}")).status_code == 404
        assert (await web.client("operator").get(f"/documents/{number}/pages/1/view")).status_code == 404


async def test_its_part_of_the_graph_is_drawn_and_listed(web: Web) -> None:
    document = await put_document(web.db, "Jane knows Bob.", facts=["Jane -KNOWS-> Bob"])
    page = (await web.client("operator").get(f"/documents/{document}", params={"tab": "graph"})).text
    assert "Jane – knows – Bob (1 passage)" in page
    assert "/graph?open=person%3A%3Ajane&amp;node=person%3A%3Ajane" in page


async def test_two_versions_are_compared(web: Web) -> None:
    await put_document(web.db, "Pay within 30 days.", urn="test:contract")
    newer = await put_document(web.db, "Pay within 14 days.", urn="test:contract", version=2)
    page = (await web.client("operator").get(f"/documents/{newer}", params={"tab": "versions"})).text
    assert "From version 1 to 2" in page
    assert "<b>30</b>" in page
    assert "<b>14</b>" in page
    odd = {"tab": "versions", "older": "77", "newer": "x"}
    assert "was not kept" in (await web.client("operator").get(f"/documents/{newer}", params=odd)).text


# --- what one may do


async def test_deleting_says_before_what_goes_and_does_so(web: Web) -> None:
    document = await put_document(web.db, "Jane knows Bob.", facts=["Jane -KNOWS-> Bob"], scope=ACME)
    manager = web.client("acme manager")
    asked = (await manager.get(f"/documents/{document}/delete")).text
    assert "1 document, 1 page, 1 chunk" in asked
    assert "2 nodes and 1 edge of the graph" in asked
    assert (await web.client("acme viewer").get(f"/documents/{document}/delete")).status_code == 403
    assert (await web.client("globex manager").post(f"/documents/{document}/delete")).status_code == 404
    gone = await manager.post(f"/documents/{document}/delete")
    assert (gone.status_code, gone.headers["location"]) == (303, "/documents")
    assert (await manager.get(f"/documents/{document}")).status_code == 404


async def test_a_client_may_not_delete_what_is_everybodys(web: Web) -> None:
    document = await put_document(web.db, "text")
    page = await web.client("acme manager").get(f"/documents/{document}")
    assert page.status_code == 200
    assert "/delete" not in page.text
    assert (await web.client("acme manager").post(f"/documents/{document}/delete")).status_code in (403, 404, 422)
    assert (await web.client("operator").get(f"/documents/{document}")).status_code == 200


async def test_a_failed_document_is_tried_again_and_who_did_so_is_written_down(web: Web, tmp_path: Path) -> None:
    (tmp_path / "broken.txt").write_text("x")
    taken = await add_file(web.db, tmp_path / "broken.txt", ACME, max_bytes=1 << 20)
    await fail_to_open(web.db)
    manager = web.client("acme manager")
    page = (await manager.get(f"/documents/{taken.document}")).text
    assert BLANK in page
    again = await manager.post(f"/documents/{taken.document}/retry")
    assert again.status_code == 303
    assert BLANK not in (await manager.get(f"/documents/{taken.document}")).text
    async with web.db.transaction() as tx:
        assert (
            await tx.value("SELECT action || ' ' || subject FROM audit ORDER BY id DESC LIMIT 1")
            == f"retry document {taken.document}"
        )
    assert (await web.client("globex manager").post(f"/documents/{taken.document}/retry")).status_code == 404
    assert (await web.client("acme viewer").post(f"/documents/{taken.document}/retry")).status_code == 403


async def test_a_document_is_made_anew_from_its_bytes(web: Web, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("x")
    taken = await add_file(web.db, tmp_path / "note.txt", GLOBEX, max_bytes=1 << 20)
    again = await web.client("globex manager").post(f"/documents/{taken.document}/reindex")
    assert again.status_code == 303
    assert again.headers["location"] != f"/documents/{taken.document}"
    assert (await web.client("globex manager").get(again.headers["location"])).status_code == 200


# --- what is decided without the database


def page_of(*statuses: str) -> PageProgress:
    return PageProgress(
        1, None, 0, tuple(PagePhase("p", "p", one, None, None, None, None, 0, None) for one in statuses)
    )


@pytest.mark.parametrize(
    ("statuses", "judged"),
    [
        (("completed", "failed", "pending"), "failed"),
        (("completed", "processing"), "processing"),
        (("skipped", "completed"), "completed"),
        (("skipped",), "skipped"),
        ((), "pending"),
    ],
)
def test_a_page_is_as_well_as_the_worst_of_its_phases(statuses: tuple[str, ...], judged: str) -> None:
    assert judge_page(page_of(*statuses)) == judged


@pytest.mark.parametrize(
    ("given", "wish"),
    [
        ("", PageWish()),
        ("page=3&q=x&at=4-9", PageWish(3, "x", TextSpan(4, 9))),
        ("page=-1&at=9", PageWish()),
        ("page=99999999999&at=1-99999999999", PageWish()),
    ],
)
def test_a_link_that_is_old_or_odd_is_read_as_far_as_it_can_be(given: str, wish: PageWish) -> None:
    assert read_wish(QueryParams(given)) == wish
