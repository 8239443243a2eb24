"""The standard graph: every node, every question to a person, every limit, and a model that answers nonsense."""

import asyncio
import re
from typing import Any

import pytest
from desk_work import answer, questions, state_of, states
from evidence import store_page
from script import Script, carry, goals, load_steps, nodes, say, steps, understood, use
from workbench import PROJECT, Workbench, run_git

from gristmill.agents import answer_question
from gristmill.agents.checkpoints import measure_checkpoints
from gristmill.agents.effects import EffectRow, list_effects
from gristmill.agents.orchestrator.git_operations import describe_changes
from gristmill.agents.orchestrator.goals import correct_steps
from gristmill.agents.orchestrator.intake import correct_category
from gristmill.agents.orchestrator.state import PlannedStep, StepKind
from gristmill.agents.runs import end_lost_steps, list_runs, load_contexts
from gristmill.errors import Transient
from gristmill.settings import Settings

MEND = [use("patch_file", path="main.py", old="a - b", new="a + b"), say("add adds now.")]
FULL = {
    "intake": understood("SINGLE_TASK", "Mend add in main.py."),
    "plan": {"goals": goals("add adds")},
    "plan_steps": steps(("code", "Mend add")),
}


def limit(bench: Workbench, **agents: Any) -> None:
    kept = bench.settings.agents.model_dump(exclude_unset=True)
    bench.settings = Settings(data=bench.settings.data, agents={**kept, **agents})  # pyright: ignore[reportArgumentType]


# --- categories


async def test_a_question_is_answered_with_citations_that_were_checked(bench: Workbench) -> None:
    await store_page(bench.db, "The mill was built in 1924 by Anna Novak.", name="mill.md", scope=PROJECT)
    await bench.begin("When was the mill built?")
    script = Script(
        intake=understood("ADVICE", "Say when the mill was built."), respond="The mill was built in 1924 [1]."
    )
    report = await carry(bench, script)
    assert report is not None
    assert "The mill was built in 1924 [1]." in report
    assert "## Sources\n\n[1] mill.md" in report
    assert await nodes(bench) == ["intake", "evidence_pack", "respond", "finalize"]
    (cited,) = (await load_steps(bench))[2].output["citations"]
    assert cited["words"] == "The mill was built in 1924 by Anna Novak."


async def test_a_question_that_nothing_answers_is_not_answered(bench: Workbench) -> None:
    await bench.begin("When was the mill built?")
    report = await carry(bench, Script(intake=understood("ADVICE"), respond="It was built in 1820."))
    assert report is not None
    assert "I don't know" in report


async def test_a_task_is_planned_done_judged_committed_and_reported(bench: Workbench) -> None:
    await bench.allow(auto_push=True)
    await bench.begin("Mend add in main.py.")
    script = Script(**FULL, act=MEND)
    report = await carry(bench, script)
    assert report is not None
    visited = ["intake", "evidence_pack", "plan", "select_goal", "plan_steps", "execute_step", "evaluate"]
    visited += ["advance_step", "advance_goal", "select_goal", "git_operations", "finalize"]
    assert await nodes(bench) == visited
    assert "return a + b" in run_git(bench.repository, "show", f"agent/run-{bench.run}:main.py")
    assert "- [x] add adds" in report
    assert "All of it was done." in report
    done = next(one for one in await load_steps(bench) if one.node == "execute_step")
    assert done.title == "1.1 Mend add"
    assert done.output["changed_files"] == ["main.py"]
    assert (done.calls, done.model) == (2, "small")
    assert done.tokens_in > 0
    run = await state_of(bench.db, bench.run)
    assert (run.state, run.report) == ("completed", report)
    assert run.calls == len(script.order)


async def test_what_a_step_found_out_goes_up_to_its_goal_and_to_the_whole(bench: Workbench) -> None:
    await bench.begin("Look at both.")
    plan = {"goals": goals("first is known", "second is known")}
    found = iter(["FIRST FINDING", "SECOND FINDING", "THIRD FINDING"])
    script = Script(
        intake=understood("SINGLE_TASK"),
        plan=plan,
        plan_steps=[steps(("research", "look"), ("research", "look again")), steps(("research", "look there"))],
        act=lambda _: say(next(found)),
    )
    await carry(bench, script)
    async with bench.db.reading() as tx:
        contexts = await load_contexts(tx, bench.run)
    assert [(one.level, one.place) for one in contexts] == [
        ("step", "1.1"),
        ("step", "1.2"),
        ("goal", "1"),
        ("step", "2.1"),
        ("goal", "2"),
        ("epic", "1"),
    ]
    assert "FIRST FINDING" in script.asked["act"][1]  # a step knows what the step before it has said
    assert "FIRST FINDING" in script.asked["plan_steps"][1]  # the next goal knows what came of the first
    assert "THIRD FINDING" in contexts[-1].detail


