"""What chunks lead to: their things by the names that others use, and what these are related to."""

from collections.abc import Sequence

from graph_shelf import contribute, shelve
from gristmill.db import Database
from gristmill.ids import ChunkId
from gristmill.knowledge import graph, keys
from gristmill.knowledge.graph.leads import FEW
from gristmill.scopes import GLOBAL, Scope

ACME = Scope("acme")


async def led(db: Database, chunks: Sequence[ChunkId], scope: Scope | None = GLOBAL) -> list[tuple[str, str]]:
    """The edges that lead on from these chunks."""
    async with db.reading(seen_from=scope) as tx:
        return [(one.origin, one.name) for one in await graph.find_leads(tx, scope, chunks) if one.is_related]


async def test_a_chunk_leads_to_what_its_things_are_related_to_elsewhere(db: Database) -> None:
    (report,) = await shelve(db, "Mended by p.raman@weir.example.")
    (mail,) = await shelve(db, "From: Priya Raman <p.raman@weir.example>")
    await contribute(db, report, "p.raman@weir.example")
    await contribute(db, mail, "Priya Raman -HAS_ADDRESS-> p.raman@weir.example")
    assert await led(db, [report]) == [("p.raman@weir.example", "Priya Raman")]
    assert await led(db, [report], None) == [("p.raman@weir.example", "Priya Raman")]
    assert await led(db, []) == []


async def test_what_only_stands_beside_a_thing_is_no_lead(db: Database) -> None:
    (one,) = await shelve(db, "Jane and Bob.")
    await contribute(db, one, "Jane -RELATED_TO-> Bob")
    assert await led(db, [one]) == []


async def test_a_thing_is_called_as_others_call_it(db: Database) -> None:
    (short,) = await shelve(db, "Mended by Pri.")
    (full,) = await shelve(db, "Priya Raman manages the site.")
    await contribute(db, short, "Pri")
    await contribute(db, full, "Priya Raman")
    async with db.transaction() as tx:
        await keys.add_alias(tx, "", "person::pri", "person::priya raman")
    async with db.reading(seen_from=GLOBAL) as tx:
        (lead,) = await graph.find_leads(tx, GLOBAL, [short])
    assert (lead.origin, lead.name, lead.is_related) == ("Pri", "Priya Raman", False)


async def test_a_lead_does_not_cross_clients(db: Database) -> None:
    (shared,) = await shelve(db, "Jane came.")
    (secret,) = await shelve(db, "Jane signed with Globex.", client="globex")
    await contribute(db, shared, "Jane")
    await contribute(db, secret, "Jane -SIGNED_WITH-> Globex", client="globex")
    assert await led(db, [shared], ACME) == []
    assert await led(db, [secret], ACME) == []
    assert await led(db, [shared], Scope("globex")) == [("Jane", "Globex")]


async def test_what_many_chunks_mention_leads_everywhere_and_so_nowhere(db: Database) -> None:
    first, *others = await shelve(db, *(f"Jane knows Bob, {n}." for n in range(FEW + 1)))
    await contribute(db, first, "Jane -KNOWS-> Bob")
    for one in others:
        await contribute(db, one, "Bob")
    assert await led(db, [first]) == [("Bob", "Jane")]
