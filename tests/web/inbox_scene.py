"""An inbox in which something stands in every lane: decided by the rules, one that asks a person, one that failed."""

from datetime import UTC, datetime, timedelta

from gristmill.db import Database
from gristmill.ids import WorkItemId
from gristmill.models import FakeEmbedder
from gristmill.qualifier import add_convention, set_profile
from gristmill.qualifier.line import send_run
from gristmill.qualifier.moving import move_item
from gristmill.qualifier.qualification import qualify_many
from gristmill.qualifier.store import ItemDraft, get_item, make_item
from gristmill.qualifier.texts import load_item_texts
from gristmill.rooms import Tools
from gristmill.scopes import Scope, scope_id
from gristmill.settings import Settings

ACME = Scope("acme")
CAME = ("ready_for_qualification", "It came in.", "test")
FAR = f"{datetime.now(UTC) + timedelta(days=40):%d %B %Y}"
MAILS = (
    ("Bearing of the second mill broke this morning, please send a replacement to Graz", "ana@north.example",
     "Hello,\n\nthe bearing of the second mill broke this morning. Could you please send us a 6205 today?\n"),
    ("Invoice INV-2026-0412", "billing@papermill.example",
     f"Please find attached our invoice INV-2026-0412 over EUR 1,250.00. It is payable by {FAR}.\n"),
    ("Board meeting", "boss@mill.example", f"Everyone sends me two slides by {FAR}.\n"),
    ("Who has the keys?", "tom@mill.example", "Does anybody know who has the keys of the store?\n"),
    ("Contract draft for the new silo", "law@partner.example", "Could you check clause 4 and let me know?\n"),
    ("Your parcel is on its way", "noreply@parcel.example", "Your parcel will be delivered tomorrow.\n"),
    ("Weekly newsletter of the Association of Historic Water Mills and Friends", "news@mills.example",
     "What is new in the world of mills. Unsubscribe here.\n"),
    ("Re: Lunch", "eva@mill.example", "Thanks, that works!\n"),
)  # fmt: skip


async def bring_mails(db: Database) -> dict[str, WorkItemId]:
    """Title → item, decided by the rules."""
    async with db.transaction() as tx:
        scope = await scope_id(tx, ACME)
        await set_profile(tx, ACME, "jana", names=["Jana Nová"], addresses=["jana@acme.example"])
        await add_convention(tx, ACME, 'when sender is "*@news.example" then ignore', "jana")
        ids = {
            title: await make_item(
                tx,
                ItemDraft(
                    scope,
                    "email",
                    title,
                    *CAME,
                    text=text,
                    note={"subject": title, "sender": sender},
                ),
            )
            for title, sender, text in MAILS
        }
    models = type("Models", (), {"embedder": FakeEmbedder(), "built_in_embedder": FakeEmbedder(), "llm": None})()
    async with db.reading() as tx:
        texts = await load_item_texts(tx, list(ids.values()))
    for found in await qualify_many(Tools(db, Settings(), models), texts):
        assert not isinstance(found, Exception), found
        async with db.transaction() as tx:
            await found.write(tx)
    return ids


async def bring_trouble(db: Database) -> tuple[WorkItemId, WorkItemId]:
    """An item that asks a person, and one that cannot go on."""
    question = "Nothing could be read in it. What is to be done?"
    async with db.transaction() as tx:
        scope = await scope_id(tx, ACME)
        asks = await make_item(tx, ItemDraft(scope, "document", "scan-0031.pdf", *CAME, text="x"))
        fails = await make_item(tx, ItemDraft(scope, "document", "letter.tiff", *CAME, text="x"))
        for id_ in (asks, fails):
            task = await send_run(tx, await get_item(tx, id_))
            await move_item(
                tx, id_, "ready_for_execution", since=["ready_for_qualification"], why="It asks.", by="rules", task=task
            )
            await move_item(tx, id_, "dispatched", since=["ready_for_execution"], why="It is taken.", by="test")
            begun = (await get_item(tx, id_)).created_at
            await move_item(
                tx, id_, "running", since=["dispatched"], why="It begins.", by="test", run=1, started_at=begun
            )
        await move_item(
            tx, asks, "waiting_for_user", since=["running"], why="A person must look.", by="built-in", question=question
        )
        await move_item(
            tx, fails, "error", since=["running"], why="It failed.", by="built-in", error="Its documents were removed."
        )
    return asks, fails
