"""Dead letters and bulk actions in the console: preview, start, stop, undo, and what must be typed before."""

import re

import pytest
from serving import Web

from gristmill.ids import TaskId
from gristmill.queue import get_bulk, get_task, run_portion, send_many
from scenes import Extract, buried, set_scene


@pytest.fixture
async def dead(web: Web) -> list[TaskId]:
    async with web.db.transaction() as tx:
        await send_many(tx, [Extract(str(place)) for place in range(12)])
        return await buried(tx, 12, "the scan is blank", queues=("extract",))


async def start(web: Web, path: str, **form: str) -> int:
    answer = await web.client("operator").post(path, data=form)
    assert answer.status_code == 303, answer.text
    return int(answer.headers["location"].rpartition("/")[2])


async def test_dead_letters_stand_together_by_their_error(web: Web) -> None:
    await set_scene(web.db, documents=False, children=3)
    page = (await web.client("operator").get("/dead")).text
    assert len(re.findall(r'<tr id="cluster-', page)) == 4
    (link,) = re.findall(r'href="(/dead\?cluster=[^"]+)".*?>The page is blank', page)
    opened = (await web.client("operator").get(link)).text
    assert len(re.findall(r'<li id="letter-', opened)) == 3


async def test_a_preview_counts_shows_samples_and_changes_nothing(web: Web, dead: list[TaskId]) -> None:
    page = (await web.client("operator").get("/bulk/new?status=failed")).text
    assert "12 tasks" in page
    assert len(re.findall(r'<td class="nowrap"><a href="/tasks/', page)) == 10
    async with web.db.reading() as tx:
        assert (await get_task(tx, dead[0])).status == "failed"


async def test_a_bulk_replay_runs_and_is_undone(web: Web, dead: list[TaskId]) -> None:
    id = await start(web, "/bulk?status=failed&queue=extract", action="retry", expected="12")
    while (await run_portion(web.db, id)).is_open:
        pass
    assert "12 of 12 replayed" in (await web.client("operator").get(f"/bulk/{id}")).text
    await start(web, f"/bulk/{id}/undo")
    while (await run_portion(web.db, id)).is_open:
        pass
    async with web.db.reading() as tx:
        assert (await get_task(tx, dead[0])).status == "failed"
        assert (await get_bulk(tx, id)).status == "undone"


async def test_a_running_one_is_stopped(web: Web, dead: list[TaskId]) -> None:
    id = await start(web, "/bulk?status=failed", action="retry")
    assert "no worker serves this queue" in (await web.client("operator").get(f"/bulk/{id}")).text
    await start(web, f"/bulk/{id}/stop")
    assert (await run_portion(web.db, id)).status == "stopped"
    assert f'href="/bulk/{id}"' in (await web.client("operator").get("/bulk")).text


async def test_what_cannot_be_undone_must_be_typed(web: Web, dead: list[TaskId]) -> None:
    answer = await web.client("operator").post("/bulk?status=failed", data={"action": "purge"})
    assert answer.status_code == 422
    assert "type “remove”" in answer.text
    assert await start(web, "/bulk?status=failed", action="purge", typed="remove")


async def test_an_action_that_does_not_fit_the_status_is_refused(web: Web) -> None:
    answer = await web.client("operator").get("/bulk/new?status=pending&action=retry")
    assert answer.status_code == 422
    assert "there are cancel, priority, foreground" in answer.text


async def test_a_client_acts_on_its_own_tasks_alone(web: Web, dead: list[TaskId]) -> None:
    assert "No task" in (await web.client("acme manager").get("/bulk/new?status=failed")).text
    assert (await web.client("acme viewer").get("/bulk/new?status=failed")).status_code == 403
    id = await start(web, "/bulk?status=failed", action="retry")
    assert (await web.client("acme admin").get(f"/bulk/{id}")).status_code == 404
