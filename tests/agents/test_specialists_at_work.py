"""Each specialist once at work, on a real workspace, real documents and servers on loopback, with a scripted model."""

import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from desk_work import PROJECT, answer, states
from office import CHANGES, TOKEN, Office, list_places, run_office
from workbench import Workbench, open_workbench

from gristmill.agents.acting import Acted, Brief, act
from gristmill.agents.delegation.model import AgentOutput
from gristmill.agents.delegation.protocol import parse_output
from gristmill.agents.runs import WaitingForUser
from gristmill.agents.specialists import SPECIALISTS
from gristmill.db import Database
from gristmill.documents import index_document, load_documents
from gristmill.ids import DocumentId
from gristmill.models import FakeEmbedder, FakeLlm
from gristmill.qualifier import ItemWish, add_item

needs_bubblewrap = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
COMMAND = "python3 -c 'import main; assert main.add(2, 2) == 4; print(1, \"passed\")'"
PRICES = "Flour costs 19.99 EUR until 3 May 2027. Bran costs 5.00 EUR. § 4: The miller pays within ten days."
Move = dict[str, Any]


def use(tool: str, **arguments: Any) -> Move:
    return {"thought": "next", "move": {"tool": tool, "arguments": arguments}}


def say(result: str, status: str = "1", artifacts: str = "none", verify: str = "false") -> Move:
    lines = [f"STATUS: {status}", f"RESULT: {result}", f"ARTIFACTS: {artifacts}", "ISSUES: none"]
    return use("answer", text="\n".join([*lines, "CONFIDENCE: 0.9", f"NEEDS_VERIFICATION: {verify}"]))


def read_output(name: str, acted: Acted) -> AgentOutput:
    return parse_output(acted.text, delegation_id="d1", agent_name=name)


@pytest.fixture
async def office(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Office]:
    monkeypatch.setenv(TOKEN, "secret")
    async with run_office() as office:
        yield office


@pytest.fixture
async def bench(db: Database, tmp_path: Path, office: Office) -> AsyncIterator[Workbench]:
    async with open_workbench(db, tmp_path, list_places(office)) as opened:
        yield opened


async def work(bench: Workbench, name: str, moves: Sequence[Move]) -> Acted:
    """One visit of a specialist, with its own tools and instructions."""
    specialist = SPECIALISTS[name]
    task = bench.context.run.request
    tools = specialist.capability.tool_names
    brief = Brief("delegation d1", specialist.instructions, task, "", tools, 16_000, rounds=20)
    handle = bench.make_handle(FakeLlm(moves))
    async with handle.step("execute_delegation") as step:
        return await act(handle, brief, step)


def check(name: str, acted: Acted) -> AgentOutput:
    output = read_output(name, acted)
    assert list(SPECIALISTS[name].check(output, acted)) == []
    assert not any(one.result.is_error for one in acted.calls), [one.result.text for one in acted.calls]
    return output


@dataclass(frozen=True)
class Scene:
    """What a specialist is asked for, what its model does, and what must be so afterwards."""

    request: str
    moves: Callable[[DocumentId], Sequence[Move]]  # given the number of the prices
    after: Callable[[Workbench, Office, Acted], bool]
    policy: dict[str, Any] = field(default_factory=dict[str, Any])
    sandboxed: bool = False


def has_tool(acted: Acted, tool: str, words: str) -> bool:
    return any(one.tool == tool and words in one.result.text for one in acted.calls)


