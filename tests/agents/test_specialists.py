"""Specialists: what each may use, and the rules by which its result is checked."""

from pathlib import Path
from typing import Any

import pytest

from gristmill.agents.acting import Acted
from gristmill.agents.delegation.model import DEEPEST, AgentOutput, DomainType
from gristmill.agents.delegation.protocol import PROTOCOL
from gristmill.agents.specialists import GENERAL, SPECIALISTS, TIERS, Specialist
from gristmill.agents.tools import TOOLS, PastCall, ToolResult

EVERYBODY = [*SPECIALISTS.values(), GENERAL]
OUTSIDE = {name for name, tool in TOOLS.items() if tool.changes == "outside"}
READERS = {"code_review", "security"}  # they change no file


def call(
    tool: str, said: str = "", *, error: bool = False, data: dict[str, Any] | None = None, **given: Any
) -> PastCall:
    return PastCall(tool, given, ToolResult(said, data or {}, is_error=error))


def acted(*calls: PastCall, complete: bool = True, artifacts: tuple[str, ...] = ()) -> Acted:
    written = [one for one in calls if one.tool in ("write_file", "patch_file") and not one.result.is_error]
    files = sorted({str(one.arguments["path"]) for one in written})
    return Acted("", calls, files, [*files, *artifacts], len(calls), complete)


def output(result: str, *, success: bool = True, **more: Any) -> AgentOutput:
    data = {"status": "1" if success else "0", "issues": more.pop("issues", []), "task": more.pop("task", "")}
    return AgentOutput(delegation_id="d1", agent_name="x", success=success, result=result, structured_data=data, **more)


# --- the registry


def test_there_are_nineteen_in_four_tiers_and_a_general_one() -> None:
    assert {name: [one.name for one in tier] for name, tier in TIERS.items()} == {
        "core": ["coding", "git", "code_review", "test", "research"],
        "devops_and_projects": [
            "issue_tracker",
            "wiki",
            "documentation",
            "devops",
            "project_management",
            "security",
        ],
        "communication": ["communication", "email", "calendar", "administrative"],
        "business": ["legal", "financial", "personal", "learning"],
    }
    assert len(SPECIALISTS) == 19
    assert GENERAL.name not in SPECIALISTS
    assert set(GENERAL.capability.tool_names) == set(TOOLS)


def test_each_is_a_file_of_its_name() -> None:
    folder = Path(__file__).parents[2] / "src/gristmill/agents/specialists"
    files = {path.stem for path in folder.glob("*.py") if "\nSPECIALIST = make_specialist(" in path.read_text()}
    assert files == {one.name for one in EVERYBODY}


@pytest.mark.parametrize("one", EVERYBODY, ids=lambda one: one.name)
def test_each_says_how_it_works_and_how_it_answers(one: Specialist) -> None:
    assert one.instructions.endswith(PROTOCOL)
    assert 500 < len(one.instructions) < 3_000  # small models read little
    assert one.capability.description.endswith(".")
    assert one.capability.domains
    assert set(one.capability.tool_names) <= set(TOOLS)
    assert len(one.capability.tool_names) == len(set(one.capability.tool_names))
    assert one.capability.max_depth == (DEEPEST - 1 if one.capability.can_sub_delegate else DEEPEST)
    assert "First" in one.instructions or "Always" in one.instructions
    assert "Never" in one.instructions


def test_every_tool_and_every_domain_has_somebody() -> None:
    assert {tool for one in SPECIALISTS.values() for tool in one.capability.tool_names} == set(TOOLS)
    assert {domain for one in SPECIALISTS.values() for domain in one.capability.domains} == set(DomainType)


@pytest.mark.parametrize(
    ("name", "outside"),
    [
        ("git", {"git_push"}),
        ("issue_tracker", {"create_issue", "comment_on_issue", "move_issue"}),
        ("project_management", {"create_issue", "comment_on_issue", "move_issue"}),
        ("wiki", {"create_page", "update_page"}),
        ("email", {"send_mail"}),
        ("communication", {"send_mail", "comment_on_issue"}),
        ("calendar", {"add_event"}),
    ],
)
def test_these_may_ask_for_changes_outside(name: str, outside: set[str]) -> None:
    assert set(SPECIALISTS[name].capability.tool_names) & OUTSIDE == outside


