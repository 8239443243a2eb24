"""Tasks, groups, queues, dead letters, schedules and bulk actions over HTTP."""

import sys
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from serving import ACME, Web

sys.path.insert(0, str(Path(__file__).parents[1] / "queue"))

from crew import worked
from engine import Bake, Grind, audit, buried, claimed, ground, registered

from gristmill.queue import (
    Done,
    Envelope,
    RunBulk,
    add_schedule,
    on,
    open_group,
    pause,
    seal,
    send,
    send_many,
    set_queue,
)
from gristmill.web.bulk import run_bulk

LATEST = ["cancel", "retry", "run now"]


async def ask(web: Web, path: str, caller: str = "operator", **query: Any) -> Any:
    answer = await web.client(caller).get(f"/api{path}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def do(
    web: Web, path: str, body: Any = None, caller: str = "operator", *, expect: int = 200, **query: Any
) -> Any:
    answer = await web.client(caller).post(f"/api{path}", json=body, params=query)
    assert answer.status_code == expect, answer.text
    return answer.json()


async def run_bulks(web: Web) -> None:
    await worked(web.db, on(RunBulk, partial(run_bulk, db=web.db)))


async def test_tasks_are_found_by_all_that_a_filter_says(web: Web) -> None:
    async with web.db.transaction() as tx:
        sent = await send_many(tx, [Grind(i) for i in range(120)])
        await buried(tx, 2, "no water")
        (done,) = await ground(tx, 1, Done(result={"flour": "spelt"}))
    first = await ask(web, "/tasks", limit=100)
    rest = await ask(web, "/tasks", limit=100, cursor=first["next"])
    assert [one["id"] for one in first["items"] + rest["items"]] == sent[::-1]
    assert rest["next"] is None
    assert [one["id"] for one in (await ask(web, "/tasks", text="spelt"))["items"]] == [done]
    assert (await ask(web, "/tasks", text="nowhere", queue="mill")) == {"items": [], "next": None, "looked": 120}
    (one, other) = (await ask(web, "/tasks", status="failed"))["items"]
    assert (await ask(web, "/tasks", cluster=one["cluster"]))["items"] == [one, other]
    assert (await ask(web, "/tasks", older_than=3600))["items"] == []
    for wrong in ({"status": "lost"}, {"cursor": "x"}, {"nonsense": "1"}, {"since": "2026-01-01T00:00:00"}):
        answer = await web.client("operator").get("/api/tasks", params=wrong)
        assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")


async def test_of_a_large_payload_a_list_shows_the_beginning_and_the_task_all(web: Web) -> None:
    async with web.db.transaction() as tx:
        (task,) = await send_many(tx, [Grind(1)])
        await tx.execute("UPDATE task SET payload = jsonb_build_object('text', repeat('x', 5000))")
    (shown,) = (await ask(web, "/tasks"))["items"]
    assert len(shown["payload"]) == 2001
    assert len((await ask(web, f"/tasks/{task}"))["payload"]["text"]) == 5000


async def test_a_task_is_told_with_its_history_and_why_and_what_would_let_it_go(web: Web) -> None:
    async with web.db.transaction() as tx:
        first, second = await send_many(tx, [Grind(1), Grind(2)])
        await registered(tx)
    found = await ask(web, f"/tasks/{second}")
    assert (found["status"], found["history"][0]["what"]) == ("pending", "sent")
    why = await ask(web, f"/tasks/{second}/why")
    assert why["state"] == "queued"
    move = why["remedies"][0]
    assert (move["method"], move["path"], move["body"]) == ("POST", f"/api/tasks/{second}/move", {"first": True})
    await do(web, move["path"].removeprefix("/api"), move["body"])
    assert "next in line" in (await ask(web, f"/tasks/{second}/why"))["sentence"]
    async with web.db.transaction() as tx:
        await pause(tx, "mill")
    (resume,) = (await ask(web, f"/tasks/{first}/why"))["remedies"]
    assert (resume["action"], resume["operator"]) == ("resume", True)
    await do(web, resume["path"].removeprefix("/api"))
    assert (await ask(web, "/queues/mill"))["paused"] is False


@pytest.mark.parametrize(
    ("setting", "state", "field"),
    [({"concurrency": 1}, "at its limit", "concurrency"), ({"rate": "1/60s"}, "rate-limited", "rate")],
)
async def test_a_limit_that_holds_a_task_back_can_be_raised(
    web: Web, setting: dict[str, Any], state: str, field: str
) -> None:
    async with web.db.transaction() as tx:
        _, second = await send_many(tx, [Grind(1), Grind(2)])
        worker = await registered(tx)
        await claimed(tx, worker, 1)
        await set_queue(tx, "mill", **setting)
        await tx.execute("UPDATE queue SET recent_at = ARRAY[clock()], recent_n = ARRAY[1]")
    why = await ask(web, f"/tasks/{second}/why")
    assert (why["state"], why["remedies"][0]["choose"]) == (state, [field])
    path = why["remedies"][0]["path"].removeprefix("/api")
    answer = await web.client("operator").patch(f"/api{path}", json={field: None})
    assert answer.status_code == 200
    assert (await ask(web, f"/tasks/{second}/why"))["state"] == "queued"


