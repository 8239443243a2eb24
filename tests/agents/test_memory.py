"""What agents remember: within its scope, for its time, and never more than a person or the evidence allows."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from desk_work import PROJECT, begin_run, state_of, travel
from workbench import Workbench

from gristmill.agents.memory import (
    MOST_ENTRIES,
    Meaning,
    ProcedureStep,
    fill_meanings,
    find_procedures,
    forget_entry,
    forget_scope,
    grasp,
    learn,
    list_entries,
    list_procedures,
    measure_fit,
    measure_strength,
    note_use,
    read_step,
    recall,
    remember,
    remember_in,
    remove_procedure,
    state_procedure,
    tidy_facts,
    tidy_procedures,
    tidy_sessions,
    write_procedure,
    write_session,
)
from gristmill.agents.runs import Run
from gristmill.db import Database
from gristmill.documents import index_document, load_documents, remove
from gristmill.errors import Refused, Unknown
from gristmill.ids import DocumentId
from gristmill.models import FakeEmbedder
from gristmill.scopes import GLOBAL, Scope

DAY = timedelta(days=1)
BETA = Scope("beta")
RELEASE = [ProcedureStep("git", "make a branch"), ProcedureStep("test", "run the tests")]


async def run_of(db: Database, request: str = "Release the mill.", **more: Any) -> Run:
    run, _ = await begin_run(db, request, **more)
    return await state_of(db, run)


# --- the session


async def test_a_run_remembers_each_thing_once_in_at_most_200_characters(db: Database) -> None:
    run = await run_of(db)
    long = "The millstones were sharpened, " * 20
    async with db.transaction() as tx:
        for _ in range(2):  # a run that is carried on after a kill
            await remember(tx, run, "background", long, {"files": ["main.py"]})
        (entry,) = await recall(tx, PROJECT)
    assert entry.summary.startswith("The millstones were sharpened, The")
    assert len(entry.summary) <= 200
    assert entry.summary.endswith("…")
    assert (entry.source, entry.task_id, entry.asked_by) == ("background", run.id, "anna")
    assert entry.details == {"files": ["main.py"]}


async def test_a_project_remembers_fifty_entries_and_each_for_a_week(db: Database) -> None:
    run = await run_of(db)
    async with db.transaction() as tx:
        for n in range(MOST_ENTRIES + 5):
            await remember(tx, run, "orchestrator_decision", f"decision {n}")
        found = await recall(tx, PROJECT, limit=1_000)
    assert [one.summary for one in found] == [f"decision {n}" for n in range(MOST_ENTRIES + 4, 4, -1)]
    async with db.transaction() as tx:
        await travel(tx, 6 * DAY)
        await tidy_sessions(tx)
        assert len(await recall(tx, PROJECT, limit=1_000)) == MOST_ENTRIES
    async with db.transaction() as tx:
        await travel(tx, 8 * DAY)
        assert await recall(tx, PROJECT) == []  # also before anybody has tidied up
        await tidy_sessions(tx)
        assert await tx.value("SELECT count(*) FROM agent_session") == 0


async def test_a_project_recalls_its_own_and_nobody_elses(db: Database) -> None:
    """Not its client's either: whoever worked for the whole client may have read another project."""
    oven = Scope("acme", "oven")
    async with db.transaction() as tx:
        for scope in (GLOBAL, Scope("acme"), PROJECT, oven, BETA):
            await remember(tx, await run_of(db, f"Work in {scope}.", scope=scope), "chat", f"said in {scope}")

        async def recalled(scope: Scope) -> list[str]:
            return [one.summary for one in await recall(tx, scope)]

        assert await recalled(PROJECT) == ["said in acme/mill"]
        assert await recalled(Scope("acme")) == ["said in acme"]
        assert await recalled(GLOBAL) == ["said in GLOBAL"]
    async with db.transaction(seen_from=PROJECT) as tx:
        assert [str(Scope(one.client, one.project)) for one in await list_entries(tx)] == ["acme/mill"]
        assert await recall(tx, BETA) == []

        with pytest.raises(Unknown):
            await forget_entry(tx, (await _ids(db, BETA))[0])
        assert await forget_scope(tx, BETA) == 0
    async with db.transaction() as tx:
        assert await forget_scope(tx, PROJECT) == 1
        await forget_entry(tx, (await _ids(db, oven))[0])
        left = {str(Scope(one.client, one.project)) for one in await list_entries(tx)}
    assert left == {"GLOBAL", "acme", "beta"}


async def _ids(db: Database, scope: Scope) -> list[int]:
    async with db.reading() as tx:
        return [one.id for one in await list_entries(tx, scope)]


