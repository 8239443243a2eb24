"""The page of the search."""

import pytest
from paper import HOSTILE, put_document
from serving import ACME, Web
from starlette.datastructures import QueryParams

from gristmill.web.console.search import read_search

WORDS = {"alpha": "0"}  # by words alone: no model is loaded


async def test_hits_are_shown_with_their_words_marked_and_lead_to_the_page(web: Web) -> None:
    document = await put_document(web.db, "First page.", "The bearing broke in May.", name="diary.md", title="Diary")
    page = (await web.client("operator").get("/search", params={"q": "bearing", **WORDS})).text
    assert "The <mark>bearing</mark> broke in May." in page
    assert f'href="/documents/{document}?page=2&amp;q=bearing&amp;at=0-25"' in page
    assert "counts 100 %" in page


async def test_an_empty_question_says_how_to_ask_and_a_question_without_hits_what_to_do(web: Web) -> None:
    client = web.client("operator")
    assert "Search by words and by meaning" in (await client.get("/search")).text
    assert "Nothing fits" in (await client.get("/search", params={"q": "zzz", **WORDS})).text


async def test_filters_narrow_the_hits_and_a_wrong_one_is_told(web: Web) -> None:
    await put_document(web.db, "The bearing broke.", name="a.md")
    await put_document(web.db, "Another bearing.", name="b.pdf", type="pdf")
    client = web.client("operator")
    only = (await client.get("/search", params={"q": "bearing", "type": "pdf", **WORDS})).text
    assert "b.pdf" in only
    assert "a.md" not in only
    assert "there are markdown, pdf" in (await client.get("/search", params={"q": "x", "type": "xls", **WORDS})).text
    late = (await client.get("/search", params={"q": "bearing", "after": "2999-01-01", **WORDS})).text
    assert "Nothing fits" in late
    assert "is no date" in (await client.get("/search", params={"q": "bearing", "after": "soon", **WORDS})).text


async def test_a_search_finds_nothing_of_another_client(web: Web) -> None:
    await put_document(web.db, "The bearing broke.", scope=ACME)
    asked = {"q": "bearing", **WORDS}
    assert "Nothing fits" in (await web.client("globex viewer").get("/search", params=asked)).text
    assert (await web.client("globex viewer").get("/search", params={**asked, "client": "acme"})).status_code == 404
    assert "broke" in (await web.client("acme viewer").get("/search", params=asked)).text
    assert (await web.client(None).get("/search", params=asked)).status_code in (302, 303, 401)


async def test_an_operator_searches_everything_one_client_or_what_is_everybodys(web: Web) -> None:
    await put_document(web.db, "The bearing broke.", scope=ACME)
    await put_document(web.db, "A bearing for all.", name="all.md")
    asked = {"q": "bearing", **WORDS}
    for client, found in (("", ("broke", "for all")), ("acme", ("broke", "for all")), ("GLOBAL", ("for all",))):
        page = (await web.client("operator").get("/search", params={**asked, "client": client})).text
        assert [word for word in ("broke", "for all") if word in page] == list(found)
        wish = {"query": "bearing", "alpha": 0, "client": client or None}
        hits = (await web.client("operator").post("/api/kb/search", json=wish)).json()["items"]
        assert len(hits) == len(found)
    assert (await web.client("acme viewer").get("/search", params={**asked, "client": "GLOBAL"})).status_code == 422


async def test_hostile_texts_are_shown_as_text(web: Web) -> None:
    await put_document(web.db, f"bearing {HOSTILE}", name=HOSTILE, title=HOSTILE)
    page = (await web.client("operator").get("/search", params={"q": f"bearing {HOSTILE}", **WORDS})).text
    assert "<mark>bearing</mark>" in page
    assert "<script>alert" not in page
    assert 'href="javascript:' not in page


@pytest.mark.parametrize(
    ("given", "alpha", "limit"),
    [("", 0.5, 20), ("alpha=7&limit=100000", 1, 100), ("alpha=nan&limit=-3", 0.5, 1), ("alpha=x&limit=", 0.5, 20)],
)
def test_numbers_of_an_address_are_kept_within_what_is_possible(given: str, alpha: float, limit: int) -> None:
    view = read_search(QueryParams(given))
    assert (view.alpha, view.limit) == (alpha, limit)
