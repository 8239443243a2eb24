"""Mails whose documents cannot be read: their source says so, beside the error, and counts them apart."""

from pathlib import Path
from typing import Any

from farm import Farm, a_farm, a_mail
from test_hostile_mails import LEFT_OUT, work

from gristmill.db import Database, Tx
from gristmill.documents.room import ROOM as DOCUMENTS
from gristmill.rooms import Tools, bind_rooms
from gristmill.scopes import Scope
from gristmill.sources import count_items
from gristmill.sources.items import STATES, list_items, load_item
from gristmill.sources.model import Source
from gristmill.sources.room import ROOM as SOURCES

ACME = Scope("acme")
ENCRYPTED = a_mail("secret", "--b\r\n\r\nXXXX\r\n--b--", Content_Type='multipart/encrypted; boundary="b"')


async def read_all(farm: Farm) -> None:
    bound = bind_rooms([SOURCES, DOCUMENTS], Tools(farm.db, farm.settings, farm.models, [SOURCES, DOCUMENTS]))
    await work(farm, {kind: one for kind, one in bound.items() if not kind.startswith(LEFT_OUT)})


async def test_a_mail_whose_document_cannot_be_opened_is_failed_in_its_source(db: Database, tmp_path: Path) -> None:
    (tmp_path / "mails").mkdir()
    (tmp_path / "mails" / "1.eml").write_bytes(a_mail("plain"))
    (tmp_path / "mails" / "2.eml").write_bytes(ENCRYPTED)
    async with a_farm(db, tmp_path) as farm:
        source = await farm.add("eml", ACME, path=str(tmp_path / "mails"))
        await read_all(farm)
        async with db.transaction() as tx:
            await check_lists(tx, source)
        async with db.reading(seen_from=ACME) as tx:
            await check_lists(tx, source)
        async with db.reading(seen_from=Scope("globex")) as tx:
            assert await list_items(tx, source.id) == []


async def check_lists(tx: Tx, source: Source) -> None:
    """Whoever looks sees the same in the list, beside one item, in the lists of its states, and in the counts."""
    listed = await list_items(tx, source.id)
    assert {one.external: one.state for one in listed} == {"1.eml": "INDEXED", "2.eml": "FAILED"}
    (failed,) = [one for one in listed if one.state == "FAILED"]
    assert failed.error is not None
    assert "is encrypted" in failed.error
    assert await load_item(tx, source.id, failed.id) == failed
    assert await list_items(tx, source.id, state="FAILED") == [failed]
    lists: dict[str, list[Any]] = {state: await list_items(tx, source.id, state=state) for state in STATES}
    counts = (await count_items(tx, [source.id]))[source.id]
    assert {state: len(found) for state, found in lists.items() if found} == counts == {"INDEXED": 1, "FAILED": 1}
