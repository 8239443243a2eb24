"""The loop of a model with tools: it acts once, reads what came of it, and comes to an end."""

from typing import Any

import pytest
from desk_work import answer, questions, states
from pydantic import BaseModel, ValidationError
from workbench import Workbench

from gristmill.agents.acting import (
    Acted,
    Brief,
    act,
    arrange_past,
    count_spent,
    find_repeated,
    make_shape,
    make_turns,
)
from gristmill.agents.blanks import find_least
from gristmill.agents.budgets import count_turns
from gristmill.agents.orchestrator.shapes import Design, GoalDraft, Opinion, StepDraft, Understood
from gristmill.agents.runs import WaitingForUser
from gristmill.agents.thinking import simplify_schema
from gristmill.agents.tools import TOOLS, Arguments, PastCall, Tool, ToolResult
from gristmill.agents.tools.model import say_nothing
from gristmill.errors import Transient
from gristmill.models import FakeLlm, make_schema, tokens

FILES = ("list_files", "read_file", "write_file", "patch_file")


def use(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"thought": "next", "move": {"tool": tool, "arguments": arguments}}


def say(text: str) -> dict[str, Any]:
    return use("answer", text=text)


def make_brief(tools: Any = FILES, **more: Any) -> Brief:
    given = {"task": "Mend add in main.py.", "context": "", "budget": 4_000, **more}
    return Brief("goal 1.1", "You mend code.", tools=tools, **given)


async def run_act(bench: Workbench, llm: FakeLlm, brief: Brief) -> Acted:
    handle = bench.make_handle(llm)
    async with handle.step("execute_step") as step:
        acted = await act(handle, brief, step)
        step.output = acted.describe()
    return acted


async def test_a_model_reads_changes_and_says_what_it_has_done(bench: Workbench) -> None:
    await bench.begin("Mend add in main.py.")
    llm = FakeLlm(
        [use("read_file", path="main.py"), use("patch_file", path="main.py", old="a - b", new="a + b"), say("Mended.")]
    )
    acted = await run_act(bench, llm, make_brief())
    assert (acted.text, acted.rounds, acted.is_complete) == ("Mended.", 3, True)
    assert acted.changed_files == acted.artifacts == ["main.py"]
    assert [one.tool for one in acted.calls] == ["read_file", "patch_file"]
    assert "return a + b" in (bench.folder / "main.py").read_text()
    assert "return a - b" in llm.questions[1]  # what the tool said, as material
    assert "result of read_file" in llm.questions[1]


async def test_blanks_are_no_answer(bench: Workbench) -> None:
    await bench.begin("Mend add in main.py.")
    acted = await run_act(bench, FakeLlm([say("  \n"), say("\t"), say(" Looked at it. ")]), make_brief())
    assert (acted.text, acted.is_complete) == ("Looked at it.", True)
    acted = await run_act(bench, FakeLlm([say("  \n")] * 8), make_brief())
    assert not acted.is_complete
    assert "text: it must have at least 1 character" in acted.text


@pytest.mark.parametrize("shape", [Understood, GoalDraft, Design, StepDraft, Opinion])
def test_no_shape_of_an_answer_takes_blanks_for_words(shape: type[BaseModel]) -> None:
    """Each text that must have some length has it without the blanks around it."""
    worded = [
        name for name in shape.model_fields if shape.model_fields[name].annotation is str and find_least(shape, name)
    ]
    assert worded
    for name in worded:
        with pytest.raises(ValidationError) as wrong:
            shape.model_validate({name: " " * 30})
        assert (name,) in [one["loc"] for one in wrong.value.errors()]


async def test_a_tool_takes_no_blanks_for_words(bench: Workbench) -> None:
    await bench.begin("Commit it.")
    await bench.call("git_branch", "1#0", branch="agent/mend")
    await bench.call("write_file", "1#1", path="main.py", text=" \n")  # a file may be blank
    assert (await bench.call("git_commit", "1#2", message=" \n ")).is_error
    assert (await bench.call("send_mail", "1#3", to=["anna@acme.example"], subject=" ", text="x")).is_error
    assert (bench.folder / "main.py").read_text() == " \n"


async def test_a_visit_that_was_interrupted_is_told_what_it_has_done_and_does_nothing_twice(bench: Workbench) -> None:
    await bench.begin("Write notes.md.")
    patch = use("patch_file", path="main.py", old="a - b", new="a + b")
    with pytest.raises(Transient):
        await run_act(bench, FakeLlm([patch, Transient("gone")]), make_brief())
    await bench.again()
    llm = FakeLlm([say("It is done.")])
    acted = await run_act(bench, llm, make_brief())
    assert [one.tool for one in acted.calls] == ["patch_file"]
    assert acted.changed_files == ["main.py"]
    assert "patch_file" in llm.questions[0]
    assert await states(bench.db, bench.run) == ["done"]


