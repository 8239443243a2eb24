"""The audit log: every change with who made it and from where, and to each client its own alone."""

import pytest
from serving import ACME, GLOBEX, ONE, Web

from gristmill.serving import Caller
from gristmill.web.access.audit import ENDLESS, SQL
from plans import count_rows

PEOPLE = {
    "operator": Caller("boss", "admin", None, "10.0.0.1", 1),
    "acme": Caller("anna", "manager", ACME, "10.0.0.2", 2),
    "one": Caller("olga", "manager", ONE, "10.0.0.3", 3),
    "globex": Caller("gina", "manager", GLOBEX, "10.0.0.4", 4),
}


async def change_things(web: Web) -> None:
    """Everybody retries a document; the operator retries one of acme."""
    record = web.app.state.services.record
    for who, caller in PEOPLE.items():
        async with caller.transaction(web.db) as tx:
            await record(tx, caller, "retry", f"document of {who}", client="acme" if who == "operator" else who)


async def read_log(web: Web, reader: str, **wanted: str) -> list[str]:
    answer = await web.client(reader).get("/api/audit", params={"action": "retry", **wanted})
    assert answer.status_code == 200
    return [one["caller"] for one in answer.json()["items"]]


async def test_each_client_sees_what_its_own_keys_changed_and_never_what_the_operator_did(web: Web) -> None:
    await change_things(web)
    assert await read_log(web, "operator") == ["gina", "olga", "anna", "boss"]
    assert await read_log(web, "acme admin") == ["olga", "anna"]
    assert await read_log(web, "acme/one admin") == ["olga"]
    assert await read_log(web, "globex admin") == ["gina"]


async def test_a_line_says_who_what_when_and_from_where(web: Web) -> None:
    await change_things(web)
    (line,) = (await web.client("globex admin").get("/api/audit")).json()["items"]
    assert {**line, "id": 0, "at": ""} == {
        "id": 0,
        "at": "",
        "caller": "gina",
        "key": 4,
        "role": "manager",
        "client": "globex",
        "project": "",
        "action": "retry",
        "subject": "document of globex",
        "details": {"client": "globex"},
        "address": "10.0.0.4",
    }


async def test_the_log_is_filtered_and_read_in_portions(web: Web) -> None:
    for _ in range(3):
        await change_things(web)
    assert await read_log(web, "operator", caller="anna") == ["anna"] * 3
    assert await read_log(web, "operator", subject="document of one") == ["olga"] * 3
    assert await read_log(web, "operator", since="2100-01-01T00:00:00Z") == []
    found, after = list[int](), None
    while True:
        params = {"action": "retry", "limit": 5, **({"cursor": after} if after else {})}
        portion = (await web.client("operator").get("/api/audit", params=params)).json()
        found += [one["id"] for one in portion["items"]]
        after = portion["next"]
        if after is None:
            break
    assert len(found) == 12
    assert found == sorted(set(found), reverse=True)


async def test_a_change_that_is_rolled_back_leaves_no_line(web: Web) -> None:
    caller = PEOPLE["acme"]

    async def fail() -> None:
        async with caller.transaction(web.db) as tx:
            await web.app.state.services.record(tx, caller, "retry", "document 1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail()
    assert await read_log(web, "acme admin") == []


async def test_strange_values_are_written_down_all_the_same(web: Web) -> None:
    caller = PEOPLE["acme"]
    async with caller.transaction(web.db) as tx:
        details = {"nul": "a\x00b", "half": "\ud800", "long": "x" * 9999, "list": [1, {"a": None}], "scope": ACME}
        await web.app.state.services.record(tx, caller, "retry", "sub\x00ject" + "y" * 9999, **details)
    (line,) = (await web.client("acme admin").get("/api/audit")).json()["items"]
    assert line["details"]["nul"] == "ab"
    assert len(line["details"]["long"]) == len(line["subject"]) == 500
    assert line["details"]["list"] == [1, {"a": None}]
    assert line["details"]["scope"] == "acme"


async def test_a_client_cannot_change_or_forge_a_line(web: Web) -> None:
    await change_things(web)
    async with web.db.transaction(seen_from=ACME) as tx:
        rights = [
            await tx.value("SELECT has_table_privilege('audit', %(right)s)", right=right)
            for right in ("SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE")
        ]
    assert rights == [True, True, False, False, False]


async def test_making_and_revoking_keys_is_in_the_log_without_the_secret(web: Web) -> None:
    new = (await web.client("operator").post("/api/keys", json={"name": "anna", "client": "acme"})).json()
    await web.client("operator").delete(f"/api/keys/{new['id']}")
    lines = (await web.client("operator").get("/api/audit", params={"subject": "key anna"})).json()["items"]
    assert [line["action"] for line in lines] == ["revoke key", "add key"]
    assert lines[1]["details"] == {"role": "viewer", "bound_to": "acme"}
    assert new["secret"] not in str(lines)


async def test_the_page_shows_the_same_and_links_to_more(web: Web) -> None:
    for _ in range(40):
        await change_things(web)
    page = await web.client("operator").get("/audit", params={"action": "retry"})
    assert page.status_code == 200
    assert page.text.count('id="change-') == 100
    assert 'rel="next"' in page.text
    tenant = await web.client("globex admin").get("/audit")
    assert "gina" in tenant.text
    assert not [name for name in ("boss", "anna", "olga", "10.0.0.1") if name in tenant.text]
    nothing = await web.client("operator").get("/audit", params={"caller": "nobody"})
    assert "No change fits this filter." in nothing.text


async def test_a_filter_that_fits_few_looks_at_so_many_lines_and_says_where_to_go_on(web: Web) -> None:
    await change_things(web)
    async with web.db.transaction() as tx:
        await tx.execute(MANY_LINES, n=2_100)
    client = web.client("acme admin")
    first = (await client.get("/api/audit", params={"subject": "document of one"})).json()
    assert (first["items"], first["next"] is not None) == ([], True)
    rest = (await client.get("/api/audit", params={"subject": "document of one", "cursor": first["next"]})).json()
    assert ([one["caller"] for one in rest["items"]], rest["next"]) == (["olga"], None)
    page = (await client.get("/audit", params={"subject": "document of one"})).text
    assert "Older changes may fit" in page


MANY_LINES = """
INSERT INTO audit (scope, caller, role, action, subject, address)
SELECT s.id, 'anna', 'manager', 'retry', 'document ' || n, 'test' FROM scope s, generate_series(1, %(n)s) n
 WHERE s.client = 'acme' AND s.project = ''
"""
STREAMS = {
    "newest": {},
    "newest_of_subject": {"subject": "document 7"},
    "newest_of_caller": {"caller": "anna"},
    "newest_of_action": {"action": "retry"},
    "newest_of_client": {"client": "acme", "project": "one"},
}


async def test_no_list_of_the_log_reads_all_of_it(web: Web) -> None:
    await change_things(web)
    async with web.db.transaction() as tx:
        await tx.execute(MANY_LINES, n=20_000)
        await tx.execute("ANALYZE audit, scope")
        for stream, given in STREAMS.items():
            asked = {"before": ENDLESS, "look": 50, **given}
            plan = await tx.value("EXPLAIN (ANALYZE, FORMAT JSON) " + SQL[stream], **asked)
            assert count_rows(plan[0]["Plan"]) < 300, stream
        line = dict.fromkeys(("caller", "action", "subject", "since"))
        fitting = "EXPLAIN (ANALYZE, FORMAT JSON) " + SQL["fitting"]
        plan = await tx.value(fitting, ids=list(range(1, 51)), limit=50, **line)
        assert count_rows(plan[0]["Plan"]) < 300