def test_nobody_else_may_and_readers_change_nothing() -> None:
    others = {one.name for one in SPECIALISTS.values() if set(one.capability.tool_names) & OUTSIDE}
    assert others == {"git", "issue_tracker", "project_management", "wiki", "email", "communication", "calendar"}
    for name in READERS:
        assert not {"write_file", "patch_file", "run_command", "git_commit"} & set(
            SPECIALISTS[name].capability.tool_names
        )


# --- rules for everybody

LOOKED = call("search_knowledge", "[1] Flour (document 7, page 1)\nnothing", data={"documents": [7]})


@pytest.mark.parametrize("one", EVERYBODY, ids=lambda one: one.name)
def test_nobody_claims_what_was_cut_off_or_says_nothing(one: Specialist) -> None:
    cut = one.check(output("Done, see document 7."), acted(LOOKED, complete=False))
    assert "Its rounds ran out before it was done: it can be a part at most." in cut
    assert "It says that it is done, and gives no result." in one.check(output("  "), acted(LOOKED))


@pytest.mark.parametrize("one", EVERYBODY, ids=lambda one: one.name)
def test_nobody_takes_credit_for_what_it_did_not_do(one: Specialist) -> None:
    foreign = one.check(output("Done.", artifacts=["src/other.py"]), acted(LOOKED))
    assert "It names src/other.py as its work, but has not changed that." in foreign
    commit = one.check(output("Done.", artifacts=["commit 0a1b2c3d4e5f"]), acted(LOOKED))
    assert "It names the commit 0a1b2c3d4e5f, which no tool has shown." in commit
    failed = call("write_file", "The policy forbids it.", error=True, path="x.py")
    said = one.check(output("Done."), acted(failed))
    assert any(sentence.startswith("write_file failed (The policy forbids it.)") for sentence in said)
    said = one.check(output("Done.", issues=["x.py may not be written"]), acted(failed))
    assert not any(sentence.startswith("write_file failed") for sentence in said)


@pytest.mark.parametrize("one", EVERYBODY, ids=lambda one: one.name)
def test_who_says_that_it_failed_is_believed(one: Specialist) -> None:
    assert one.check(output("It could not be done.", success=False), acted()) == []


# --- rules for each

PATCH = call("patch_file", "main.py is changed", path="main.py", old="-", new="+")
GREEN = call("run_tests", "It ended with the code 0.\n\n3 passed in 0.1s", data={"code": 0}, command="make test")
RED = call("run_tests", "It ended with the code 1.\n\n1 failed, 2 passed", data={"code": 1}, command="make test")
REFUSED = call("run_tests", "bubblewrap is not installed", error=True)
STATUS = call("git_status", "## agent/mend\n M main.py")
COMMITTED = call("git_commit", "Committed as 0a1b2c3d4e5f6071.", data={"commit": "0a1b2c3d4e5f6071"}, message="Mend")
DIFF = call(
    "git_diff",
    "diff --git a/main.py b/main.py\n--- a/main.py\n+++ b/main.py\n@@ -1,2 +10,3 @@\n def add\n-    x\n+    y",
)
TEST_FILE = call("write_file", "tests/test_add.py has 3 lines now.", path="tests/test_add.py", text="def test(): ...")
PRICES = call(
    "read_document",
    "--- page 1\nFlour costs 19.99 EUR until 3 May 2027. Bran costs 5.00 EUR.\n§ 4: The miller pays within ten days.",
    document=7,
)
SUM = call("calculate", "19.99 + 5.00 = 24.99", data={"value": "24.99"}, expression="19.99 + 5.00")
TODAY = call("tell_date", "It is 2027-05-03, a Monday, in week 18.", data={"day": "2027-05-03"})
EVENT = call(
    "draft_event", "The event is in a.ics. Nobody was invited.", path="a.ics", begins="2027-05-03T14:00:00+00:00"
)
DRAFT = call("draft_mail", "The draft is document 9. It was not sent.", to=["anna@acme.example"], text="Hello")
SENT = call("send_mail", "The mail was sent as <x>.", to=["anna@acme.example"], cc=["bob@acme.example"], text="Hello")
ISSUES = call("list_items", "MILL-7: Stones (document 7, changed 2027-05-03)", data={"documents": [7]}, source="jira")
OPENED = call("create_issue", "The issue is MILL-8: https://jira/MILL-8", data={"issue": "MILL-8"}, title="x")
SCAN = call("scan_secrets", "app.py:4: a password, corr… (13 characters)\n9 files were read.")
README = call("read_file", "    1  # Mill\n    2  make test", path="README.md")
DOC = call("write_file", "docs/use.md has 2 lines now.", path="docs/use.md", text="See `src/mill/main.py`.")