async def test_a_call_that_needs_a_person_goes_on_behind_the_answer(bench: Workbench) -> None:
    await bench.begin("Send the figures to anna@acme.example.")
    mail = use("send_mail", to=["anna@acme.example"], subject="Figures", text="42")
    brief = make_brief(("send_mail",), task="Send the figures.")
    with pytest.raises(WaitingForUser):
        await run_act(bench, FakeLlm([mail]), brief)
    await answer(bench.db, bench.run, "approve")
    await bench.again()
    acted = await run_act(bench, FakeLlm([mail, say("Sent.")]), brief)  # a model that would send it once more
    assert len(bench.mail.mails) == 1
    assert acted.is_complete
    assert await questions(bench.db, bench.run) == []


async def test_a_model_that_goes_in_circles_is_told_and_ended(bench: Workbench) -> None:
    await bench.begin("Read main.py.")

    def circle(words: str) -> dict[str, Any]:
        return say("Nothing more.") if "last round" in words else use("read_file", path="main.py")

    llm = FakeLlm(circle)
    acted = await run_act(bench, llm, make_brief(rounds=4))
    assert (acted.rounds, acted.is_complete, acted.text) == (4, False, "Nothing more.")
    assert "made this call before" in llm.questions[2]


async def test_who_answers_without_having_changed_anything_is_reminded_once(bench: Workbench) -> None:
    """Small models say that a file is written, and write none."""
    await bench.begin("Write notes.md.")
    write = use("write_file", path="notes.md", text="one")
    llm = FakeLlm([say("It is written."), write, say("It is written.")])
    acted = await run_act(bench, llm, make_brief(expects_change=True))
    assert acted.changed_files == ["notes.md"]
    assert "You have changed nothing yet" in llm.questions[1]
    assert "Use write_file or patch_file now" in llm.questions[1]
    assert "You have changed nothing yet" not in llm.questions[2]
    await bench.begin("Write notes.md.")
    stubborn = FakeLlm([say("There is nothing to write."), say("There is nothing to write.")])
    assert (await run_act(bench, stubborn, make_brief(expects_change=True))).text == "There is nothing to write."


async def test_who_only_looks_again_and_again_is_reminded_too(bench: Workbench) -> None:
    await bench.begin("Write notes.md.")
    look, write = use("list_files"), use("write_file", path="notes.md", text="one")
    llm = FakeLlm([look, look, write, say("It is written.")])
    acted = await run_act(bench, llm, make_brief(expects_change=True))
    assert acted.changed_files == ["notes.md"]
    assert ["You have changed nothing yet" in one for one in llm.questions] == [False, False, True, False]


@pytest.mark.parametrize(
    ("calls", "earlier", "spent"), [(0, 0, 0), (2, 0, 2), (4, 0, 3), (9, 0, 3), (4, 1, 0), (6, 1, 2), (20, 2, 3)]
)
def test_rounds_count_across_interruptions_and_one_is_left_for_the_answer(calls: int, earlier: int, spent: int) -> None:
    assert count_spent(make_brief(rounds=4, earlier=earlier), calls) == spent


async def test_a_visit_that_goes_on_has_only_the_rounds_that_are_left(bench: Workbench) -> None:
    await bench.begin("Write notes.md.")
    written = [use("write_file", path=f"{n}.md", text="one") for n in range(3)]
    with pytest.raises(Transient):
        await run_act(bench, FakeLlm([*written, Transient("gone")]), make_brief(rounds=4))
    await bench.again()
    llm = FakeLlm([say("All are there.")])
    acted = await run_act(bench, llm, make_brief(rounds=4))
    assert (acted.rounds, acted.is_complete) == (4, False)
    assert "This is the last round" in llm.questions[0]


async def test_rounds_that_only_looked_count_across_interruptions_and_are_not_forgotten(bench: Workbench) -> None:
    await bench.begin("Mend add in main.py.")
    brief = make_brief(rounds=4)
    with pytest.raises(Transient):
        await run_act(bench, FakeLlm([use("read_file", path="main.py"), Transient("gone")]), brief)
    await bench.again()
    with pytest.raises(Transient):
        await run_act(bench, FakeLlm([use("list_files"), Transient("gone")]), brief)
    await bench.again()
    llm = FakeLlm([use("read_file", path="README.md"), say("It subtracts.")])
    acted = await run_act(bench, llm, brief)
    assert "return a - b" in llm.questions[0], "what was read before is known"
    assert "run.sh" in llm.questions[0]
    assert (acted.rounds, acted.is_complete) == (4, False)
    assert [one.tool for one in acted.calls] == ["read_file", "list_files", "read_file"]
    again = FakeLlm([say("It is another attempt.")])
    assert (await run_act(bench, again, make_brief(rounds=4, earlier=1))).rounds == 1
    assert "return a - b" not in again.questions[0]