@pytest.mark.parametrize(
    ("said", "request_", "category"),
    [
        ("ADVICE", "Write down in notes.md when the mill was built.", "SINGLE_TASK"),
        ("ADVICE", "Please fix the roof", "SINGLE_TASK"),
        ("ADVICE", "Write to whom?", "ADVICE"),
        ("ADVICE", "When was the mill built", "ADVICE"),
        ("EPIC", "Build a mill.", "EPIC"),
    ],
)
def test_an_order_is_work_even_if_a_small_model_takes_it_for_a_question(
    said: Any, request_: str, category: str
) -> None:
    assert correct_category(said, request_) == category


# --- questions


@pytest.mark.parametrize(
    ("kinds", "request_", "found"),
    [
        (["research"], "Write a file NOTES.md that lists the open invoices.", ["write"]),
        (["research", "research"], "Create a draft mail to anna@acme.example.", ["research", "communicate"]),
        (["research"], "Add a comment on the issue MILL-7.", ["track"]),
        (["research"], "Fix add in main.py.", ["code"]),
        (["research", "write"], "Write a file NOTES.md.", ["research", "write"]),
        (["code", "research"], "Write a file NOTES.md.", ["code", "research"]),
        (["research"], "Which mails are open?", ["research"]),
    ],
)
def test_where_something_is_ordered_the_last_step_can_do_it(
    kinds: list[StepKind], request_: str, found: list[str]
) -> None:
    planned = [PlannedStep(number=n, kind=kind, task="Look.") for n, kind in enumerate(kinds, 1)]
    assert [one["kind"] for one in correct_steps(planned, "It is so", request_)] == found


async def test_an_unclear_request_is_asked_about_and_goes_on_with_the_answer(bench: Workbench) -> None:
    await bench.begin("Do the thing.")

    def read(words: str) -> dict[str, Any]:
        return (
            understood("ADVICE", "Say when.") if "the blue one" in words else understood("ADVICE", "?", "Which thing?")
        )

    script = Script(intake=lambda words: read(words) | {"goal": "Say which."}, respond="I don't know.")
    assert await carry(bench, script) is None
    (question,) = await questions(bench.db, bench.run)
    assert (question.kind, question.sentence) == ("clarify", "Which thing?")
    await answer(bench.db, bench.run, None, "the blue one")
    await bench.again()
    assert await carry(bench, script) is not None
    assert len(script.asked["intake"]) == 2


def ask_back(category: str, question: str, answered: str) -> Any:
    """An intake that needs this answer, and whose goal has lost the words of it."""

    def read(words: str) -> dict[str, Any]:
        return understood(category, "Do what was asked for.", "" if answered in words else question)

    return read


@pytest.mark.parametrize("category", ["SINGLE_TASK", "EPIC", "GENERATIVE"])
async def test_whoever_works_on_a_request_is_told_what_a_person_has_said_about_it(
    bench: Workbench, category: str
) -> None:
    await bench.begin("Write a note about the door.")
    node = {"SINGLE_TASK": "plan", "EPIC": "plan_epic", "GENERATIVE": "design"}[category]
    script = Script(
        intake=ask_back(category, "Which one?", "code 4711"),
        plan_steps=steps(("write", "Write the note")),
        act=[use("write_file", path="door.md", text="blue"), say("It is written.")],
        **{node: {"goals": goals("the note is there"), "design": "A note of one line, and nothing else."}},
    )
    assert await carry(bench, script) is None
    await bench.again_after(answer(bench.db, bench.run, None, "the blue one on the left, code 4711"))
    if category != "SINGLE_TASK":
        assert await carry(bench, script) is None
        await bench.again_after(answer(bench.db, bench.run, "change", "Say that it squeaks."))
        assert await carry(bench, script) is None
        assert all("it squeaks" in one for one in script.asked[node][1:])
        await bench.again_after(answer(bench.db, bench.run, "approve"))
    await carry(bench, script)
    for asked in (node, "plan_steps", "act", "evaluate"):
        assert script.asked[asked], asked
        assert all("Which one?" in one and "on the left, code 4711" in one for one in script.asked[asked]), asked
    if category != "SINGLE_TASK":
        assert all("it squeaks" in one for one in script.asked["act"])
    while (await state_of(bench.db, bench.run)).state == "waiting_for_user":
        await bench.again_after(bench.answer_all())
        await carry(bench, script)
    assert "on the left, code 4711" in script.asked["finalize"][-1]