async def test_a_task_that_waits_for_a_time_runs_now_and_one_that_is_dead_is_retried(web: Web) -> None:
    async with web.db.transaction() as tx:
        later = await send(tx, Grind(1), delay=timedelta(hours=5))
    remedy = (await ask(web, f"/tasks/{later}/why"))["remedies"][0]
    assert remedy["path"] == f"/api/tasks/{later}/run-now"
    assert (await do(web, f"/tasks/{later}/run-now"))["state"] == "no worker"
    await do(web, f"/tasks/{later}/run-now", expect=422)
    async with web.db.transaction() as tx:
        await buried(tx, 1)
    remedy = (await ask(web, f"/tasks/{later}/why"))["remedies"][0]
    assert (await do(web, remedy["path"].removeprefix("/api")))["tasks"] == [later]
    assert (await do(web, f"/tasks/{later}/retry", expect=409))["detail"].startswith(f"Task {later} stays as it is")
    assert (await do(web, f"/tasks/{later}/cancel"))["cancelled"] == [later]
    async with web.db.transaction() as tx:
        await audit(tx)
        assert await tx.value("SELECT (array_agg(action ORDER BY id DESC))[1:3] FROM audit") == LATEST


async def test_the_children_of_a_group_come_in_portions(web: Web) -> None:
    async with web.db.transaction() as tx:
        group = await open_group(tx, label="a book")
        children = await send_many(tx, [Envelope(Grind(i), parent=group) for i in range(250)])
        await seal(tx, group)
        await buried(tx, 3)
    found = await ask(web, f"/groups/{group}")
    assert (found["label"], found["total"], found["failed"], len(found["errors"])) == ("a book", 250, 3, 3)
    seen: list[int] = []
    after: dict[str, Any] = {}
    while True:
        portion = await ask(web, f"/groups/{group}/children", limit=100, **after)
        seen += [one["id"] for one in portion["items"]]
        if portion["next"] is None:
            break
        after = {"cursor": portion["next"]}
    assert seen == children[::-1]
    assert len((await ask(web, f"/groups/{group}/children", status="failed"))["items"]) == 3
    answer = await web.client("operator").get(f"/api/groups/{children[0]}/children")
    assert answer.status_code == 404


async def test_queues_are_shown_set_paused_and_charted(web: Web) -> None:
    async with web.db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(5)])
        await ground(tx, 2)
    (mill,) = (await ask(web, "/queues"))["items"]
    assert mill == {
        "queue": "mill",
        "pending": 3,
        "processing": 0,
        "completed": 2,
        "failed": 0,
        "skipped": 0,
        "cancelled": 0,
    }
    answer = await web.client("operator").patch("/api/queues/mill", json={"rate": "10/60s", "timeout": "5min"})
    assert (answer.json()["settings"]["rate_count"], answer.json()["settings"]["timeout"]) == (10, "5min")
    assert (await web.client("operator").patch("/api/queues/mill", json={})).status_code == 422
    assert (await web.client("operator").patch("/api/queues/mill", json={"rate": "often"})).status_code == 422
    assert (await web.client("operator").patch("/api/queues/none", json={"rate": None})).status_code == 404
    assert (await do(web, "/queues/mill/pause"))["paused"] is True
    points = (await ask(web, "/queues/mill/history", minutes=5))["items"]
    assert (len(points), points[-1]["open"], sum(one["completed"] for one in points)) == (5, 3, 2)
    assert (await ask(web, "/queues/history", minutes=120, step=10))["items"][-1]["open"] == 3


async def test_a_client_reads_its_own_numbers_and_may_not_touch_queues(web: Web) -> None:
    async with web.db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(5)])
        await send(tx, Bake(1))
    async with web.db.transaction(seen_from=ACME) as tx:
        await send_many(tx, [Grind(i) for i in range(2)])
    (mill,) = (await ask(web, "/queues", "acme viewer"))["items"]
    assert (mill["queue"], mill["pending"]) == ("mill", 2)
    assert len((await ask(web, "/tasks", "acme viewer"))["items"]) == 2
    assert (await ask(web, "/queues/history", "acme viewer"))["items"][-1]["open"] == 2
    assert (await ask(web, "/admin/queue/stats", "acme manager"))["queueStats"]["pending"] == 2
    for path in ("/queues/mill/pause", "/queues/mill/resume"):
        assert (await web.client("acme admin").post(f"/api{path}")).status_code == 403
    assert (await web.client("acme admin").get("/api/queues/oven/history")).status_code == 404
    answer = await web.client("acme viewer").get("/api/tasks", params={"client": "globex"})
    assert answer.status_code == 404