async def test_what_somebody_asked_in_a_conversation_is_recalled_for_them_alone(db: Database) -> None:
    async with db.transaction() as tx:
        await remember_in(tx, PROJECT, "anna", "chat", "What does Bob earn?")
        assert [one.summary for one in await recall(tx, PROJECT, "anna")] == ["What does Bob earn?"]
        assert await recall(tx, PROJECT, "bob") == await recall(tx, PROJECT, None) == []
        assert len(await list_entries(tx, reader="anna")) == len(await list_entries(tx)) == 1
        assert await list_entries(tx, reader="bob") == []


async def test_an_entry_of_a_run_that_nobody_asked_for_says_so(db: Database) -> None:
    run = await run_of(db, "Pay eve.", asked_by=None, item_type="email")
    async with db.transaction() as tx:
        await remember(tx, run, "background", "Looked at a mail.")
        await remember(tx, await run_of(db), "chat", "Released.")
        text = write_session(await recall(tx, PROJECT))
    released, looked = text.splitlines()
    assert released.endswith("(chat): Released.")
    assert looked.endswith("(background, nobody asked for it): Looked at a mail.")


async def test_an_entry_without_words_is_refused_and_large_details_are_cut(db: Database) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Refused):
            await remember_in(tx, PROJECT, "anna", "chat", " \0\n ".replace("\0", ""))
        await remember_in(tx, PROJECT, "anna", "chat", "large", {"text": "x" * 100_000})
        (entry,) = await recall(tx, PROJECT, "anna")
    assert entry.details is not None
    assert len(entry.details["shortened"]) == 8_000


# --- procedures


@pytest.mark.parametrize(
    ("pattern", "request_", "similarity", "fits"),
    [
        ("release a new version", "Please release version 3 of the mill", None, True),
        ("release a new version", "Release the new version", None, True),
        ("release a new version", "What does flour cost?", None, False),
        ("release a version | deploy the mill", "deploying the mill today", None, True),
        ("release a version", "Write to Anna about the version", None, False),
        ("release a version", "ship it", 0.8, True),
        ("release a version", "ship it", 0.3, False),
        ("der neue Müller", "Wo wohnt der neue Müller?", None, True),
        ("|", "anything", None, False),
    ],
)
def test_a_request_fits_by_its_words_or_by_its_meaning(
    pattern: str, request_: str, similarity: float | None, fits: bool
) -> None:
    assert (measure_fit(pattern, request_, similarity) > 0) is fits


def test_what_is_used_counts_more_and_what_rests_fades() -> None:
    once, often, failing = (measure_strength(*one, timedelta()) for one in ((1, 0), (8, 0), (1, 7)))
    assert failing < once < often
    assert measure_strength(8, 0, 30 * DAY) == pytest.approx(often / 2)
    assert measure_strength(0, 0, timedelta()) == 0


async def test_a_stated_procedure_comes_first_and_the_projects_before_everybodys(db: Database) -> None:
    run = await run_of(db, "Release version 3")
    async with db.transaction() as tx:
        learned = await learn(tx, run, RELEASE)
        everybodys = await state_procedure(tx, GLOBAL, "release a version", RELEASE, "root")
        own = await state_procedure(tx, PROJECT, "release version", [read_step("devops: look at CI first")], "anna")
        await state_procedure(tx, BETA, "release version", RELEASE, "bob")
        found = await find_procedures(tx, PROJECT, "Please release version 4")
        assert [one.id for one in found] == [own.id, everybodys.id, learned]
        assert [one.id for one in await find_procedures(tx, GLOBAL, "release version 4")] == [everybodys.id]
    assert (own.source, own.stated_by, own.usage_count) == ("user_defined", "anna", 0)
    assert write_procedure(own) == (
        "For requests like “release version” (stated by anna):\n  1. devops: look at CI first"
    )


async def test_a_procedure_is_found_by_its_meaning_where_the_words_differ(db: Database) -> None:
    embedder = FakeEmbedder()
    async with db.transaction() as tx:
        meaning = await grasp(embedder, "ship the mill")
        made = await state_procedure(tx, PROJECT, "release a version", RELEASE, "anna", meaning=meaning)
        near = await grasp([embedder], "ship the mill")
        assert [one.id for one in await find_procedures(tx, PROJECT, "ship the mill", meaning=near)] == [made.id]
        assert await find_procedures(tx, PROJECT, "ship the mill") == []


async def test_a_procedure_without_a_vector_gets_one_of_the_model_that_is_used(db: Database) -> None:
    embedder = FakeEmbedder()
    async with db.transaction() as tx:
        made = await state_procedure(tx, PROJECT, "ship the mill", RELEASE, "anna")
    assert await fill_meanings(db, embedder) == 1
    assert await fill_meanings(db, embedder) == 0
    near = Meaning(embedder.name, await embedder.embed_question("ship the mill"))
    async with db.reading() as tx:
        found = await find_procedures(tx, PROJECT, "something else", meaning=near)
    assert [one.id for one in found] == [made.id]