async def test_a_question_is_answered_for_what_a_person_has_said_that_it_means(bench: Workbench) -> None:
    await store_page(bench.db, "The old mill was built in 1724.", name="old.md", scope=PROJECT)
    await store_page(bench.db, "The tidal mill was built in 1924.", name="tidal.md", scope=PROJECT)
    await bench.begin("When was the mill built?")

    def respond(words: str) -> str:
        number = re.search(r"\[(\d+)\] \(tidal", words)
        assert number is not None, "the answer of the person chose no passage"
        return f"The tidal mill was built in 1924 [{number[1]}]."

    script = Script(intake=ask_back("ADVICE", "Which mill?", "the tidal one"), respond=respond)
    assert await carry(bench, script) is None
    await bench.again_after(answer(bench.db, bench.run, None, "the tidal one"))
    report = await carry(bench, script)
    assert "The tidal mill was built in 1924" in (report or "")
    (prompt,) = script.asked["respond"]
    assert "Which mill?" in prompt
    assert "Question: When was the mill built? (the tidal one)" in prompt
    (evidence,) = [one for one in await load_steps(bench) if one.node == "evidence_pack"]
    assert evidence.output["passages"][0]["title"] == "tidal.md"


async def test_nobody_is_asked_more_than_twice_what_was_meant(bench: Workbench) -> None:
    await bench.begin("Do the thing.")
    script = Script(intake=understood("ADVICE", "Say which.", "Which?"), respond="I don't know.")
    for _ in range(2):
        assert await carry(bench, script) is None
        await answer(bench.db, bench.run, None, "that one")
        await bench.again()
    assert await carry(bench, script) is not None


@pytest.mark.parametrize(("category", "kind"), [("EPIC", "epic_plan"), ("GENERATIVE", "generative_design")])
async def test_a_person_agrees_to_a_large_plan_and_gets_exactly_that_one(
    bench: Workbench, category: str, kind: str
) -> None:
    await bench.begin("Build a mill.")
    made = iter(["walls", "roof"])

    def draft(_: str) -> dict[str, Any]:
        return {"goals": goals(next(made)), "design": "A mill of stone with a wheel, and nothing else."}

    node = "plan_epic" if category == "EPIC" else "design"
    script = Script(
        intake=understood(category), plan_steps=steps(("research", "look")), act=say("seen"), **{node: draft}
    )
    assert await carry(bench, script) is None
    await bench.again_after(answer(bench.db, bench.run, "change", "Begin with the roof."))
    assert await carry(bench, script) is None
    assert "Begin with the roof." in script.asked[node][1]
    (question,) = await questions(bench.db, bench.run)
    assert question.kind == kind
    assert question.details["goals"][0]["title"] == "roof"
    await bench.again_after(answer(bench.db, bench.run, "approve"))
    report = await carry(bench, script)
    assert report is not None
    assert "- [x] roof" in report
    assert "walls" not in report
    assert len(script.asked[node]) == 2  # what was agreed to is not made again


async def test_a_person_can_stop_it_at_the_plan(bench: Workbench) -> None:
    await bench.begin("Build a mill.")
    script = Script(intake=understood("EPIC"), plan_epic={"goals": goals("walls")})
    await carry(bench, script)
    await bench.again_after(answer(bench.db, bench.run, "stop", "Too dear."))
    report = await carry(bench, script)
    assert report is not None
    assert "anna stopped it at the plan: Too dear." in report
    assert "execute_step" not in await nodes(bench)


