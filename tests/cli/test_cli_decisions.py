"""`gristmill convention`, `profile` and `qualify`: as people and programs use them."""

import asyncio
import json

import pytest

from gristmill.db import Database
from gristmill.ids import WorkItemId
from gristmill.models import FakeEmbedder
from gristmill.qualifier.model import SAME_ID
from gristmill.qualifier.qualification import qualify_many
from gristmill.qualifier.store import ItemDraft, get_item, make_item, warn_item
from gristmill.qualifier.texts import load_item_texts
from gristmill.rooms import Tools
from gristmill.scopes import Scope, scope_id
from gristmill.settings import Settings

NEWS = 'when sender is "*@news.example" then ignore'


@pytest.fixture
def item(url: str) -> int:
    """A decided mail of acme."""

    async def decide() -> int:
        async with Database(url) as db:
            async with db.transaction() as tx:
                own = await scope_id(tx, Scope("acme"))
                note = {"subject": "A contract", "sender": "petr@beta.example"}
                text = "Could you please send us the signed contract?\n"
                new = ItemDraft(
                    own, "email", "A contract", "ready_for_qualification", "It came.", "test", text=text, note=note
                )
                id_ = await make_item(tx, new)
            models = type("Models", (), {"embedder": FakeEmbedder(), "built_in_embedder": FakeEmbedder()})()
            async with db.reading() as tx:
                texts = await load_item_texts(tx, [id_])
            (found,) = await qualify_many(Tools(db, Settings(), models), texts)
            assert not isinstance(found, Exception)
            async with db.transaction() as tx:
                await found.write(tx)
            return id_

    return asyncio.run(decide())


def test_a_convention_is_stated_listed_changed_and_taken_back(cli, url):
    assert cli("convention", "ls").out.strip() == "No convention is stated yet: gristmill convention add states one."
    said = cli("convention", "add", NEWS, "--client", "acme", "--note", "tired")
    assert said.out.strip() == f"Convention 1 holds from now on: {NEWS}"
    wrong = cli("convention", "add", "when sendr is then")
    assert (wrong.code, "did you mean sender?" in wrong.err) == (1, True)
    warned = cli("convention", "add", "when type is email then now", "--client", "acme")
    assert "The conventions 1 and 2 may fit the same item and differ in the outcome" in warned.err
    assert "acme" in cli("convention", "ls").out
    assert cli("convention", "off", "1").out.strip() == "Convention 1 rests."
    assert cli("convention", "on", "1").code == 0
    assert "says now" in cli("convention", "change", "1", NEWS.replace("ignore", "handled")).out
    shown = json.loads(cli("convention", "show", "1", "--json").out)
    assert [one["version"] for one in shown["versions"]] == [4, 3, 2, 1]
    assert "handled" in cli("convention", "show", "1").out
    assert cli("convention", "rm", "1").out.startswith("Convention 1 holds no more")
    assert cli("convention", "rm", "1").err.strip() == "There is no convention 1: gristmill convention ls lists them."


def test_a_convention_is_tried_and_made_of_a_decision(cli, item):
    tried = cli("convention", "test", 'when text has "contract" then handled', "--client", "acme")
    assert "1 item of the last 1 fits" in tried.out
    assert "None of the last 1 item fits" in cli("convention", "test", NEWS, "--client", "acme").out
    made = cli("convention", "from", str(item), "--then", "ignore")
    assert 'sender is "petr@beta.example"' in made.out
    stated = json.loads(cli("convention", "from", str(item), "--add", "--json").out)
    assert (stated["client"], stated["origin"]) == ("acme", item)
    assert stated["text"].endswith("then now")


def test_a_profile_says_who_we_are(cli, url):
    said = cli("profile", "set", "--client", "acme", "--name", "Jana", "--address", "J@a.example", "--lead-days", "3")
    assert "j@a.example" in said.out
    assert json.loads(cli("profile", "ls", "--json").out)[0]["lead_days"] == 3
    assert cli("profile", "set", "--address", "nobody").code == 1
    assert cli("profile", "rm", "--client", "acme").out.strip() == "The profile of acme is forgotten."
    assert cli("profile", "rm", "--client", "acme").code == 1


def test_a_replay_shows_what_would_differ(cli, item):
    assert cli("qualify", "replay").out.strip() == "1 item decided again: 0 would differ."
    cli("convention", "add", 'when text has "contract" then handled', "--client", "acme")
    said = cli("qualify", "replay", "--since", "7d").out
    assert "1 item decided again: 1 would differ. One of them is work now, and would be put away." in said
    told = json.loads(cli("qualify", "replay", "--client", "acme", "--json").out)
    assert [one["now"]["route"] for one in told["differences"]] == ["handled"]
    assert json.loads(cli("qualify", "replay", "--client", "globex", "--json").out)["looked_at"] == 0


def test_why_prints_the_rules_and_marks_their_words(cli, item):
    said = cli("item", "why", str(item)).out
    assert "by rules: now, normal" in said
    assert "1. The text asks for something. (actionable)" in said
    assert "»Could you please send us the signed contract?«¹" in said
    told = json.loads(cli("item", "why", str(item), "--json").out)
    assert [one["rule"] for one in told["path"]] == ["actionable", "no_deadline"]
    assert cli("item", "why", "999").code == 1


def test_why_shows_the_warning_of_a_mail_that_may_be_forged(cli, item, url):
    async def warn() -> None:
        async with Database(url) as db, db.transaction() as tx:
            await warn_item(tx, await get_item(tx, WorkItemId(item)), SAME_ID)

    assert json.loads(cli("item", "why", str(item), "--json").out)["warning"] is None
    asyncio.run(warn())
    assert "it may be forged." in " ".join(cli("item", "why", str(item)).out.split())
    assert json.loads(cli("item", "why", str(item), "--json").out)["warning"] == SAME_ID