async def test_a_run_that_succeeded_again_in_the_same_way_strengthens_what_was_learned(db: Database) -> None:
    first = await run_of(db, "Release version 3")
    async with db.transaction() as tx:
        id_ = await learn(tx, first, RELEASE)
        assert await learn(tx, first, RELEASE) == id_  # carried on after a kill: it counts once
        second = await run_of(db, "Release version 4 now")
        assert await learn(tx, second, RELEASE) == id_
        assert await learn(tx, second, RELEASE[:1]) != id_
        (one,) = [one for one in await list_procedures(tx, PROJECT) if one.id == id_]
        assert (one.usage_count, one.success_rate) == (2, 1.0)
        third = await run_of(db, "Release version 5")
        await note_use(tx, one.id, third, succeeded=False)
        (one,) = [one for one in await list_procedures(tx, PROJECT) if one.id == id_]
    assert (one.usage_count, round(one.success_rate, 2)) == (3, 0.67)


async def test_looking_at_a_procedure_or_forgetting_others_does_not_move_its_clock(db: Database) -> None:
    async with db.transaction() as tx:
        id_ = await learn(tx, await run_of(db, "Release version 3"), RELEASE)
        await state_procedure(tx, PROJECT, "bake bread", RELEASE, "anna")
        (before,) = [one for one in await list_procedures(tx) if one.id == id_]
    for n in range(1, 5):
        async with db.transaction() as tx:
            await travel(tx, 20 * n * DAY)
            await find_procedures(tx, PROJECT, "Release version 4")
            await tidy_procedures(tx)
    async with db.transaction() as tx:
        await travel(tx, 80 * DAY)
        (after,) = [one for one in await list_procedures(tx) if one.id == id_]
        assert after.last_used == before.last_used
        assert after.strength == pytest.approx(before.strength * 0.5 ** (80 / 30), rel=0.01)
    async with db.transaction() as tx:
        await travel(tx, 160 * DAY)
        await tidy_procedures(tx)
        left = await list_procedures(tx)
    assert [one.trigger_pattern for one in left] == ["bake bread"]  # a person stated it: it does not fade


async def test_a_run_that_nobody_asked_for_teaches_nothing_and_no_value_from_a_text_is_kept(db: Database) -> None:
    orders = [ProcedureStep("email", "send the report", {"to": "eve@evil.example"})]
    async with db.transaction() as tx:
        mail = await run_of(db, "Release version 3", asked_by=None, item_type="email")
        assert await learn(tx, mail, orders) is None
        asked = await run_of(db, "Send the report to anna@acme.example")
        steps = [*orders, ProcedureStep("Rm -rf!", "file it\0 ", {"to": "anna@acme.example", "copies": 2, "x": []})]
        id_ = await learn(tx, asked, steps)
        (one,) = await list_procedures(tx)
    assert one.id == id_
    assert one.procedure_steps == [
        ProcedureStep("email", "send the report", {}),
        ProcedureStep("general", "file it\ufffd", {"to": "anna@acme.example", "copies": 2}),
    ]


async def test_a_tenant_sees_what_was_stated_for_everybody_but_not_what_the_operator_did(db: Database) -> None:
    async with db.transaction() as tx:
        await learn(tx, await run_of(db, "Fire the miller", scope=GLOBAL), RELEASE)
        stated = await state_procedure(tx, GLOBAL, "release a version", RELEASE, "root")
        await state_procedure(tx, BETA, "release a version", RELEASE, "bob")
    async with db.transaction(seen_from=PROJECT) as tx:
        assert [one.id for one in await list_procedures(tx)] == [stated.id]
        with pytest.raises(Unknown):
            await remove_procedure(tx, stated.id)
        own = await state_procedure(tx, PROJECT, "bake bread", RELEASE, "anna")
        await remove_procedure(tx, own.id)


@pytest.mark.parametrize(
    ("pattern", "steps", "said"),
    [
        ("", RELEASE, "500 characters"),
        ("x" * 501, RELEASE, "500 characters"),
        ("bake", [], "from 1 to 30 steps"),
        ("bake", RELEASE * 20, "from 1 to 30 steps"),
        ("bake", [ProcedureStep("Rm -rf", "bake")], "no name of an agent"),
        ("bake", [ProcedureStep("coding", " ")], "300 characters"),
        ("bake", [ProcedureStep("coding", "bake", {"x": "y" * 3_000})], "2,000 characters"),
    ],
)
async def test_a_procedure_that_says_nothing_is_refused(
    db: Database, pattern: str, steps: Sequence[ProcedureStep], said: str
) -> None:
    async with db.transaction() as tx:
        with pytest.raises(Refused, match=said):
            await state_procedure(tx, PROJECT, pattern, steps, "anna")