async def test_changes_are_committed_and_pushed_after_two_questions(bench: Workbench) -> None:
    await bench.begin("Mend add in main.py.")
    script = Script(**FULL, act=MEND)
    assert await carry(bench, script) is None
    (question,) = await questions(bench.db, bench.run)
    assert question.kind == "commit"
    assert question.details["files"] == ["main.py"]
    assert "+    return a + b" in question.details["diff"]
    await bench.again_after(answer(bench.db, bench.run, "commit"))
    assert await carry(bench, script) is None
    (question,) = await questions(bench.db, bench.run)
    assert (question.kind, question.choices) == ("push", ["approve", "refuse"])
    assert question.details["prepared"]["data"]["to"] == str(bench.repository)
    assert run_git(bench.repository, "branch", "--list", "agent/*") == ""
    await bench.again_after(answer(bench.db, bench.run, "approve"))
    assert await carry(bench, script) is not None
    assert f"agent/run-{bench.run}" in run_git(bench.repository, "branch", "--list", "agent/*")
    assert script.order.count("act") == 2


async def test_whoever_is_asked_about_a_commit_sees_new_files_and_what_is_left_out(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    await bench.begin("Mend add in main.py.")
    files = await bench.context.files()
    await files.write("new folder/new.py", "import os\nos.system('evil')\n")
    await files.write("main.py", "def add(a, b):\n    return a + b\n")
    (bench.folder / "README.md").unlink()
    shown: dict[str, Any] = await describe_changes(bench.make_handle(), "agent/x")
    assert sorted(shown["files"]) == ["README.md", "main.py", "new folder/new.py"]
    assert "+os.system('evil')" in shown["diff"]
    assert "+    return a + b" in shown["diff"]
    assert "-# Mill" in shown["diff"]
    assert "left_out" not in shown
    with monkeypatch.context() as small:
        small.setattr("gristmill.agents.tools.git_commit.MOST_SHOWN", 1)
        small.setattr("gristmill.agents.tools.git_commit.LONGEST_DIFF", 7)
        left_out = str((await describe_changes(bench.make_handle(), "agent/x"))["left_out"])
    assert left_out.startswith("Not shown: 2 files and ")
    assert left_out.endswith(" characters more. Look at the workspace before you agree.")
    await bench.call("git_branch", "1#0", branch="agent/x")
    await bench.call("git_commit", "1#1", message="Mend", paths=["main.py"])
    async with bench.db.reading() as tx:
        prepared = (await list_effects(tx, bench.run))[-1].prepared["data"]
    assert "+    return a + b" in prepared["diff"]
    assert "evil" not in prepared["diff"], "only what is committed"
    assert run_git(bench.folder, "show", "--name-only", "--format=").split() == ["main.py"]


async def test_what_was_changed_after_a_person_agreed_is_asked_about_again(bench: Workbench) -> None:
    await bench.begin("Mend add in main.py.")
    script = Script(**FULL, act=MEND)
    assert await carry(bench, script) is None
    await bench.again_after(answer(bench.db, bench.run, "commit"))
    (bench.folder / "main.py").write_text("import os; os.system('evil')\n")
    assert await carry(bench, script) is None
    (question,) = await questions(bench.db, bench.run)
    assert (question.kind, question.choices) == ("commit", ["commit", "leave"])
    assert "+import os; os.system('evil')" in question.details["diff"]
    assert states_of_commits(await load_rows(bench)) == []
    await bench.again_after(answer(bench.db, bench.run, "commit"))
    await carry(bench, script)
    assert states_of_commits(await load_rows(bench)) == ["done"]


async def load_rows(bench: Workbench) -> list[EffectRow]:
    async with bench.db.reading() as tx:
        return await list_effects(tx, bench.run)


def states_of_commits(rows: list[EffectRow]) -> list[str]:
    return [row.state for row in rows if row.tool == "git_commit"]


async def test_changes_that_a_person_leaves_stay_in_the_workspace(bench: Workbench) -> None:
    await bench.begin("Mend add in main.py.")
    script = Script(**FULL, act=MEND)
    await carry(bench, script)
    await bench.again_after(answer(bench.db, bench.run, "leave"))
    report = await carry(bench, script)
    assert report is not None
    assert "left them in the workspace" in report
    assert await states(bench.db, bench.run) == ["done"]


@pytest.mark.parametrize(("choice", "model"), [("use", "huge"), ("stay", "small")])
async def test_a_stronger_model_is_asked_only_if_a_person_agrees(bench: Workbench, choice: str, model: str) -> None:
    limit(bench, cloud_model="huge", max_rounds=1)
    await bench.begin("Find it.")
    script = Script(
        intake=understood("SINGLE_TASK"),
        plan={"goals": goals("it is found")},
        plan_steps=steps(("research", "look")),
        act=say("I ran out of rounds."),
    )
    assert await carry(bench, script) is None
    (question,) = await questions(bench.db, bench.run)
    assert question.kind == "cloud_model"
    assert "huge" in question.sentence
    await bench.again_after(answer(bench.db, bench.run, choice))
    assert await carry(bench, script) is not None
    last = [one for one in await load_steps(bench) if one.node == "execute_step"][-1]
    assert last.model == model


async def test_each_answer_goes_to_its_own_question_when_two_wait(bench: Workbench) -> None:
    """An effect that needs approval, and an effect of another place: answered in the other order."""
    await bench.begin("Write to anna@acme.example and to bert@acme.example.")
    mails = {
        name: use("send_mail", to=[f"{name}@acme.example"], subject=name, text=f"Dear {name}")
        for name in ("anna", "bert")
    }
    handle = bench.make_handle()
    for name in ("anna", "bert"):
        with pytest.raises(Exception, match="waits for a person"):
            await handle.toolbox.at(f"goal 1.{name}").call("send_mail", mails[name]["move"]["arguments"])
    bert, anna = await questions(bench.db, bench.run)
    assert "bert" in bert.sentence
    async with bench.db.transaction() as tx:
        await answer_question(tx, bert.id, choice="refuse", by="anna")
        await answer_question(tx, anna.id, choice="approve", by="anna")
    assert await states(bench.db, bench.run) == ["approved", "failed"]


# --- judged by rule, then by the model


async def test_a_step_whose_tests_fail_is_not_done_whatever_the_model_says(bench: Workbench) -> None:
    await bench.allow(commands=("python3 *", "false"), auto_push=True)
    limit(bench, max_rounds=6)
    await bench.begin("Mend add. Run the tests with: false")
    lie = [use("run_tests", command="false"), say("All tests pass, I am sure.")]
    turns = iter(lie * 3)
    script = Script(
        intake=understood("SINGLE_TASK"),
        plan={"goals": goals("add adds")},
        plan_steps=steps(("code", "mend")),
        act=lambda words: next(turns) if "made this call before" not in words else say("They pass."),
    )
    report = await carry(bench, script)
    assert report is not None
    assert "- [!] add adds" in report
    assert "The tests do not pass." in report


async def test_a_step_that_the_model_doubts_is_tried_once_more(bench: Workbench) -> None:
    await bench.begin("Find it.")
    script = Script(
        intake=understood("SINGLE_TASK"),
        plan={"goals": goals("it is found")},
        plan_steps=steps(("research", "look")),
        act=say("It is under the stone."),
        evaluate={"reason": "Nobody looked under the stone.", "is_done": False},
    )
    report = await carry(bench, script)
    assert report is not None
    assert (await nodes(bench)).count("execute_step") == 2
    assert "Nobody looked under the stone." in script.asked["act"][1]
    assert "- [x] it is found" in report  # a doubt of the model alone does not send it back for ever


# --- what is said of a run that is over


async def test_a_run_that_reached_no_goal_is_marked_and_the_model_says_nothing_of_it(bench: Workbench) -> None:
    await store_page(bench.db, "A stone is dressed every 120 hours.", name="mill.md", scope=PROJECT)
    await bench.begin("Mend add in main.py.")
    doubt = {"reason": "Nothing was changed.", "is_done": False}
    script = Script(**FULL, act=say("done"), evaluate=doubt, finalize="A stone is dressed every 100 hours [1].")
    report = await carry(bench, script)
    assert report is not None
    assert "1 of 1 goal was not reached." in report
    assert "100 hours" not in report
    run = await state_of(bench.db, bench.run)
    assert (run.state, run.unreached) == ("completed", "no goal reached")
    async with bench.db.reading() as tx:
        assert [one.unreached for one in (await list_runs(tx)).runs] == ["no goal reached"]


async def test_the_summary_of_a_run_says_nothing_that_is_contradicted_or_stands_nowhere(bench: Workbench) -> None:
    await store_page(bench.db, "A stone is dressed every 120 hours.", name="mill.md", scope=PROJECT)
    await bench.allow(auto_push=True)
    await bench.begin("Say how often a stone is dressed, and mend add in main.py.")
    false = "A stone is dressed every 100 hours [1]. It cost EUR 4,711.00."
    words = f"It is mended [1]. {false} It is dressed every 120 hours."
    report = await carry(bench, Script(**FULL, act=MEND, finalize=words))
    assert report is not None
    assert "It is mended. It is dressed every 120 hours." in report
    assert "100 hours" not in report
    assert "4,711" not in report
    assert (await state_of(bench.db, bench.run)).unreached is None


# --- limits


async def test_a_run_ends_at_its_limit_with_what_it_has(bench: Workbench) -> None:
    limit(bench, max_iterations=7)
    await bench.begin("Look for ever.")
    script = Script(
        intake=understood("SINGLE_TASK"),
        plan={"goals": goals("a", "bbb", "ccc")[1:]},
        plan_steps=steps(*(("research", f"look {n}") for n in range(6))),
        act=say("looked"),
    )
    report = await carry(bench, script)
    assert report is not None
    assert "limit of 7 steps (setting agents.max_iterations)" in report
    assert len(await nodes(bench)) == 8  # the report is written, too
    assert "- [ ] ccc" in report


async def test_the_limit_holds_across_restarts(bench: Workbench) -> None:
    limit(bench, max_iterations=9)
    await bench.begin("Look for ever.")
    script = Script(
        intake=understood("SINGLE_TASK"),
        plan={"goals": goals("bbb", "ccc")},
        plan_steps=steps(*(("research", f"look {n}") for n in range(6))),
        act=say("looked"),
    )
    for n in (2, 4, 6):
        script.fault_at = n
        with pytest.raises(RuntimeError, match="died"):
            await carry(bench, script)
        await bench.again()
    script.fault_at = None
    assert await carry(bench, script) is not None
    ended = [one.node for one in await load_steps(bench) if one.error is None]
    assert len(ended) == 10


# --- models that answer nonsense, and none at all


@pytest.mark.parametrize("nonsense", ["", "hm", "{}", "[1]", '{"category": "DANCE"}', '{"goals": []}'])
async def test_a_model_that_answers_nonsense_everywhere_still_leads_to_a_report(
    bench: Workbench, nonsense: str
) -> None:
    await store_page(bench.db, "The mill was built in 1924 by Anna Novak.", name="mill.md", scope=PROJECT)
    await bench.begin("Describe the mill.")
    script = Script(**dict.fromkeys(("intake", "plan", "plan_steps", "act", "evaluate", "finalize"), nonsense))
    report = await carry(bench, script)
    assert report is not None
    assert "- [!] Describe the mill." in report
    assert (await state_of(bench.db, bench.run)).state == "completed"


async def test_an_answer_that_is_empty_is_never_taken_for_one(bench: Workbench) -> None:
    await store_page(bench.db, "The mill was built in 1924 by Anna Novak.", name="mill.md", scope=PROJECT)
    await bench.begin("When was the mill built?")
    report = await carry(bench, Script(intake=understood("ADVICE"), respond=""))
    assert report is not None
    assert "No model worked on this request." in report
    assert "built in 1924" in report


@pytest.mark.parametrize(
    ("request_", "category"),
    [
        ("When was the mill built?", "the question would be answered"),
        ("Mend the mill.", "the task would be planned"),
        ("Mend the mill:\n- the roof\n- the walls\n- the wheel", "several goals"),
        ("Design a mill.", "a design would be made"),
    ],
)
async def test_without_a_model_the_report_is_a_template_of_its_category(
    bench: Workbench, request_: str, category: str
) -> None:
    await store_page(bench.db, "The mill was built in 1924 by Anna Novak.", name="mill.md", scope=PROJECT)
    await bench.begin(request_)
    report = await carry(bench, None)
    assert report is not None
    assert "No model worked on this request." in report
    assert "built in 1924" in report
    assert category in report
    assert await nodes(bench) == ["intake", "evidence_pack", "finalize"]


async def test_a_model_that_is_away_is_waited_for(bench: Workbench) -> None:
    await bench.begin("Find it.")
    script = Script(intake=lambda _: Transient("The router is away."))
    with pytest.raises(Transient, match="away"):
        await carry(bench, script)
    assert (await load_steps(bench))[0].error == "The router is away."


# --- interruptions


@pytest.mark.slow
async def test_a_run_that_dies_at_any_call_of_the_model_ends_the_same_and_does_nothing_twice(bench: Workbench) -> None:
    await bench.allow(auto_push=True, recipients=("anna@acme.example",))

    def make() -> Script:
        def work(words: str) -> dict[str, Any]:
            if "Write to anna" in words:
                sent = '"send_mail"' in words
                mail = {"to": ["anna@acme.example"], "subject": f"run {bench.run}", "text": "done"}
                return say("Sent.") if sent else use("send_mail", **mail)
            return say("Mended.") if '"patch_file"' in words else MEND[0]

        return Script(
            intake=understood("SINGLE_TASK", "Mend add and tell anna."),
            plan={"goals": goals("add adds")},
            plan_steps=steps(("code", "Mend add"), ("communicate", "Write to anna")),
            act=work,
        )

    await bench.begin("Mend add in main.py and tell anna@acme.example.")
    calm = make()
    expected = await carry(bench, calm)
    calls = len(calm.order)
    assert len(bench.mail.mails) == 1
    assert calls > 8
    for n in range(calls):
        await bench.begin("Mend add in main.py and tell anna@acme.example.")
        script = make()
        script.fault_at = n
        with pytest.raises(RuntimeError, match="died"):
            await carry(bench, script)
        script.fault_at = None
        await bench.again()
        report = await carry(bench, script)
        assert report is not None
        assert expected is not None
        assert report.split("## Made")[0] == expected.split("## Made")[0], f"died at call {n}"
        assert await states(bench.db, bench.run) == ["done"] * 5, f"died at call {n}"
    assert len(bench.mail.mails) == 1 + calls


async def test_an_interrupted_step_is_shown_as_such(bench: Workbench) -> None:
    await bench.begin("Find it.")
    script = Script(**FULL, act=MEND)
    script.fault_at, script.hangs = 1, True
    work = asyncio.create_task(carry(bench, script))
    await script.reached.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert [one.finished_at is None for one in await load_steps(bench)] == [False, False, True]
    async with bench.db.transaction() as tx:
        await end_lost_steps(tx, bench.run)  # as whoever takes the run over does
    assert (await load_steps(bench))[2].error == "It was interrupted."


async def test_of_a_run_that_is_over_little_is_kept(bench: Workbench) -> None:
    await bench.begin("Find it.")
    script = Script(
        intake=understood("SINGLE_TASK"),
        plan={"goals": goals("it is found")},
        plan_steps=steps(*(("research", f"look {n}") for n in range(4))),
        act=say("looked " * 200),
    )
    await carry(bench, script)
    async with bench.db.reading() as tx:
        size = await measure_checkpoints(tx, bench.run)
    assert size.checkpoints == 1
    assert size.bytes < 20_000


async def test_a_run_stays_in_the_graph_that_it_began_in(bench: Workbench) -> None:
    await bench.begin("Build it.")
    script = Script(
        intake=understood("EPIC", "Build it."),
        plan_epic={"goals": goals("walls")},
        plan_steps=steps(("research", "look")),
        act=say("I have looked."),
    )
    assert await carry(bench, script) is None
    limit(bench, use_delegation_graph=True)
    await bench.again_after(answer(bench.db, bench.run, "approve"))
    report = await carry(bench, script)
    assert report is not None
    assert "- [x] walls" in report


async def test_a_step_in_which_no_tool_did_anything_is_not_done_against_the_word_of_the_model(bench: Workbench) -> None:
    await bench.begin("Mend add in main.py.")
    doubt = {"reason": "Nothing was changed.", "is_done": False}
    report = await carry(bench, Script(**FULL, act=say("I have mended it."), evaluate=doubt))
    assert report is not None
    assert "- [!] add adds" in report
    assert (await nodes(bench)).count("execute_step") == 3


async def test_a_person_who_said_no_is_not_asked_again(bench: Workbench) -> None:
    await bench.begin("Write to Bert.")
    first, second = (
        use("send_mail", to=["bert@acme.example"], subject=subject, text="Dear Bert") for subject in ("Hello", "Hi")
    )
    script = Script(
        intake=understood("SINGLE_TASK"),
        plan={"goals": goals("Bert knows")},
        plan_steps=steps(("communicate", "Write to Bert")),
        act=[first, say("A person did not want it."), second, say("It is sent.")],
    )
    assert await carry(bench, script) is None
    await bench.again_after(answer(bench.db, bench.run, "refuse"))
    report = await carry(bench, script)
    assert report is not None
    assert "- [!] Bert knows" in report
    assert len(await questions(bench.db, bench.run, is_open=False)) == 1
