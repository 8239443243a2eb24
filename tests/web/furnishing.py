"""Something in the rooms above documents, with names as ugly as people make them, and the addresses of all pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import httpx
from browser import Site
from surface import find_calls

from gristmill.agents import RunWish, load_run, start_run
from gristmill.agents.effects import Ask, Begun, Effect, EffectResult, Ledger
from gristmill.agents.memory import ProcedureStep, learn, remember, remember_in, state_procedure
from gristmill.agents.runs import WaitingForUser, rest_run, take_over
from gristmill.app import ROOMS
from gristmill.db import Database, Tx
from gristmill.ids import RunId
from gristmill.qualifier import ItemWish, add_convention, add_item
from gristmill.scopes import GLOBAL, Scope
from gristmill.sources import LinkedDocument, Wanted, add_source, extract_links, note_links
from gristmill.web.application import create_app
from scenes import EMOJI, ERRORS, LONG, MARKUP, RTL, UGLY, WORDY

CLIENT = Scope("a-client-whose-name-says-everything-about-it")
# what is no page: pieces of pages, lists for scripts, and what programs call
PIECES = ("/api", "/v1/", "/mcp", "/palette", "/view-as", "/alarms/bell", "/documents/", "/graph/", "/links/rules")
ITEMS = """
INSERT INTO source_item (source, scope, external, state, urn, title, error, size)
SELECT %(source)s, scope, 'INBOX;' || n, CASE WHEN n <= 2 THEN 'SET_ASIDE' ELSE 'INDEXED' END,
       CASE WHEN n > 2 THEN 'mail:' || n END, (%(names)s::text[])[1 + n %% 6],
       CASE WHEN n <= 2 THEN (%(errors)s::text[])[n] END, n * 977
  FROM source, generate_series(1, 40) n WHERE id = %(source)s
"""
ALARMS = """
INSERT INTO alarm (rule, subject, level, sentence, advice, since, seen_at, fired_at, told, over_at,
                   acknowledged_at, acknowledged_by, note)
SELECT rule, subject, level, sentence, advice, clock() - age, clock(), clock() - age, 1,
       CASE WHEN rule = 'disk' THEN clock() END, CASE WHEN rule = 'clock' THEN clock() END,
       CASE WHEN rule = 'clock' THEN 'anna' END, CASE WHEN rule = 'clock' THEN 'I look into it.' END
  FROM (VALUES
    ('dead-letters', '', 'critical', '43 dead letters wait for somebody.',
     'Look at them: one click replays a cluster.', interval '3 hours'),
    ('stage-starved', %(queue)s, 'warning', '5 tasks wait in ' || %(queue)s || ', and none ran for 10min.',
     'Run gristmill worker --queues ' || %(queue)s || '.', interval '11 minutes'),
    ('clock', '', 'warning', 'The clock of the database and ours differ by 3 s.', 'Set both.', interval '2 days'),
    ('disk', '', 'warning', 'The disk of the database is 93 %% full.', 'Make room.', interval '9 days')
  ) AS v (rule, subject, level, sentence, advice, age);
"""
ASKED = """
WITH made AS (
  INSERT INTO conversation (scope, owner, title) VALUES (1, 'operator', %(title)s) RETURNING id)
INSERT INTO conversation_message (conversation, scope, role, state, text, answer)
SELECT id, 1, role, state, text, NULL FROM made,
  (VALUES ('user', 'answered', %(question)s, 1), ('assistant', 'failed', %(error)s, 2)) v (role, state, text, n)
 ORDER BY n
RETURNING conversation
"""
DELEGATED = """
INSERT INTO agent_delegation (run, scope, delegation, depth, agent, task, state, output, tokens, calls, success,
                              started_at, finished_at)
SELECT id, scope, %(id)s, 1, %(agent)s, %(task)s, 'completed', '{}', %(tokens)s, 12, true,
       clock() - interval '42 s', clock()
  FROM agent_run WHERE id = %(run)s
