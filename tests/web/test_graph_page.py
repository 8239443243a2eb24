"""The page of the graph."""

import re
from urllib.parse import urlencode

from paper import HOSTILE, put_document
from serving import ACME, Web
from starlette.datastructures import QueryParams

from gristmill.web.console.graph_view import GraphView, read_view


async def test_without_a_node_the_page_offers_those_of_the_newest_documents(web: Web) -> None:
    assert "No names yet" in (await web.client("operator").get("/graph")).text
    await put_document(web.db, "Jane signed.", facts=["Jane -SIGNED-> Acme"])
    page = await web.client("operator").get("/graph")
    assert page.status_code == 200
    assert "/graph?open=person%3A%3Ajane&amp;node=person%3A%3Ajane" in page.text


async def test_a_node_is_drawn_with_its_neighbours_and_its_passages_lead_to_their_pages(web: Web) -> None:
    document = await put_document(web.db, "Jane signed with Acme.", facts=["Jane -SIGNED-> Acme"])
    page = (await web.client("operator").get("/graph", params={"open": "person::jane"})).text
    assert 'class="node of-person is-open"' in page
    assert "Jane – signed – Acme (1 passage)" in page
    assert f"/documents/{document}?page=1&amp;at=0-4" in page or f"/documents/{document}?page=1&at=0-4" in page


async def test_the_line_between_two_nodes_shows_the_passages_that_say_so(web: Web) -> None:
    await put_document(web.db, "Jane signed with Acme.", facts=["Jane -SIGNED-> Acme"])
    asked = urlencode([("open", "person::jane"), ("edge", "person::jane"), ("edge", "person::acme")])
    page = (await web.client("operator").get(f"/graph?{asked}")).text
    assert "“Jane signed with Acme.”" in page


async def test_the_way_between_two_nodes_is_shown_or_said_to_be_missing(web: Web) -> None:
    await put_document(web.db, "text", facts=["Jane -KNOWS-> Bob", "Cid -HIRED-> Bob", "Dan"])
    client = web.client("operator")
    found = (await client.get("/graph", params={"start": "person::jane", "goal": "cid"})).text
    assert "2 steps from" in found
    missing = (await client.get("/graph", params={"start": "person::jane", "goal": "dan"})).text
    assert "No way leads from “person::jane” to “dan” within 6 steps." in missing


async def test_an_unknown_node_is_answered_with_what_there_is(web: Web) -> None:
    await put_document(web.db, "text", facts=["Jane -KNOWS-> Bob"])
    page = await web.client("operator").get("/graph", params={"open": "jan"})
    assert page.status_code == 200
    assert "did you mean person::jane?" in page.text


async def test_two_nodes_are_merged_and_the_merge_is_undone(web: Web) -> None:
    await put_document(web.db, "J. Doe signed.", scope=ACME, facts=["J. Doe -SIGNED-> Acme", "Jane Doe -KNOWS-> Bob"])
    manager, node = web.client("acme manager"), {"open": "person::jane doe", "node": "person::jane doe"}
    given = {"alias": "j. doe", "key": "person::jane doe", "back": "//elsewhere.example"}
    assert (await web.client("acme viewer").post("/graph/merge", data=given)).status_code == 403
    assert (await web.client("globex manager").post("/graph/merge", data=given)).status_code == 404
    merged = await manager.post("/graph/merge", data=given)
    assert (merged.status_code, merged.headers["location"]) == (303, "/graph")
    page = (await manager.get("/graph", params=node)).text
    assert "Jane Doe – signed – Acme" in page
    (undo,) = re.findall(r'action="(/graph/merges/\d+/undo)"', page)
    assert (await web.client("globex manager").post(undo)).status_code == 404
    assert (await manager.post(undo)).status_code == 303
    assert "Jane Doe – signed – Acme" not in (await manager.get("/graph", params=node)).text
    async with web.db.transaction() as tx:
        actions = await tx.values("SELECT action FROM audit WHERE subject LIKE 'node %%' ORDER BY id", str)
    assert actions == ["merge", "undo merge"]


async def test_names_are_suggested_while_somebody_types(web: Web) -> None:
    await put_document(web.db, "text", facts=["Jane -KNOWS-> Bob"])
    answer = (await web.client("operator").get("/graph/names", params={"name": "ja"})).text
    assert '<option value="person::jane">Jane (person, 1 mention)</option>' in answer


async def test_nothing_of_another_client_is_drawn_suggested_or_found(web: Web) -> None:
    await put_document(web.db, "Jane signed.", facts=["Jane -SIGNED-> Secret"], scope=ACME)
    other = web.client("globex viewer")
    assert "jane" not in (await other.get("/graph")).text.lower()
    assert "signed" not in (await other.get("/graph", params={"open": "person::jane"})).text.lower()
    assert "jane" not in (await other.get("/graph/names", params={"name": "ja"})).text.lower()
    assert (await other.get("/graph", params={"client": "acme"})).status_code == 404
    assert "Secret" in (await web.client("acme viewer").get("/graph", params={"open": "person::jane"})).text


async def test_hostile_names_are_shown_as_text(web: Web) -> None:
    await put_document(web.db, HOSTILE, name=HOSTILE, facts=[f"{HOSTILE} >KNOWS> Bob"])
    for asked in ({}, {"open": "bob"}, {"open": HOSTILE}, {"start": HOSTILE, "goal": "bob"}):
        page = (await web.client("operator").get("/graph", params=asked)).text
        assert "<script>alert" not in page
        assert 'href="javascript:' not in page


def test_an_address_says_all_and_is_cut_to_what_a_picture_can_hold() -> None:
    view = GraphView("acme", "", ("a", "b", "a"), "b", None, "", "", as_list=True)
    assert read_view(QueryParams(view.link.partition("?")[2]), client="acme", project="") == view
    long = read_view(QueryParams([("open", "x" * 5000), *[("open", str(n)) for n in range(500)], ("edge", "one")]))
    assert (len(long.opened), long.opened[0], long.edge) == (60, "0", None)