async def test_dead_letters_are_counted_clustered_and_replayed(web: Web) -> None:
    async with web.db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(12)])
        first = await buried(tx, 5, "no water in 7")
        await buried(tx, 7, "no wind")
    numbers = await ask(web, "/dead")
    assert (numbers["total"], numbers["by_queue"], numbers["alert"]) == (12, {"mill": 12}, True)
    wind, water = (await ask(web, "/dead/clusters"))["items"]
    assert (wind["count"], water["count"], set(water["examples"])) == (7, 5, set(first))
    assert len((await ask(web, "/dead/letters", cluster=water["cluster"], limit=3))["items"]) == 3
    assert (await do(web, "/dead/replay", {"ids": first[:2]}, expect=202))["tasks"] == 2
    bulk = (await do(web, "/dead/replay", {"cluster": water["cluster"]}, expect=202))["bulk"]
    await run_bulks(web)
    assert (await ask(web, f"/bulk/{bulk['id']}"))["changed"] == 3
    purge = await do(web, "/dead/purge", {"queue": "mill"}, expect=202)
    await run_bulks(web)
    assert (await ask(web, f"/bulk/{purge['id']}"))["changed"] == 7
    assert (await ask(web, "/dead"))["total"] == 0
    await do(web, "/dead/replay", {}, expect=422)


async def test_a_bulk_action_is_previewed_run_and_undone(web: Web) -> None:
    async with web.db.transaction() as tx:
        await send_many(tx, [Grind(i) for i in range(30)])
    wish = {"action": "cancel", "filter": {"queue": "mill"}}
    preview = await do(web, "/bulk/preview", wish)
    assert (preview["count"], preview["exact"], len(preview["samples"])) == (30, True, 10)
    begun = await do(web, "/bulk", wish | {"expected": 30}, expect=202)
    assert (begun["status"], begun["filter"]) == ("running", {"queue": "mill", "status": "pending"})
    assert (await ask(web, f"/tasks/{begun['runner']}/why"))["state"] == "no worker"
    await run_bulks(web)
    done = await ask(web, f"/bulk/{begun['id']}")
    assert (done["status"], done["changed"], done["can_undo"]) == ("done", 30, True)
    await do(web, f"/bulk/{begun['id']}/stop", expect=422)
    assert (await do(web, f"/bulk/{begun['id']}/undo", expect=202))["status"] == "undoing"
    await run_bulks(web)
    (listed,) = (await ask(web, "/bulk"))["items"]
    assert (listed["status"], listed["undone"]) == ("undone", 30)
    await do(web, "/bulk", {"action": "retry", "filter": {"status": "pending"}}, expect=422)


async def test_schedules_show_their_next_runs_by_both_clocks_and_their_history(web: Web) -> None:
    async with web.db.transaction() as tx:
        await add_schedule(tx, "nightly", Grind(1), cron="0 3 * * *", zone="Europe/Zagreb")
    (one,) = (await ask(web, "/schedules"))["items"]
    assert (one["name"], len(one["upcoming"]), one["upcoming"][0][11:13]) == ("nightly", 3, "03")
    ran = await do(web, "/schedules/nightly/run", expect=202)
    (run,) = (await ask(web, "/schedules/nightly/runs"))["items"]
    assert (run["task"], run["due"], run["status"]) == (ran["task"], None, "pending")
    answer = await web.client("operator").patch("/api/schedules/nightly", json={"enabled": False})
    assert (answer.json()["enabled"], answer.json()["next_at"]) == (False, None)
    assert (await ask(web, "/schedules", "acme viewer"))["items"] == []
    assert (await web.client("acme manager").post("/api/schedules/nightly/run")).status_code == 404


async def test_monitors_of_job_queues_get_the_shapes_that_they_know(web: Web) -> None:
    async with web.db.transaction() as tx:
        await open_group(tx)
        sent = await send_many(tx, [Grind(i) for i in range(4)])
        await ground(tx, 1)
        (failed,) = await buried(tx, 1)
    stats = await ask(web, "/admin/queue/stats")
    assert stats["queueStats"] == {"pending": 2, "processing": 0, "completed": 1, "failed": 1}
    assert [job["id"] for job in stats["recentJobs"]] == [str(task) for task in reversed(sent)]
    oldest = stats["oldestPendingJob"]
    assert (oldest["id"], oldest["jobType"], oldest["status"]) == (str(sent[2]), "mill.grind", "PENDING")
    fields = {"payload", "result", "progress", "priority", "attempts", "maxAttempts", "scheduledFor"}
    assert fields | {"startedAt", "completedAt", "createdAt", "updatedAt"} <= set(oldest)
    retried = await do(web, "/admin/queue/retry", jobId=failed)
    assert retried == {"jobId": str(failed), "status": "PENDING"}
    await do(web, "/admin/queue/retry", jobId=999, expect=404)
    assert (await web.client("operator viewer").get("/api/admin/queue/stats")).status_code == 403