EVENT = {"begins": "2027-05-03T14:00:00+00:00", "ends": "2027-05-03T15:00:00+00:00", "title": "Milling"}
SCENES: dict[str, Scene] = {
    "coding": Scene(
        "Mend add in main.py.",
        lambda _: [
            use("read_file", path="main.py"),
            use("patch_file", path="main.py", old="a - b", new="a + b"),
            use("run_tests", command=COMMAND),
            say("add adds; 1 passed.", artifacts="main.py"),
        ],
        lambda bench, _, acted: "a + b" in (bench.folder / "main.py").read_text(),
        policy={"commands": ("python3 *",)},
        sandboxed=True,
    ),
    "git": Scene(
        "Commit the new notes.md on the branch agent/notes.",
        lambda _: [
            use("git_status"),
            use("git_branch", branch="agent/notes"),
            use("git_diff"),
            use("git_log", count=3),
            say("The workspace is on the branch agent/notes; there is nothing to commit, nothing was pushed."),
        ],
        lambda bench, _, acted: "agent/notes" not in bench.upstream("branch"),
    ),
    "code_review": Scene(
        "Review main.py.",
        lambda _: [
            use("git_diff"),
            use("read_file", path="main.py"),
            use("search_files", pattern="add", is_literal=True),
            say("main.py:2 subtracts where it should add: write a + b."),
        ],
        lambda bench, _, acted: acted.changed_files == [],
    ),
    "test": Scene(
        "Write a test of add and run it.",
        lambda _: [
            use("read_file", path="main.py"),
            use("write_file", path="test_add.py", text="import main\nassert main.add(2, 0) == 2\nprint('1 passed')\n"),
            use("run_tests", command="python3 test_add.py"),
            say("1 passed; it would fail if add lost its first number.", artifacts="test_add.py"),
        ],
        lambda bench, _, acted: has_tool(acted, "run_tests", "1 passed"),
        policy={"commands": ("python3 *",)},
        sandboxed=True,
    ),
    "research": Scene(
        "What does flour cost?",
        lambda n: [
            use("search_knowledge", query="flour costs"),
            use("read_document", document=n),
            use("note_fact", sentence="Flour costs 19.99 EUR.", document=n, quote="Flour costs 19.99 EUR until 3 May"),
            say(f"Flour costs 19.99 EUR until 3 May 2027 (document {n}, page 1)."),
        ],
        lambda bench, _, acted: has_tool(acted, "note_fact", "goes when its evidence goes"),
    ),
    "issue_tracker": Scene(
        "Open an issue in MILL at jira: the stones are worn.",
        lambda _: [
            use("list_places"),
            use("list_items", source="jira", contains="stones"),
            use("create_issue", tracker="jira", project="MILL", title="Stones are worn", text="They are."),
            say("I opened MILL-7."),
        ],
        lambda _, office, acted: [one[1] for one in office.made] == ["/rest/api/2/issue"],
        policy={"tools": CHANGES},
    ),
    "wiki": Scene(
        "Write a page Prices in the space MILL of wiki.",
        lambda n: [
            use("search_knowledge", query="prices of flour"),
            use("read_document", document=n),
            use("create_page", wiki="wiki", space="MILL", title="Prices", text="Flour costs 19.99 EUR."),
            say("The page 77 has the prices."),
        ],
        lambda _, office, acted: len(office.made) == 1,
        policy={"tools": CHANGES},
    ),
    "documentation": Scene(
        "Document how the mill is run.",
        lambda _: [
            use("list_files"),
            use("read_file", path="run.sh"),
            use("write_file", path="docs/use.md", text="# Use\n\nRun `run.sh`; it grinds.\n"),
            say("docs/use.md says how it is run.", artifacts="docs/use.md"),
        ],
        lambda bench, _, acted: "it grinds" in (bench.folder / "docs/use.md").read_text(),
    ),
    "devops": Scene(
        "Make a Dockerfile for the mill.",
        lambda _: [
            use("list_files"),
            use("read_file", path="run.sh"),
            use("write_file", path="Dockerfile", text="FROM python:3.13-slim\nCOPY . /mill\n"),
            use("check_ci"),
            say("Dockerfile is there, and check_ci finds nothing.", artifacts="Dockerfile"),
        ],
        lambda bench, _, acted: has_tool(acted, "check_ci", "No known mistake"),
    ),
    "project_management": Scene(
        "What is due?",
        lambda _: [
            use("tell_date", day="2030-05-03"),
            use("list_work"),
            say("Pay the miller is due on 2030-05-03; it comes first."),
        ],
        lambda bench, _, acted: has_tool(acted, "list_work", "due 2030-05-03"),
    ),
    "security": Scene(
        "Is the mill safe?",
        lambda _: [
            use("scan_secrets"),
            use("list_dependencies"),
            use("check_ci"),
            use("search_files", pattern="echo", is_literal=True),
            say("run.sh:2 prints a word, which is harmless. No secrets, no dependencies, no pipelines."),
        ],
        lambda bench, _, acted: acted.changed_files == [],
    ),
    "communication": Scene(
        "Tell anna@acme.example what flour costs.",
        lambda n: [
            use("read_document", document=n),
            use("draft_mail", to=["anna@acme.example"], subject="Flour", text="It costs 19.99 EUR."),
            say("A draft to anna@acme.example says that flour costs 19.99 EUR; it was not sent."),
        ],
        lambda bench, _, acted: bench.mail.mails == [],
    ),
    "calendar": Scene(
        "Put Milling into the calendar work, on 3 May 2027 at 14:00 UTC.",
        lambda _: [
            use("tell_date", day="2027-05-03"),
            use("list_events", calendar="work", first_day="2027-05-03", last_day="2027-05-03"),
            use("add_event", calendar="work", **EVENT),
            say("Milling is in the calendar work on Monday, 2027-05-03; the day was free."),
        ],
        lambda _, office, acted: len(office.events) == 1,
        policy={"tools": CHANGES},
    ),
    "administrative": Scene(
        "Make a list of prices.",
        lambda n: [
            use("search_knowledge", query="prices"),
            use("read_document", document=n),
            use("write_document", title="Prices", text="| flour | 19.99 EUR |"),
            say(f"The list has flour at 19.99 EUR and bran at 5.00 EUR (document {n})."),
        ],
        lambda bench, _, acted: has_tool(acted, "write_document", "It is document"),
    ),
    "legal": Scene(
        "When does the miller pay?",
        lambda n: [
            use("search_knowledge", query="the miller pays"),
            use("read_document", document=n),
            say(f"§ 4: “The miller pays within ten days” (document {n}, page 1).", verify="true"),
        ],
        lambda bench, _, acted: acted.changed_files == [],
    ),
    "financial": Scene(
        "What do flour and bran cost together?",
        lambda n: [
            use("read_document", document=n),
            use("calculate", expression="19.99 + 5.00"),
            say(f"19.99 EUR + 5.00 EUR = 24.99 EUR in total (document {n})."),
        ],
        lambda bench, _, acted: has_tool(acted, "calculate", "= 24.99"),
    ),
    "personal": Scene(
        "What comes first today?",
        lambda _: [
            use("tell_date"),
            use("list_work"),
            use("draft_mail", to=["anna@acme.example"], subject="The miller", text="I pay him."),
            say("Pay the miller, due 2030-05-03, comes first; a draft to anna@acme.example is kept, not sent."),
        ],
        lambda bench, _, acted: bench.mail.mails == [],
    ),
    "learning": Scene(
        "Teach me the prices.",
        lambda n: [
            use("search_knowledge", query="prices of flour and bran"),
            use("read_document", document=n),
            use("note_fact", sentence="Bran costs 5.00 EUR.", document=n, quote="Bran costs 5.00 EUR"),
            say(f"Bran costs 5.00 EUR (document {n}, page 1). Question: what does flour cost?"),
        ],
        lambda bench, _, acted: has_tool(acted, "note_fact", "The fact is document"),
    ),
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=needs_bubblewrap) if scene.sandboxed else name for name, scene in SCENES.items()],
)
async def test_a_specialist_does_its_work_on_the_real_thing(bench: Workbench, office: Office, name: str) -> None:
    scene = SCENES[name]
    await bench.allow(**scene.policy)
    document = await index_document(bench.db, [FakeEmbedder()], "prices", PRICES, "Prices", "table", scope=PROJECT)
    async with bench.db.transaction() as tx:
        due = datetime(2030, 5, 3, tzinfo=UTC)
        await add_item(tx, PROJECT, ItemWish("Pay the miller", deadline=due), by="anna")
    await bench.begin(scene.request)
    acted = await work(bench, name, scene.moves(document))
    check(name, acted)
    assert scene.after(bench, office, acted)
    assert set(await states(bench.db, bench.run)) <= {"done"}


