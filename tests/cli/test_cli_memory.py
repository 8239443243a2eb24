"""`gristmill memory` and `gristmill procedure`: what agents remember, and how they do things."""

from typing import Any

from desk import within

from gristmill.agents import RunWish, load_run, start_run
from gristmill.agents.memory import ProcedureStep, learn, remember, remember_in
from gristmill.db import Tx
from gristmill.scopes import Scope

MILL = Scope("acme", "mill")


async def remember_some(tx: Tx) -> None:
    run = await load_run(tx, await start_run(tx, RunWish("Release it.", "anna", MILL)))
    await remember(tx, run, "background", "Released it.", {"files": ["main.py"]})
    await learn(tx, run, [ProcedureStep("git", "commit")])
    await remember_in(tx, Scope("beta"), "anna", "chat", "Talked.")


def test_memory_is_listed_and_forgotten(cli: Any, url: str) -> None:
    within(url, remember_some)
    found = {one["summary"]: one for one in cli("memory", "ls", "--json").json}
    assert set(found) == {"Released it.", "Talked."}
    assert (found["Released it."]["project"], found["Released it."]["details"]) == ("mill", {"files": ["main.py"]})
    assert "Released it." in cli("memory", "ls", "--client", "acme", "--project", "mill").out
    assert "Talked." not in cli("memory", "ls", "--client", "acme", "--project", "mill").out
    assert "is forgotten" in cli("memory", "forget", str(found["Talked."]["id"])).out
    said = cli("memory", "forget", "--all", "--client", "acme", "--project", "mill").out
    assert said.strip() == "1 entry is forgotten, of acme/mill."
    assert "Nothing is remembered" in cli("memory", "ls").out


def test_a_procedure_is_stated_listed_and_taken_back(cli: Any, url: str) -> None:
    within(url, remember_some)
    steps = ("--step", "test: run make test", "--step", "git: commit")
    made = cli("procedure", "add", "release | deploy", *steps, "--client", "acme", "--json").json
    assert [one["agent"] for one in made["steps"]] == ["test", "git"]
    stated, learned = cli("procedure", "ls", "--json").json
    assert (stated["id"], stated["source"], stated["usage_count"]) == (made["id"], "user_defined", 0)
    assert (learned["source"], learned["usage_count"], learned["success_rate"]) == ("learned", 1, 1.0)
    assert "test: run make test → git: commit" in cli("procedure", "ls").out
    assert "is gone: release | deploy" in cli("procedure", "rm", str(made["id"])).out
    assert len(cli("procedure", "ls", "--json").json) == 1