"""
MAIL = {"to": ["eve\u202e@evil.example"], "subject": LONG[:150], "text": MARKUP}


@dataclass(frozen=True)
class Furnished:
    """The addresses of single things."""

    addresses: Sequence[str]


async def furnish(db: Database, client: httpx.AsyncClient) -> Furnished:
    """`client` calls the same house as an operator."""
    loaded = await import_table(client, ugly_table(), "loaded.csv", load=True)
    draft = await import_table(client, ugly_table(), UGLY[0][:180] + ".csv", load=False)
    run, question = await begin_run(db)
    async with db.transaction() as tx:
        source, item = await add_mailbox(tx)
        link = await add_links(tx)
        work = [await add_item(tx, GLOBAL, ItemWish(f"{MARKUP}\n{text}", title=text[:200]), by=RTL) for text in UGLY]
        rule = await add_convention(tx, GLOBAL, 'when sender is "*@news.example" then ignore', EMOJI, note=LONG)
        await add_memory(tx, run)
        await tx.execute(ALARMS, queue=WORDY)
        alarm = await tx.value("SELECT min(id) FROM alarm")
        asked = await tx.value(ASKED, title=LONG, question=LONG, error=ERRORS[2])
    for text in UGLY:
        await client.post("/api/keys", json={"name": text[:60], "role": "viewer", "client": str(CLIENT)})
    record = (await client.get("/api/records", params={"import_id": loaded})).json()["items"][0]["id"]
    return Furnished(
        (
            *(f"/records/{one}" for one in (loaded, draft)),
            f"/records/record/{record}",
            f"/runs/{run}",
            f"/questions/{question}",
            *(f"/sources/{source}", f"/sources/{source}/items/{item}"),
            *(f"/links/{link}", f"/alarms/{alarm}", f"/ask/{asked}"),
            *(f"/items/{work[0].id}", f"/conventions/{rule.id}"),
        )
    )


def ugly_table() -> bytes:
    """A table whose names, texts and columns are a test of patience."""
    names = ["task_id", "text", "rating", LONG[:90], RTL, *(f"column {n}" for n in range(12))]
    rows = [[str(n), f"{UGLY[n % 6]} {n} {ERRORS[n % 4]}", str(n % 5), *UGLY[:2], *"abcdefghijkl"] for n in range(60)]
    rows[3][1] = rows[4][1] = ""
    quoted = (",".join('"' + cell.replace('"', '""') + '"' for cell in row) for row in [names, *rows])
    return "\n".join(quoted).encode()


async def import_table(client: httpx.AsyncClient, content: bytes, name: str, *, load: bool) -> int:
    """The number of an import: loaded by the endpoint for cron, or a draft of the console."""
    file = {"file": (name, content, "text/csv")}
    if not load:
        answer = await client.post("/records", files=file, data={"client": str(CLIENT), "project": "one"})
        return int(answer.headers["location"].rpartition("/")[2])
    started = (await client.post("/api/ingest/csv", files=file, data={"embed": "false"})).json()
    await client.post("/api/workers/ingestion", headers={"Authorization": ""})
    return started["import_id"]


async def add_mailbox(tx: Tx) -> tuple[int, int]:
    source = await add_source(tx, Wanted(WORDY[:40], "eml", {"path": f"/{LONG[:120]}"}))
    await tx.execute(ITEMS, source=source.id, names=list(UGLY), errors=list(ERRORS))
    return source.id, await tx.value("SELECT min(id) FROM source_item WHERE source = %(id)s", id=source.id)


async def add_links(tx: Tx) -> int:
    text = " ".join(f"https://{'a' * n}.example.org/{LONG[: n * 8]}?q={n}" for n in range(1, 25))
    await note_links(tx, [LinkedDocument("email::1", GLOBAL, extract_links(f"{RTL} {text} {EMOJI}"))])
    return await tx.value("SELECT min(id) FROM link")


async def begin_run(db: Database) -> tuple[int, int]:
    """A run that waits for an approval."""
    async with db.transaction() as tx:
        run = await start_run(tx, RunWish(f"{MARKUP} {LONG}", RTL, GLOBAL))
        fence = await take_over(tx, run)
    assert fence is not None

    async def act(_: Begun) -> EffectResult:
        return EffectResult("sent")

    said: dict[str, Any] = {"who": "untrusted", "sources": ["mail 7"], "sentence": "it comes from mail 7"}
    origins = [{"argument": "to", "value": MAIL["to"][0], **said}]
    effect = Effect("1#0", "send_mail", MAIL, f"Send a mail to {LONG[:90]}.", "outside", False, origins=origins)
    try:
        await Ledger(db, run, fence).perform(effect, act, lambda _: Ask(("It changes something outside.",)))
    except WaitingForUser:
        async with db.transaction() as tx:
            await rest_run(tx, run, fence)
            return run, await tx.value("SELECT min(id) FROM agent_question")
    raise AssertionError("the ledger must ask")


async def add_memory(tx: Tx, run: int) -> None:
    """What a run did, what was said about it, how things are done, and what agents did in it."""
    made = await load_run(tx, RunId(run))
    for n, text in enumerate(UGLY):
        await remember(tx, made, "background", f"{n} {text}", {"files": [LONG, "main.py"]})
        await remember_in(tx, CLIENT, "anna", "chat", f"{text} {n}")
    steps = [ProcedureStep("coding", MARKUP[:300]), ProcedureStep("project_management", LONG[:300])]
    await state_procedure(tx, CLIENT, RTL[:500], steps, EMOJI)
    await state_procedure(tx, GLOBAL, "release a version | deploy the mill", steps[:1], "anna")
    await learn(tx, made, steps)
    for n, agent in enumerate(("coding", "project_management", "general")):
        await tx.execute(DELEGATED, run=run, id=f"d{n}", agent=agent, task=LONG, tokens=123_456 * n + 7)


def list_pages(site: Site) -> list[str]:
    """Every page of the console that needs no number, found in the application."""
    return [
        call.path
        for call in find_calls(create_app(site.db, site.settings, ROOMS, site.finder))
        if call.is_reading and call.role and not call.parameters and not call.path.startswith(PIECES)
    ]