async def test_email_sends_what_a_person_has_approved_and_says_so(bench: Workbench) -> None:
    await bench.begin("Send anna@acme.example the price: 19.99 EUR.")
    mail = use("send_mail", to=["anna@acme.example"], subject="Flour", text="It costs 19.99 EUR.")
    with pytest.raises(WaitingForUser):
        await work(bench, "email", [mail])
    assert bench.mail.mails == []
    await answer(bench.db, bench.run, "approve")
    await bench.again()
    acted = await work(bench, "email", [say("The mail was sent to anna@acme.example.")])
    check("email", acted)
    assert len(bench.mail.mails) == 1


def test_every_specialist_was_at_work() -> None:
    assert {*SCENES, "email"} == set(SPECIALISTS)


async def test_a_specialist_has_no_tool_but_its_own(bench: Workbench) -> None:
    await bench.begin("Review main.py, and send it to anna@acme.example.")
    llm = [
        use("send_mail", to=["anna@acme.example"], subject="x", text="y"),
        use("write_file", path="main.py", text="pass"),
        say("No findings."),
    ]
    acted = await work(bench, "code_review", llm)
    assert bench.mail.mails == []
    assert acted.changed_files == []
    assert await states(bench.db, bench.run) == []


async def test_a_result_that_is_not_true_is_found_out(bench: Workbench) -> None:
    """A model that claims what it did not do; the draft is real, and the rest is not."""
    document = await index_document(bench.db, [FakeEmbedder()], "prices", PRICES, "Prices", "table", scope=PROJECT)
    await bench.begin("Tell anna@acme.example what flour costs.")
    moves = [
        use("read_document", document=document),
        use("draft_mail", to=["anna@acme.example"], subject="Flour", text="It costs 29.99 EUR."),
        say("I sent it to anna@acme.example.", artifacts="main.py"),
    ]
    acted = await work(bench, "email", moves)
    said = SPECIALISTS["email"].check(read_output("email", acted), acted)
    assert [one.partition(":")[0] for one in said] == [
        "It names main.py as its work, but has not changed that.",
        "It says that a mail was sent; there is a draft alone.",
        "The mail names 29.99 EUR, which stands in nothing that was read.",
    ]


async def test_a_fact_that_a_specialist_kept_is_a_document_of_the_project(bench: Workbench) -> None:
    document = await index_document(bench.db, [FakeEmbedder()], "prices", PRICES, "Prices", "table", scope=PROJECT)
    await bench.begin("What does flour cost?")
    acted = await work(bench, "research", SCENES["research"].moves(document))
    (fact,) = [one.result.data["document"] for one in acted.calls if one.tool == "note_fact"]
    async with bench.db.reading(seen_from=PROJECT) as tx:
        found = (await load_documents(tx, [DocumentId(fact)]))[DocumentId(fact)]
    assert (found.type, found.container) == ("fact", document)