CASES: list[tuple[str, str, tuple[PastCall, ...], str]] = [
    # the specialist, what it says, its calls, and a part of the complaint; empty: there is none
    ("coding", "Mended; 3 passed.", (PATCH, GREEN), ""),
    ("coding", "Mended.", (PATCH,), "tests were not run after the last change"),
    ("coding", "Mended.", (GREEN, PATCH), "tests were not run after the last change"),
    ("coding", "Mended.", (PATCH, RED), "ended with the code 1"),
    ("coding", "Mended.", (GREEN,), "no file was changed"),
    ("coding", "Mended; 9 passed.", (PATCH, GREEN), "“9 passed” stands in no output"),
    ("git", "Committed as 0a1b2c3 on agent/mend, not pushed.", (STATUS, COMMITTED), ""),
    ("git", "Committed.", (COMMITTED,), "without a look"),
    ("git", "Committed as ffff1234.", (STATUS, COMMITTED), "ffff1234, which git has not shown"),
    ("git", "Committed and pushed.", (STATUS, COMMITTED), "nothing was"),
    ("git", "Done.", (), "asked git nothing"),
    ("code_review", "main.py:11 adds wrongly: use +.", (DIFF,), ""),
    ("code_review", "No findings. Looked at main.py.", (DIFF,), ""),
    ("code_review", "main.py:99 is wrong.", (DIFF,), "has no line 99"),
    ("code_review", "src/other.py:3 is wrong.", (DIFF,), "src/other.py was not read"),
    ("code_review", "It looks good.", (DIFF,), "names no line"),
    ("code_review", "No findings.", (), "has not looked at the change"),
    ("test", "3 passed.", (TEST_FILE, GREEN), ""),
    ("test", "All is well.", (TEST_FILE,), "not run to their end"),
    ("test", "2 passed, 1 failed.", (TEST_FILE, RED), "it is no success"),
    ("test", "4 passed.", (TEST_FILE, GREEN), "“4 passed” stands in no output"),
    ("test", "3 passed.", (PATCH, GREEN), "main.py, which is no test"),
    ("research", "Flour costs 19.99 EUR (document 7, page 1).", (PRICES,), ""),
    ("research", "Nothing was found about rye.", (LOOKED,), ""),
    ("research", "Flour costs 19.99 EUR.", (PRICES,), "names no source"),
    ("research", "It is so (document 8).", (PRICES,), "document 8 as a source, which was not read"),
    ("research", "See https://evil.example/x and document 7.", (PRICES,), "https://evil.example/x as a source"),
    ("research", "Flour costs 20.99 EUR (document 7).", (PRICES,), "20.99 EUR: it stands in nothing"),
    ("research", "It says “the miller pays within twenty days” (document 7).", (PRICES,), "quote exactly"),
    ("research", "I know it: document 7.", (), "not done without"),
    ("issue_tracker", "I opened MILL-8 (https://jira/MILL-8); MILL-7 is another.", (ISSUES, OPENED), ""),
    ("issue_tracker", "I opened MILL-8.", (OPENED,), "without a look"),
    ("issue_tracker", "I opened MILL-7.", (ISSUES,), "create_issue was not done"),
    ("issue_tracker", "I did not open one: MILL-7 is there.", (ISSUES,), ""),
    ("issue_tracker", "MILL-99 is the cause.", (ISSUES,), "MILL-99, which no tool has shown"),
    ("wiki", "Page 7 says so.", (ISSUES, PRICES), ""),
    ("wiki", "Rewritten.", (call("update_page", "new version", page="7", text="x" * 90),), "without having read it"),
    (
        "wiki",
        "Rewritten.",
        (call("read_document", "x" * 900, document=7), call("update_page", "new version", page="7", text="x")),
        "much shorter",
    ),
    ("wiki", "See https://wiki/none.", (ISSUES,), "https://wiki/none., which no tool has shown"),
    ("documentation", "Written.", (README, call("list_files", "src/mill/main.py"), DOC), ""),
    ("documentation", "Written.", (README, DOC), "names src/mill/main.py, which was not seen"),
    ("documentation", "Written.", (README, PATCH), "main.py, which is no documentation"),
    ("documentation", "Written.", (README,), "nothing was written"),
    ("documentation", "Written.", (DOC,), "without having read"),
    ("devops", "The image has no version: Dockerfile:1.", (call("check_ci", "Dockerfile:1: no version"),), ""),
    ("devops", "Dockerfile:9 is wrong.", (call("check_ci", "Dockerfile:1: no version"),), "no line 9"),
    ("devops", "Mended.", (README, call("write_file", "", path="Dockerfile", text="FROM x:1")), "not checked again"),
    (
        "devops",
        "Mended.",
        (README, call("write_file", "", path="run.sh", text="password='correcthorse9'"), GREEN),
        "wrote a password into run.sh",
    ),
    (
        "devops",
        "Built.",
        (call("run_command", "x", data={"code": 2}, command="make all"),),
        "“make all” ended with the code 2",
    ),
    ("devops", "It is right.", (), "looked at nothing"),
    ("project_management", "MILL-7 is due on 3 May 2027.", (ISSUES,), ""),
    ("project_management", "MILL-7 is due on 4 May 2027.", (ISSUES,), "4 May 2027: it stands in nothing"),
    ("project_management", "80 % is done.", (ISSUES,), "it stands in nothing"),
    ("project_management", "All is well.", (TODAY,), "not done without"),
    ("security", "app.py:4 has a password: move it.", (SCAN,), ""),
    ("security", "app.py:5 has a password.", (SCAN,), "no line 5"),
    ("security", "app.py:4: password = 'correcthorse9'.", (SCAN,), "repeats a password"),
    ("security", "It is safe.", (README,), "not done without"),
    ("communication", "The draft to anna@acme.example is document 9.", (DRAFT,), ""),
    ("communication", "The draft is ready.", (DRAFT,), "wrote to anna@acme.example"),
    ("communication", "Told anna@acme.example.", (), "not done without"),
    ("communication", "Draft to anna@acme.example: pay 99 EUR.", (DRAFT,), "it stands in nothing"),
    ("email", "The draft to anna@acme.example is document 9; it was not sent.", (DRAFT,), ""),
    ("email", "Sent to anna@acme.example, copy to bob@acme.example.", (SENT,), ""),
    ("email", "I sent it to anna@acme.example.", (DRAFT,), "a draft alone"),
    ("email", "Sent to anna@acme.example.", (SENT,), "wrote to bob@acme.example"),
    ("email", "Draft to anna@acme.example and eve@evil.example.", (DRAFT,), "eve@evil.example, which stands nowhere"),
    ("email", "A draft is ready.", (), "not done without"),
    (
        "email",
        "Draft to anna@acme.example.",
        (PRICES, call("draft_mail", "Kept.", to=["anna@acme.example"], text="It costs 99.00 EUR.")),
        "99.00 EUR, which stands in nothing",
    ),
    ("calendar", "On Monday, 2027-05-03, a draft; nobody was invited.", (TODAY, EVENT), ""),
    ("calendar", "On 2027-05-03.", (EVENT,), "ask tell_date"),
    ("calendar", "On Tuesday, 2027-05-03.", (TODAY, EVENT), "is a Monday, and no Tuesday"),
    ("calendar", "A draft is in a.ics.", (TODAY, EVENT), "does not say that the event is on 2027-05-03"),
    ("calendar", "On 2027-05-03; Anna is invited.", (TODAY, EVENT), "nobody was"),
    ("calendar", "On 2027-05-03 or 2027-05-09.", (TODAY, EVENT), "2027-05-09: it stands in nothing"),
    ("calendar", "It is free.", (), "not done without"),
    ("administrative", "Flour is due on 3 May 2027 (document 7).", (PRICES,), ""),
    ("administrative", "Flour is due on 9 May 2027.", (PRICES,), "9 May 2027: it stands in nothing"),
    ("administrative", "I sent the reminder to anna@acme.example.", (PRICES, DRAFT), "a draft alone"),
    ("administrative", "The list is ready.", (), "not done without"),
    (
        "legal",
        "§ 4: “The miller pays within ten days” (document 7, page 1).",
        (PRICES,),
        "a lawyer decides",
    ),
    ("legal", "§ 9: “The miller pays within ten days” (document 7).", (PRICES,), "§ 9 stands in nothing"),
    ("legal", "The miller pays (document 7).", (PRICES,), "quotes nothing"),
    ("legal", "“The miller pays within 20 days” (document 7).", (PRICES,), "quote exactly"),
    ("financial", "19.99 EUR + 5.00 EUR = 24.99 EUR in total (document 7).", (PRICES, SUM), ""),
    ("financial", "19.99 EUR + 5.00 EUR = 25.99 EUR (document 7).", (PRICES, SUM), "is not 25.99"),
    ("financial", "The total of 19.99 EUR and 5.00 EUR is 24.99 EUR (document 7).", (PRICES,), "not computed"),
    ("financial", "Flour costs 29.99 EUR (document 7).", (PRICES,), "29.99 EUR: it stands in nothing"),
    ("financial", "Flour costs 19.99 USD (document 7).", (PRICES,), "USD"),
    (
        "financial",
        "Together 119.99 EUR (document 7).",
        (PRICES, call("calculate", "100.00 + 19.99 = 119.99", expression="100.00 + 19.99")),
        "computes with 100.00",
    ),
    ("personal", "On Monday, 2027-05-03: nothing is due.", (TODAY,), ""),
    ("personal", "On Friday, 2027-05-03.", (TODAY,), "is a Monday"),
    ("personal", "Pay 99 EUR today.", (TODAY,), "it stands in nothing"),
    ("personal", "All is well.", (), "not done without"),
    ("learning", "Flour costs 19.99 EUR (document 7, page 1).", (PRICES,), ""),
    ("learning", "Flour is made of grain.", (PRICES,), "names no source"),
    (
        "learning",
        "Kept, see document 7.",
        (PRICES, call("note_fact", "The fact is document 12.", data={"document": 12}, document=8, quote="x")),
        "document 8, which it did not read",
    ),
    ("general", "Mended; 3 passed.", (PATCH, GREEN), ""),
    ("general", "Mended.", (PATCH,), "tests were not run"),
    ("general", "It costs 99 EUR.", (LOOKED,), "it stands in nothing"),
]


