"""Idempotency keys: a write is done once, whoever repeats it, whenever, and however many at the same time."""

import asyncio
from datetime import timedelta
from typing import Any

import httpx
import pytest
from serving import OPERATOR, Web

from gristmill.db import Tx
from gristmill.documents import Item
from gristmill.errors import LeaseLost
from gristmill.web.access.audit import RunningWrite, current_write
from gristmill.web.api import uploads
from gristmill.web.gate import writes


class Died(BaseException):
    """The process is gone."""


WISH = {"name": "anna", "role": "viewer"}


async def add_key(web: Web, key: str, caller: str = "operator", **wish: str) -> httpx.Response:
    return await web.client(caller).post("/api/keys", json={**WISH, **wish}, headers={"Idempotency-Key": key})


async def revoke_key(web: Web, id: int, key: str, caller: str = "operator") -> httpx.Response:
    return await web.client(caller).delete(f"/api/keys/{id}", headers={"Idempotency-Key": key})


async def make_key(web: Web, name: str = "anna") -> int:
    return (await web.client("operator").post("/api/keys", json={**WISH, "name": name})).json()["id"]


async def count_changes(web: Web, action: str) -> int:
    async with web.db.transaction() as tx:
        return await tx.value(
            "SELECT count(*) FROM audit WHERE action = %(action)s AND caller <> 'test'", action=action
        )


async def test_a_repetition_gets_the_answer_of_the_first(web: Web) -> None:
    id = await make_key(web)
    first, second = await revoke_key(web, id, "once"), await revoke_key(web, id, "once")
    assert (first.status_code, second.status_code) == (200, 200)
    assert second.json() == first.json()
    assert second.headers["idempotency-replayed"] == "true"
    assert "idempotency-replayed" not in first.headers
    assert await count_changes(web, "revoke key") == 1


async def test_without_the_key_it_is_another_request(web: Web) -> None:
    id = await make_key(web)
    assert (await revoke_key(web, id, "once")).status_code == 200
    assert (await web.client("operator").delete(f"/api/keys/{id}")).status_code == 422


async def test_the_same_key_for_another_request_is_refused(web: Web) -> None:
    id, other = await make_key(web), await make_key(web, "berta")
    assert (await revoke_key(web, id, "once")).status_code == 200
    assert (await revoke_key(web, other, "once")).status_code == 422
    assert (await add_key(web, "made", name="carla")).status_code == 201
    refused = await add_key(web, "made", name="dora")
    assert refused.status_code == 422
    assert "another request" in refused.json()["detail"]


async def test_an_answer_with_a_secret_is_not_kept(web: Web) -> None:
    secret = (await add_key(web, "made")).json()["secret"]
    assert (await add_key(web, "made")).status_code == 409
    async with web.db.transaction() as tx:
        kept = await tx.all("SELECT encode(answer, 'escape') AS answer FROM web_write")
    assert not any(secret in (row.answer or "") for row in kept)


async def test_a_refused_request_may_try_again_with_the_same_key(web: Web) -> None:
    assert (await revoke_key(web, 999_999, "again")).status_code == 404
    id = await make_key(web)
    assert (await revoke_key(web, id, "again")).status_code == 200


async def test_keys_of_different_callers_do_not_meet(web: Web) -> None:
    id = await make_key(web)
    assert (await revoke_key(web, id, "once")).status_code == 200
    other = await revoke_key(web, id, "once", "acme admin")
    assert other.status_code == 403


