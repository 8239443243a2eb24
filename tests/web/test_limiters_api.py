"""Limiters over HTTP: the operator sees and sets them, for all workers at once."""

from datetime import timedelta

import pytest
from serving import Web

from gristmill.queue import Limit, Rate, list_limiters, set_limit


@pytest.fixture
async def limited(web: Web) -> Web:
    async with web.db.transaction() as tx:
        await set_limit(
            tx, "llm", Limit(2, Rate(5, timedelta(seconds=60)), (timedelta(seconds=3), timedelta(seconds=5)))
        )
        await set_limit(tx, "domain:example.org", Limit(gap=(timedelta(seconds=1), timedelta(seconds=1))))
    return web


async def test_they_are_listed_as_people_write_them(limited: Web) -> None:
    found = (await limited.client("operator viewer").get("/api/limiters")).json()["items"]
    assert [(one["name"], one["concurrency"], one["rate"], one["gap"], one["held"]) for one in found] == [
        ("domain:example.org", None, None, "1s", 0),
        ("llm", 2, "5/1min", "3s-5s", 0),
    ]
    one = (await limited.client("operator viewer").get("/api/limiters/domain:example.org")).json()
    assert one == found[0]


async def test_what_is_named_changes_and_the_rest_stays(limited: Web) -> None:
    changed = await limited.client("operator").patch("/api/limiters/llm", json={"rate": None, "concurrency": 7})
    assert (changed.status_code, changed.json()["gap"]) == (200, "3s-5s")
    async with limited.db.transaction() as tx:
        limit = next(one.limit for one in await list_limiters(tx) if one.name == "llm")
    assert limit == Limit(7, None, (timedelta(seconds=3), timedelta(seconds=5)))
    (line,) = (await limited.client("operator").get("/api/audit", params={"subject": "limiter llm"})).json()["items"]
    assert (line["action"], line["details"]) == ("set", {"rate": None, "concurrency": 7})


@pytest.mark.parametrize("wish", [{}, {"rate": "often"}, {"gap": "5s-3s"}, {"concurrency": 0}, {"pace": 1}])
async def test_what_makes_no_sense_is_refused_with_a_sentence(limited: Web, wish: dict[str, object]) -> None:
    answer = await limited.client("operator").patch("/api/limiters/llm", json=wish)
    assert (answer.status_code, bool(answer.json()["detail"])) == (422, True)


async def test_there_is_none_of_another_name_and_none_for_a_client(limited: Web) -> None:
    assert (await limited.client("operator").get("/api/limiters/none")).status_code == 404
    assert (await limited.client("acme admin").get("/api/limiters")).status_code == 403
    assert (await limited.client("operator viewer").patch("/api/limiters/llm", json={"rate": None})).status_code == 403