@pytest.mark.parametrize(("name", "result", "calls", "said"), CASES)
def test_a_result_is_checked_by_rule(name: str, result: str, calls: tuple[PastCall, ...], said: str) -> None:
    found = {**SPECIALISTS, "general": GENERAL}[name].check(output(result), acted(*calls))
    assert (said in " ".join(found)) if said else list(found) == [], found


def test_every_specialist_has_a_result_that_is_right_and_one_that_is_wrong() -> None:
    right = {name for name, _, _, said in CASES if not said}
    wrong = {name for name, _, _, said in CASES if said}
    assert wrong == {*SPECIALISTS, "general"}
    assert right == wrong - {"legal"}  # a lawyer decides: its right one says so, below


def test_a_quotation_of_a_contract_that_a_lawyer_shall_see_is_right() -> None:
    said = "§ 4: “The miller pays within ten days” (document 7, page 1)."
    assert SPECIALISTS["legal"].check(output(said, needs_verification=True), acted(PRICES)) == []


def test_code_that_cannot_be_tested_here_is_taken_if_that_is_said() -> None:
    coding = SPECIALISTS["coding"]
    said: dict[str, Any] = {"issues": ["no sandbox"], "needs_verification": True}
    assert coding.check(output("Mended.", **said), acted(PATCH, REFUSED)) == []
    assert coding.check(output("Mended."), acted(PATCH, REFUSED)) != []


def test_what_the_task_says_may_be_repeated() -> None:
    financial = SPECIALISTS["financial"]
    given = acted(PRICES, call("calculate", "100.00 + 19.99 = 119.99", expression="100.00 + 19.99"))
    assert financial.check(output("Together 119.99 EUR (document 7).", task="Add 100.00 EUR for rye."), given) == []
