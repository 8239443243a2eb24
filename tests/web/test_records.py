"""Records over HTTP: files come in, reports and pages say what became of them, and cron does the work."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from pydantic import SecretStr
from serving import Web, serve

from gristmill.app import handlers
from gristmill.db import Database
from gristmill.queue import Worker
from gristmill.settings import Settings, WebSettings

REVIEWS = b"task_id,text,rating\nr1,The flour was damp,1\nr2,Quick delivery,5\nr3,,3\nr4,=cmd|calc,2\n"


@pytest.fixture
async def mill(db: Database, tmp_path: Path) -> AsyncIterator[Web]:
    """The web with a data folder of its own."""
    async with serve(db, Settings(data=tmp_path)) as web:
        yield web


async def send_file(web: Web, caller: str = "acme manager", content: bytes = REVIEWS, **form: str) -> dict[str, object]:
    files = {"file": ("reviews.csv", content, "text/csv")}
    answer = await web.client(caller).post("/api/ingest/csv", files=files, data={"embed": "false"} | form)
    assert answer.status_code == 202, answer.text
    return answer.json()


async def cron(web: Web, worker: str, **headers: str) -> dict[str, object]:
    answer = await web.make_client().post(f"/api/workers/{worker}", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


# --- files and reports


async def test_a_file_is_answered_with_a_job_at_once_and_loaded_by_the_worker_endpoint(mill: Web) -> None:
    started = await send_file(mill, project="one")
    assert started["plan"]["text"] == ["text"]  # type: ignore[index]
    run = await cron(mill, "ingestion")
    assert (run["started"], run["finished"], run["ended_by"]) == (1, 1, "idle")
    report = (await mill.client("acme viewer").get(f"/api/imports/{started['import_id']}")).json()
    assert (report["state"], report["project"]) == ("loaded", "one")
    assert report["counts"] | {} == {"loaded": 3, "updated": 0, "duplicate": 0, "filtered": 0, "invalid": 1}
    task = (await mill.client("acme viewer").get(f"/api/records?import_id={started['import_id']}")).json()
    assert [one["external_id"] for one in task["items"]] == ["r1", "r2", "r4"]


async def test_rejected_rows_and_records_can_be_downloaded_and_formulas_are_escaped(mill: Web) -> None:
    started = await send_file(mill)
    await cron(mill, "ingestion")
    client = mill.client("acme viewer")
    rejected = await client.get(f"/api/imports/{started['import_id']}/rejected")
    assert list(csv.reader(io.StringIO(rejected.text)))[1] == ["4", "invalid", "its text is empty", "r3", "", "3"]
    assert rejected.headers["content-disposition"].startswith("attachment")
    exported = await client.get(f"/api/imports/{started['import_id']}/export")
    assert list(csv.reader(io.StringIO(exported.text)))[-1] == ["r4", "'=cmd|calc", "2", ""]


async def test_a_bad_file_is_refused_with_a_sentence_and_nothing_is_kept(mill: Web) -> None:
    files = {"file": ("reviews.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(32)) * 50, "text/csv")}
    answer = await mill.client("acme manager").post("/api/ingest/csv", files=files)
    assert (answer.status_code, answer.json()["detail"]) == (
        422,
        "reviews.csv cannot be imported. It is not text: import CSV, JSON lines or XLSX.",
    )
    assert (await mill.client("acme manager").get("/api/imports")).json()["items"] == []


async def test_a_viewer_imports_nothing_and_another_client_sees_nothing(mill: Web) -> None:
    files = {"file": ("reviews.csv", REVIEWS, "text/csv")}
    assert (await mill.client("acme viewer").post("/api/ingest/csv", files=files)).status_code == 403
    started = await send_file(mill)
    for path in (f"/api/imports/{started['import_id']}", f"/records/{started['import_id']}"):
        assert (await mill.client("globex admin").get(path)).status_code == 404
    answer = await mill.client("acme manager").post("/api/ingest/csv", files=files, data={"client": "globex"})
    assert answer.status_code == 404


async def test_an_import_is_removed_with_a_report(mill: Web) -> None:
    started = await send_file(mill)
    await cron(mill, "ingestion")
    gone = await mill.client("acme manager").delete(f"/api/imports/{started['import_id']}")
    assert gone.json() | {"tasks": 0} == {"records": 3, "chunks": 0, "tasks": 0}
    assert (await mill.client("acme manager").get("/api/records")).json()["items"] == []


# --- pages


async def test_a_person_uploads_a_table_sees_how_it_is_read_and_loads_it(mill: Web) -> None:
    client = mill.client("acme manager")
    script = {"HX-Request": "true"}
    uploaded = await client.post("/records", files={"file": ("reviews.csv", REVIEWS, "text/csv")}, headers=script)
    page = uploaded.headers["hx-redirect"]
    draft = (await client.get(page)).text
    assert "Nothing is loaded yet" in draft
    assert "The flour was damp" in draft
    assert "row 4: its text is empty" in draft
    again = await client.post(f"{page}/load", data={"text": "text", "filter": "flour", "only_look": "true"})
    assert "it has none of the words: flour" in again.text
    loaded = await client.post(f"{page}/load", data={"text": "text", "unique_text": "true"})
    assert (loaded.status_code, loaded.headers["location"]) == (303, page)
    await cron(mill, "ingestion")
    report = (await client.get(page)).text
    assert "rejected.csv" in report
    assert "invalid</strong> row 4: its text is empty" in report
    assert "reviews.csv" in (await client.get("/records")).text


async def test_a_wrong_column_is_told_beside_the_preview(mill: Web) -> None:
    client = mill.client("acme manager")
    uploaded = await client.post("/records", files={"file": ("reviews.csv", REVIEWS, "text/csv")})
    answer = await client.post(f"{uploaded.headers['location']}/load", data={"text": "opinion"})
    assert answer.status_code == 422
    assert "There is no column “opinion”: there are task_id, text, rating." in answer.text


async def test_the_monitor_shows_jobs_and_retries_and_cancels_them(mill: Web) -> None:
    started = await send_file(mill)
    client, job = mill.client("acme manager"), started["jobId"]
    page = (await client.get("/admin/queue-monitor")).text
    assert "INGEST_DATA" in page
    stats = (await client.get("/api/admin/queue/stats")).json()
    assert stats["oldestPendingJob"] == stats["recentJobs"][0]
    assert (stats["recentJobs"][0]["id"], stats["recentJobs"][0]["jobType"]) == (str(job), "INGEST_DATA")
    assert 'hx-trigger="every 5s' in page
    assert (await client.post(f"/admin/queue-monitor/{job}/cancel")).status_code == 303
    assert f"/admin/queue-monitor/{job}/retry" in (await client.get("/admin/queue-monitor")).text
    assert (await client.post(f"/admin/queue-monitor/{job}/retry")).status_code == 303
    assert (await cron(mill, "ingestion"))["finished"] == 1
    assert (await mill.client("acme viewer").get("/admin/queue-monitor")).status_code == 403


# --- cron


@pytest.mark.parametrize("worker", ["ingestion", "vectorization", "cleanup"])
async def test_a_worker_endpoint_asks_for_the_secret(db: Database, tmp_path: Path, worker: str) -> None:
    settings = Settings(data=tmp_path)
    records = settings.records.model_copy(update={"cron_secret": SecretStr("s3cret")})
    async with serve(db, settings.model_copy(update={"records": records})) as web:
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "s3cret"}):
            answer = await web.make_client().get(f"/api/workers/{worker}", headers=headers)
            assert (answer.status_code, "s3cret" in answer.text) == (401, False)
        answer = await web.make_client().get(f"/api/workers/{worker}", headers={"Authorization": "Bearer s3cret"})
        assert answer.status_code == 200


async def test_the_variable_of_serverless_hosts_is_a_secret_too(mill: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRON_SECRET", "from the host")
    assert (await mill.make_client().get("/api/workers/cleanup")).status_code == 401
    assert (await cron(mill, "cleanup", Authorization="Bearer from the host"))["worker"] == "cleanup"


async def test_without_a_secret_only_this_machine_may_call(mill: Web) -> None:
    assert (await mill.make_client(address="10.1.2.3").get("/api/workers/cleanup")).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"},
        {"Sec-Fetch-Site": "same-site"},
        {"X-Forwarded-For": "203.0.113.7"},
        {"Forwarded": "for=203.0.113.7"},
    ],
)
async def test_without_a_secret_no_page_and_no_proxy_may_call(mill: Web, headers: dict[str, str]) -> None:
    for method in ("GET", "POST"):
        answer = await mill.make_client().request(method, "/api/workers/cleanup", headers=headers)
        assert (method, answer.status_code) == (method, 403)


async def test_without_a_secret_a_get_changes_nothing(mill: Web) -> None:
    await send_file(mill)
    answer = await mill.make_client().get("/api/workers/ingestion")
    assert (answer.status_code, answer.json()["detail"]) == (403, "Send a POST, or set CRON_SECRET.")
    assert (await cron(mill, "ingestion"))["started"] == 1


async def test_without_a_secret_nobody_may_call_a_server_that_all_can_reach(db: Database, tmp_path: Path) -> None:
    open_to_all = Settings(data=tmp_path, web=WebSettings(host="0.0.0.0"))
    async with serve(db, open_to_all) as web:
        answer = await web.make_client().get("/api/workers/cleanup")
        assert (answer.status_code, answer.json()["detail"]) == (
            403,
            "Set CRON_SECRET: this server can be reached from elsewhere.",
        )


async def test_a_call_does_three_files_and_leaves_the_fourth(mill: Web) -> None:
    for n in range(4):
        await send_file(mill, content=REVIEWS.replace(b"flour", b"flour %d" % n).replace(b"r1", b"x%d" % n))
    first = await cron(mill, "ingestion")
    assert (first["started"], first["ended_by"]) == (3, "jobs")
    assert (await cron(mill, "ingestion"))["started"] == 1


async def test_a_call_ends_within_its_budget_and_the_next_goes_on_where_it_was(db: Database, tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    slow = settings.records.model_copy(update={"batch": 1, "budget": timedelta(seconds=15)})
    rows = b"".join(b"r%d,text number %d\n" % (n, n) for n in range(20_000))
    async with serve(db, settings.model_copy(update={"records": slow})) as web:
        started = await send_file(web, content=b"task_id,text\n" + rows)
        run = await cron(web, "ingestion")
        assert (run["handed_back"], run["ended_by"]) == (1, "time")
        assert run["seconds"] < 15  # type: ignore[operator]
        report = (await web.client("acme viewer").get(f"/api/imports/{started['import_id']}")).json()
        assert report["counts"]["loaded"] < 20_000
        async with handlers(db, settings) as bound:
            await Worker(db, bound, settings.queue, queues=["ingestion"], until_idle=True).run()
        report = (await web.client("acme viewer").get(f"/api/imports/{started['import_id']}")).json()
        assert report["counts"]["loaded"] == 20_000


async def test_two_calls_at_once_load_every_file_once(mill: Web) -> None:
    for n in range(4):
        await send_file(mill, content=b"task_id,text\n%d,text of file %d\n" % (n, n))
    runs = await asyncio.gather(cron(mill, "ingestion"), cron(mill, "ingestion"))
    assert sum(run["finished"] for run in runs) == 4  # type: ignore[misc]
    assert len((await mill.client("acme viewer").get("/api/records")).json()["items"]) == 4


async def test_cleanup_removes_jobs_of_last_week_and_drafts_of_yesterday(mill: Web) -> None:
    await send_file(mill)
    await mill.client("acme manager").post("/records", files={"file": ("draft.csv", REVIEWS, "text/csv")})
    await cron(mill, "ingestion")
    async with mill.db.transaction() as tx:
        assert await tx.value("SELECT count(*) FROM task") == 1
        await tx.execute("UPDATE task SET finished_at = finished_at - interval '8 days'")
        await tx.execute("UPDATE data_import SET created_at = created_at - interval '2 days'")
    run = await cron(mill, "cleanup")
    assert (run["jobs"], run["drafts"]) == (1, 1)
    assert len((await mill.client("acme viewer").get("/api/imports")).json()["items"]) == 1


async def test_a_removal_that_is_refused_is_not_written_down(mill: Web) -> None:
    document = (await send_file(mill, "operator"))["import_id"]
    refused = await mill.client("acme manager").delete(f"/api/imports/{document}")
    assert (refused.status_code, "everybody's" in refused.json()["detail"]) == (422, True)
    log = {"subject": f"import {document}", "action": "remove"}
    assert (await mill.client("operator").get("/api/audit", params=log)).json()["items"] == []
    assert (await mill.client("operator").delete(f"/api/imports/{document}")).status_code == 200
    assert len((await mill.client("operator").get("/api/audit", params=log)).json()["items"]) == 1


async def test_records_are_listed_by_import_and_category_in_portions(mill: Web) -> None:
    rows = "".join(f"r{n},Review number {n},{n}\n" for n in range(1, 41))
    document = (await send_file(mill, content=f"task_id,text,rating\n{rows}".encode(), rank_by="rating"))["import_id"]
    await cron(mill, "ingestion")
    for wanted, expected in (
        ({"import_id": document}, [f"r{n}" for n in range(1, 41)]),
        ({"import_id": document, "category": "TOP_10"}, ["r37", "r38", "r39", "r40"]),
        ({"category": "BOTTOM_10"}, ["r1", "r2", "r3", "r4"]),
        ({}, [f"r{n}" for n in range(1, 41)]),
    ):
        for caller in ("operator", "acme viewer"):
            assert await list_all(mill, caller, wanted) == expected
    assert await list_all(mill, "globex viewer", {"category": "TOP_10"}) == []


async def list_all(web: Web, caller: str, wanted: dict[str, object]) -> list[str]:
    found, cursor = list[str](), None
    while True:
        asked = {**wanted, "limit": 3, **({"cursor": cursor} if cursor else {})}
        portion = (await web.client(caller).get("/api/records", params=asked)).json()
        found += [one["external_id"] for one in portion["items"]]
        if (cursor := portion["next"]) is None:
            return found


async def test_records_are_found_by_a_column_over_http_and_on_the_page(mill: Web) -> None:
    await send_file(mill, embed="true", client="acme", project="")
    await cron(mill, "ingestion")
    await cron(mill, "vectorization")
    wish = {"query": "flour delivery", "alpha": 0, "columns": {"rating": "1"}}
    for caller in ("operator", "acme viewer"):
        (hit,) = (await mill.client(caller).post("/api/kb/search", json=wish)).json()["items"]
        assert (hit["columns"]["task_id"], hit["record"] is not None) == ("r1", True)
    page = await mill.client("operator").get(
        "/search", params={"q": "flour delivery", "alpha": "0", "column": "rating", "value": "5"}
    )
    assert "Quick" in page.text
    assert "damp" not in page.text
    assert "<option selected>rating</option>" in page.text