async def test_of_many_at_once_one_is_done_and_the_others_wait_or_get_its_answer(web: Web) -> None:
    id = await make_key(web)
    answers = await asyncio.gather(*(revoke_key(web, id, "once") for _ in range(12)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert sum(answer.status_code == 200 for answer in answers) >= 1
    assert await count_changes(web, "revoke key") == 1
    assert (await revoke_key(web, id, "once")).status_code == 200


async def test_a_write_whose_server_died_before_it_changed_anything_is_done_by_the_repetition(web: Web) -> None:
    id = await make_key(web)
    await abandon(web, id, committed=False)
    assert (await revoke_key(web, id, "lost")).status_code == 409
    await travel(web, "2 minutes")
    assert (await revoke_key(web, id, "lost")).status_code == 200


async def test_a_write_whose_server_died_after_the_change_is_never_done_again(web: Web) -> None:
    id = await make_key(web)
    await abandon(web, id, committed=True)
    await travel(web, "2 minutes")
    answer = await revoke_key(web, id, "lost")
    assert answer.status_code == 409
    assert "was done" in answer.json()["detail"]


async def test_the_change_itself_notes_that_it_took_place(web: Web, monkeypatch) -> None:
    """The server dies between the change and its answer: the row says that the change is there."""

    async def die(self, id: int, answer: writes.RouteAnswer, body: writes.BodyDigest) -> None:
        raise Died

    id = await make_key(web)
    with monkeypatch.context() as dying:
        dying.setattr(writes.WritesOnce, "_finish", die)
        dying.setattr(writes.WritesOnce, "_forget", forget_nothing)
        with pytest.raises(Died):
            await revoke_key(web, id, "lost")
    await travel(web, "2 minutes")
    answer = await revoke_key(web, id, "lost")
    assert (answer.status_code, "was done" in answer.json()["detail"]) == (409, True)
    assert await count_changes(web, "revoke key") == 1


async def test_a_server_that_was_only_slow_changes_nothing_once_a_repetition_has_taken_over(web: Web) -> None:
    id = await make_key(web)
    began, go_on = asyncio.Event(), asyncio.Event()
    record = web.app.state.services.record

    asked = {"caller": "key 1", "key": "lost", "head": b"", "patience": timedelta(minutes=1)}
    async with web.db.transaction() as tx:
        write = await tx.value(writes.SQL["begin_write"], **asked)

    async def be_slow() -> None:
        token = current_write.set(RunningWrite(write))
        try:
            async with web.db.transaction() as tx:
                began.set()
                await go_on.wait()
                await record(tx, OPERATOR, "change slowly", f"key {id}")
        finally:
            current_write.reset(token)

    slow = asyncio.create_task(be_slow())
    await began.wait()
    await travel(web, "2 minutes")
    async with web.db.transaction() as tx:
        assert await tx.value(writes.SQL["begin_write"], **asked) not in (None, write)
    go_on.set()
    with pytest.raises(LeaseLost, match="a repetition of the request does it now"):
        await slow
    assert await count_changes(web, "change slowly") == 0


async def test_of_several_files_those_that_are_missing_after_a_crash_are_added_by_the_repetition(
    web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, files = web.client("acme manager"), [("files", (f"{n}.md", f"Text {n}".encode())) for n in range(3)]
    take_in, seen = uploads.take_in, list[str]()

    async def die_at_the_second(tx: Tx, item: Item) -> Any:
        seen.append(item.name)
        if len(seen) == 2:
            raise Died
        return await take_in(tx, item)

    with monkeypatch.context() as dying:
        dying.setattr(uploads, "take_in", die_at_the_second)
        dying.setattr(writes.WritesOnce, "_forget", forget_nothing)
        with pytest.raises(Died):
            await client.post("/api/documents", files=files, headers={"Idempotency-Key": "many"})
    assert (await client.post("/api/documents", files=files, headers={"Idempotency-Key": "many"})).status_code == 409
    await travel(web, "2 minutes")
    again = await client.post("/api/documents", files=files, headers={"Idempotency-Key": "many"})
    assert [one["status"] for one in again.json()["items"]] == ["unchanged", "added", "added"]
    replayed = await client.post("/api/documents", files=files, headers={"Idempotency-Key": "many"})
    assert replayed.headers["idempotency-replayed"] == "true"


async def forget_nothing(self: writes.WritesOnce, id: int) -> None:
    """A process that is gone forgets nothing."""


async def test_a_key_is_forgotten_after_a_day(web: Web) -> None:
    assert (await add_key(web, "made")).status_code == 201
    await travel(web, "25 hours")
    assert (await add_key(web, "made", name="berta")).status_code == 201


async def abandon(web: Web, id: int, *, committed: bool) -> None:
    """What a server leaves that is killed in the middle of a write."""
    scope = {
        "type": "http",
        "method": "DELETE",
        "path": f"/api/keys/{id}",
        "query_string": b"",
        "headers": [],
    }
    async with web.db.transaction() as tx:
        key = await tx.value("SELECT id FROM access_key WHERE name = 'operator'")
        await tx.execute(
            "INSERT INTO web_write (caller, key, head, is_committed) VALUES (%(caller)s, 'lost', %(head)s, %(done)s)",
            caller=f"key {key}",
            head=writes.digest_head(scope),
            done=committed,
        )


async def travel(web: Web, span: str) -> None:
    """Everything that was written is older by this."""
    async with web.db.transaction() as tx:
        await tx.execute("UPDATE web_write SET began_at = began_at - %(span)s::interval", span=span)