async def test_tests_may_run_again_once_the_workspace_has_changed(bench: Workbench) -> None:
    await bench.begin("Look.")
    read = use("read_file", path="main.py")
    patch = use("patch_file", path="main.py", old="a - b", new="a + b")
    acted = await run_act(bench, FakeLlm([read, patch, read, say("ok")]), make_brief())
    assert "a + b" in acted.calls[2].result.text
    assert "before" not in acted.calls[2].result.text


READ = ("read_file", {"path": "main.py"})
FETCH = ("fetch_page", {"url": "https://a.example/"})
MAIL = ("send_mail", {"to": ["anna@acme.example"], "subject": "Figures", "text": "42"})
HELPED = ("delegate", {"agent": "coding", "task": "Mend it."})
AWAY: dict[str, Any] = {"is_error": True}
REPEATS: dict[str, tuple[list[tuple[str, Any]], dict[str, Any], bool]] = {
    "nothing happened": ([READ], {}, True),
    "something else was read": ([READ, FETCH], {}, True),
    "a file was changed": ([READ, ("write_file", {"path": "x", "text": "y"})], {}, False),
    "a helper was at work": ([READ, HELPED], {}, False),
    "tests ran before a helper was at work": ([("run_tests", {"command": "make test"}), HELPED], {}, False),
    "the same part was given away": ([HELPED], {}, True),
    "a page could not be read": ([FETCH], AWAY, False),
    "a person said no to a page": ([FETCH], {**AWAY, "is_refused": True}, True),
    "a mail was sent before a helper was at work": ([MAIL, HELPED], {}, True),
    "a mail could not be sent": ([MAIL], AWAY, True),
}


@pytest.mark.parametrize(("calls", "ended", "is_repeated"), REPEATS.values(), ids=REPEATS.keys())
def test_a_call_is_answered_from_before_only_if_it_would_say_the_same(
    calls: list[tuple[str, Any]], ended: dict[str, Any], is_repeated: bool
) -> None:
    given = Tool[Any]("delegate", "Let another agent do it.", Arguments, say_nothing, gives_away=True)
    past = [PastCall(*one, ToolResult("ok", **ended)) for one in calls]
    found = find_repeated(past, *calls[0], {**TOOLS, "delegate": given})
    assert (found is not None) == is_repeated


async def test_a_mistake_of_the_model_is_a_complaint_and_not_the_end(bench: Workbench) -> None:
    await bench.begin("Read.")
    wrong = use("read_file", file="main.py")
    llm = FakeLlm([wrong, use("read_file", path="nothing.py"), use("fly", to="moon"), say("There is none.")])
    acted = await run_act(bench, llm, make_brief())
    assert acted.is_complete
    assert [(one.tool, one.result.is_error) for one in acted.calls] == [("read_file", True)]


@pytest.mark.parametrize("nonsense", ["", "hm", "{}", {"thought": "x"}])
async def test_a_model_that_never_answers_in_the_form_is_given_up_with_what_was_done(
    bench: Workbench, nonsense: Any
) -> None:
    await bench.begin("Write notes.md.")
    first = iter([use("write_file", path="notes.md", text="one\n")])
    acted = await run_act(bench, FakeLlm(lambda _: next(first, nonsense)), make_brief())
    assert not acted.is_complete
    assert "no answer that could be used" in acted.text
    assert acted.changed_files == ["notes.md"]


def test_old_results_are_only_mentioned_when_the_budget_is_small() -> None:
    past = [PastCall("read_file", {"path": f"{n}.py"}, ToolResult(f"{n}-word " * 300)) for n in range(30)]
    turns = arrange_past(past, 1_500)
    assert count_turns(turns) <= 1_550
    said = "\n".join(one.text for one in turns)
    assert said.startswith("(Earlier calls of yours that are not shown: ")
    assert '"29.py"' in said
    assert said.count("29-word") > said.count("28-word") >= said.count("20-word")


async def test_the_task_is_whole_however_much_is_known(bench: Workbench) -> None:
    await bench.begin("x")
    brief = make_brief(task="Mend the roof, THE WHOLE ROOF.", context="known " * 5_000, budget=1_000)
    past = [PastCall("read_file", {"path": "x"}, ToolResult("said " * 3_000))] * 3
    turns = make_turns(brief, bench.box.select(FILES), past)
    assert "THE WHOLE ROOF." in turns[1].text
    assert "left out" in turns[1].text
    assert count_turns(turns) <= 1_100


@pytest.mark.parametrize("name", sorted(TOOLS))
def test_every_tool_can_be_offered_as_a_form_that_grammars_follow(name: str) -> None:
    schema = simplify_schema(make_schema(make_shape({name: TOOLS[name]})))
    assert name in str(schema)
    assert "pattern" not in schema["$defs"]
    assert tokens.count(str(schema)) < 2_000