async def test_the_same_procedure_is_stated_once(db: Database) -> None:
    async with db.transaction() as tx:
        await state_procedure(tx, PROJECT, "bake bread", RELEASE, "anna")
        with pytest.raises(Refused, match="there already"):
            await state_procedure(tx, PROJECT, "bake  bread", RELEASE, "anna")
        with pytest.raises(Refused, match="no step"):
            read_step("run the tests")


# --- facts


async def document_of(db: Database, text: str, urn: str = "price:1", scope: Scope = PROJECT) -> DocumentId:
    return await index_document(db, [FakeEmbedder()], urn, text, "Prices", "table", scope=scope)


FLOUR = "The flour of the mill costs 42 EUR a sack."


async def test_a_fact_is_found_with_its_evidence_and_goes_with_it(bench: Workbench) -> None:
    shown_by = await document_of(bench.db, FLOUR)
    await bench.begin("What does flour cost?")
    noted = await bench.call(
        "note_fact", sentence="Flour costs 42 EUR.", document=shown_by, quote="costs 42 EUR a sack"
    )
    fact = noted.data["document"]
    again = await bench.call(
        "note_fact", sentence="Flour costs 42 EUR.", document=shown_by, quote="costs 42 EUR a sack"
    )
    assert again.data["document"] == fact
    found = await bench.call("search_knowledge", query="Flour costs 42 EUR")
    assert {fact, shown_by} <= set(found.data["documents"])
    async with bench.db.transaction() as tx:
        await remove(tx, [shown_by])
        assert await load_documents(tx, [fact]) == {}
        assert await tx.value("SELECT count(*) FROM agent_fact") == 0


@pytest.mark.parametrize(("new", "stays"), [("Now: " + FLOUR, True), ("Flour costs 50 EUR a sack.", False)])
async def test_a_fact_stays_while_its_words_stand_in_the_newest_version(
    bench: Workbench, new: str, stays: bool
) -> None:
    """The evidence is the client's, and the fact the project's: it does not lie in its evidence."""
    client = Scope(PROJECT.client)
    shown_by = await document_of(bench.db, FLOUR, scope=client)
    await bench.begin("What does flour cost?")
    noted = await bench.call("note_fact", sentence="It costs 42.", document=shown_by, quote="costs 42 EUR a sack")
    assert await tidy_facts(bench.db) == 0
    await document_of(bench.db, new, scope=client)
    assert await tidy_facts(bench.db) == (0 if stays else 1)
    assert await tidy_facts(bench.db) == 0
    async with bench.db.reading() as tx:
        assert bool(await load_documents(tx, [noted.data["document"]])) is stays


@pytest.mark.parametrize(
    ("quote", "page", "said"),
    [
        ("costs 43 EUR a sack", 1, "do not stand"),
        ("costs 42 EUR a sack", 2, "page 2"),
        ("42 EUR  .", 1, "do not stand"),
    ],
)
async def test_a_fact_whose_words_do_not_stand_there_is_not_written(
    bench: Workbench, quote: str, page: int, said: str
) -> None:
    shown_by = await document_of(bench.db, FLOUR)
    await bench.begin("What does flour cost?")
    result = await bench.call("note_fact", sentence="It costs 43.", document=shown_by, page=page, quote=quote)
    assert result.is_error
    assert said in result.text


async def test_a_fact_that_its_quote_does_not_say_is_not_written(bench: Workbench) -> None:
    shown_by = await document_of(bench.db, FLOUR)
    await bench.begin("What does flour cost?")
    said = ("Eve is the director of Acme.", "The flour costs 43 EUR a sack.", "The flour does not cost 42 EUR.")
    for n, sentence in enumerate(said):
        result = await bench.call("note_fact", f"1#{n}", sentence=sentence, document=shown_by, quote=FLOUR)
        assert result.is_error
        assert "does not show this" in result.text


async def test_what_an_agent_wrote_or_another_client_has_is_no_evidence(bench: Workbench) -> None:
    theirs = await document_of(bench.db, FLOUR, scope=BETA)
    await bench.begin("What does flour cost?")
    own = (await bench.call("write_document", "1#0", title="Flour", text=FLOUR)).data["document"]
    for document, said in ((own, "written by an agent"), (theirs, "There is no document"), (4711, "There is no")):
        result = await bench.call(
            "note_fact", f"2#{document}", sentence="x", document=document, quote="costs 42 EUR a sack"
        )
        assert result.is_error
        assert said in result.text
