"""The operator's pages: complete without scripts, for those who may see them, and their actions do what they say."""

import re
from dataclasses import dataclass
from typing import ClassVar

import pytest
from serving import Web

from gristmill.db import Tx
from gristmill.ids import TaskId
from gristmill.queue import Envelope, get_task, list_line, list_queues, open_group, seal, send, send_many
from gristmill.scopes import Scope, scope_id
from gristmill.web.assets import load_assets
from scenes import set_scene


@dataclass(frozen=True)
class Grind:
    kind: ClassVar[str] = "mill.grind"
    grain: str = ""


@pytest.fixture
async def sent(web: Web) -> list[TaskId]:
    async with web.db.transaction() as tx:
        return await send_many(tx, [Grind(f"grain {place}") for place in range(4)])


async def read(web: Web, path: str, caller: str = "operator", **headers: str) -> str:
    answer = await web.client(caller).get(path, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.text


async def press(web: Web, path: str, caller: str = "operator", **form: str) -> int:
    answer = await web.client(caller).post(path, data=form, headers={"HX-Request": "true"})
    return answer.status_code


async def in_line(tx: Tx) -> list[TaskId]:
    return [one.id for one in await list_line(tx, "mill")]


PATHS = ("/", "/tasks", "/queues", "/schedules", "/palette")


@pytest.mark.parametrize("path", PATHS)
async def test_every_page_is_there_before_anything_is_sent(web: Web, path: str) -> None:
    assert await read(web, path)


@pytest.mark.parametrize("path", ["/queues", "/queues/mill", "/queues/mill/settings", "/limiters/llm"])
async def test_what_concerns_all_clients_is_for_the_operator_alone(web: Web, path: str) -> None:
    assert (await web.client("acme admin").get(path)).status_code == 403


async def test_the_list_finds_a_text_inside_the_payload(web: Web, sent: list[TaskId]) -> None:
    page = await read(web, "/tasks?q=grain+2")
    assert re.findall(r'id="task-(\d+)"', page) == [str(sent[2])]


async def test_a_portion_leads_to_the_next(web: Web) -> None:
    async with web.db.transaction() as tx:
        tasks = await send_many(tx, [Grind(str(place)) for place in range(60)])
    page = await read(web, "/tasks?queue=mill")
    following = re.search(r'href="(/tasks\?[^"]*cursor=[^"]*)"', page)
    assert following
    shown = re.findall(r'id="task-(\d+)"', await read(web, following[1].replace("&amp;", "&")))
    assert [int(one) for one in shown] == tasks[9::-1]


async def test_a_chosen_task_stands_beside_the_list_with_its_reason(web: Web, sent: list[TaskId]) -> None:
    page = await read(web, f"/tasks?task={sent[3]}")
    assert "no worker serves this queue" in page
    assert f'action="/tasks/{sent[3]}/first"' in page
    assert "<code>gristmill worker --queues mill</code>" in page


async def test_a_viewer_is_shown_no_button_and_may_press_none(web: Web, sent: list[TaskId]) -> None:
    page = await read(web, f"/tasks/{sent[0]}", "operator viewer")
    assert "/cancel" not in page
    assert await press(web, f"/tasks/{sent[0]}/cancel", "operator viewer") == 403


async def test_a_task_of_another_client_is_not_there(web: Web) -> None:
    async with web.db.transaction() as tx:
        task = await send(tx, Grind("secret"), scope=await scope_id(tx, Scope("globex")))
    for path in (f"/tasks/{task}", f"/tasks?task={task}"):
        assert (await web.client("acme admin").get(path)).status_code == 404
    assert await press(web, f"/tasks/{task}/cancel", "acme admin") == 404
    assert "No task fits" in await read(web, "/tasks?q=secret", "acme viewer")


async def test_a_task_is_cancelled_and_brought_back(web: Web, sent: list[TaskId]) -> None:
    assert await press(web, f"/tasks/{sent[0]}/cancel") == 204
    assert await press(web, f"/tasks/{sent[0]}/retry") == 204
    async with web.db.reading() as tx:
        assert (await get_task(tx, sent[0])).status == "pending"


async def test_what_cannot_be_retried_says_why(web: Web, sent: list[TaskId]) -> None:
    answer = await web.client("operator").post(f"/tasks/{sent[0]}/retry")
    assert answer.status_code == 422
    assert "it has not ended yet" in answer.text


async def test_a_task_is_moved_first_and_before_another(web: Web, sent: list[TaskId]) -> None:
    a, b, c, d = sent
    assert await press(web, f"/tasks/{d}/first") == 204
    assert await press(web, "/queues/mill/order", task=str(c), before=str(b)) == 204
    async with web.db.reading() as tx:
        assert await in_line(tx) == [d, a, c, b]
    assert f'data-id="{d}"' in await read(web, "/queues/mill")


async def test_many_clusters_of_dead_letters_come_in_portions_in_the_order_of_the_whole(web: Web) -> None:
    async with web.db.transaction() as tx:
        await tx.execute(
            "INSERT INTO dead_tally (queue, scope, kind, fingerprint, n, first_at, last_at, error, examples)"
            " SELECT 'mill', 1, 'mill.grind', md5(n::text), n, clock(), clock(), 'The stone of kind ' || n, '{}'"
            " FROM generate_series(1, 130) n"
        )
    found: list[str] = []
    address: str | None = "/dead?sort=count"
    while address is not None:
        page = await read(web, address)
        found += re.findall(r'id="cluster-\w+".*?<span class="is-failed">(\d+)</span>', page, re.DOTALL)
        after = re.search(r'href="([^"]+)" rel="next"', page)
        address = after[1].replace("&amp;", "&") if after else None
    assert found == [str(n) for n in range(1, 131)]


async def test_groups_within_a_group_are_opened_or_visited_and_neither_hides_the_other(web: Web) -> None:
    async with web.db.transaction() as tx:
        group = await open_group(tx, label="a book")
        within = await open_group(tx, label="a chapter", parent=group)
    page = await read(web, f"/tasks/{group}")
    (summary,) = re.findall(r"<summary>.*?</summary>", page[page.index("section tree") :], re.DOTALL)
    assert "a chapter" in summary
    assert "<a " not in summary  # a link within what opens and closes cannot be reached by keyboard
    assert f'href="/tasks/{within}"' in page


async def test_a_group_opens_its_children_in_portions(web: Web) -> None:
    async with web.db.transaction() as tx:
        group = await open_group(tx, label="a large one")
        tasks = await send_many(tx, [Envelope(Grind(str(place)), parent=group) for place in range(120)])
        await seal(tx, group)
    page = await read(web, f"/tasks/{group}")
    assert "a large one" in page
    assert len(re.findall(r'id="child-\d+"', page)) == 100
    more = re.search(r'hx-get="(/tasks/\d+/children\?cursor=[^"]+)"', page)
    assert more
    rest = await read(web, more[1])
    assert [int(one) for one in re.findall(r'id="child-(\d+)"', rest)] == tasks[19::-1]


async def test_a_queue_is_paused_and_its_limits_are_changed(web: Web, sent: list[TaskId]) -> None:
    assert await press(web, "/queues/mill/pause") == 204
    assert await press(web, "/queues/mill/settings", rate="10/60s", concurrency="4", breaker="") == 204
    async with web.db.reading() as tx:
        (queue,) = [one for one in await list_queues(tx) if one.name == "mill"]
    assert queue.paused
    assert (queue.settings["rate_count"], queue.settings["concurrency"], queue.breaker) == (10, 4, None)
    page = await read(web, "/queues/mill/settings", **{"HX-Request": "true"})
    assert 'value="10/1min"' in page
    assert "<html" not in page


@pytest.mark.parametrize(
    ("field", "text"), [("rate", "often"), ("concurrency", "x"), ("timeout", "-"), ("breaker", "9")]
)
async def test_a_wrong_limit_is_explained(web: Web, sent: list[TaskId], field: str, text: str) -> None:
    answer = await web.client("operator").post("/queues/mill/settings", data={field: text})
    assert answer.status_code == 422
    assert field in answer.text
    assert "data-problem" in answer.text


async def test_every_change_is_in_the_audit_log(web: Web, sent: list[TaskId]) -> None:
    await press(web, "/queues/mill/pause")
    async with web.db.reading() as tx:
        rows = await tx.all("SELECT action, subject FROM audit ORDER BY id DESC LIMIT 1")
    assert [(row.action, row.subject) for row in rows] == [("pause", "queue mill")]


async def test_no_page_weighs_more_than_150_kilobytes(web: Web) -> None:
    """As it goes over the wire the first time, with all styles, scripts and icons."""
    scene = await set_scene(web.db)
    files = sum(len(file.packed) for file in load_assets().files.values())
    for path in (*PATHS, "/dead", f"/tasks?task={scene.group}", "/queues/extract"):
        page = await read(web, path)
        assert len(page.encode()) + files < 150_000, path
