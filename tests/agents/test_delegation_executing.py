"""Delegations are tried, judged and settled once, whoever is killed between."""

import asyncio
import gc
from typing import Any

import pytest
from delegating import AGENTS, look, make_agent, message, open_handle, report, script, use
from desk_work import answer, questions, state_of, states, take_again
from workbench import Workbench

from gristmill.agents.budgets import find_fenced
from gristmill.agents.delegation.briefing import describe_task, make_brief, summarise
from gristmill.agents.delegation.executing import MOST_PARTS, Delegator
from gristmill.agents.delegation.model import AgentOutput, DelegationStatus, get_budget
from gristmill.agents.delegation.store import Delegation, list_agent_metrics
from gristmill.agents.letters import TidyRuns
from gristmill.agents.runs import WaitingForUser, list_steps
from gristmill.agents.upkeep import tidy_runs
from gristmill.errors import LeaseLost, Transient
from gristmill.models import FakeEmbedder, FakeLlm

PATCH = use("patch_file", path="main.py", old="a - b", new="a + b")
MENDED = report("I mended the function add.", artifacts="main.py")


async def carry(bench: Workbench, scripted: Any, *group: Any, **flags: Any) -> list[Delegation]:
    handle = open_handle(bench, scripted, **flags)
    return await Delegator(handle, AGENTS).carry_group(group or [message()], {})


async def test_an_agent_does_its_delegation_and_its_full_output_is_stored(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    (done,) = await carry(bench, script(coding=[PATCH, MENDED]))
    assert (done.state, done.success, done.attempts) == ("completed", True, 0)
    output = done.read_output()
    assert output is not None
    assert output.changed_files == output.artifacts == ["main.py"]
    assert done.summary.startswith("d1 (coding), done: I mended the function add.")
    assert (done.calls, done.tokens > 0) == (2, True)
    assert "return a + b" in (bench.folder / "main.py").read_text()


async def test_a_delegation_is_a_step_with_what_went_in_and_what_came_out(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    handle = open_handle(bench, script(coding=[PATCH, MENDED]))
    async with handle.step("execute_delegation") as outer:
        await Delegator(handle, AGENTS).carry_group([message()], {}, outer.id)
    async with bench.db.reading() as tx:
        steps = await list_steps(tx, bench.run)
    (step,) = [one for one in steps if one.node == "delegation"]
    assert step.parent == outer.id
    assert step.title == "d1 coding: Mend add."
    assert step.input["attempt"] == 1
    assert step.output["output"]["result"] == "I mended the function add."
    assert step.calls == 2


async def test_effects_have_the_id_of_their_delegation_as_key(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    await carry(bench, script(coding=[PATCH, MENDED]))
    rows = await bench.ledger.list_calls("delegation d1")
    assert [one.key for one in rows] == ["delegation d1#0"]


async def test_what_is_over_is_not_done_again(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    (first,) = await carry(bench, script(coding=[PATCH, MENDED]))
    await bench.again()
    (again,) = await carry(bench, FakeLlm([]))  # a model that must not be asked
    assert again == first


async def test_an_attempt_that_is_not_good_enough_is_made_again_with_the_complaint(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    scripted = script(coding=[report("I changed the file main.py."), PATCH, MENDED])
    llm = scripted.make_llm()
    (done,) = await carry(bench, llm)
    assert done.success
    assert "none of its calls did that" in llm.questions[1]


async def test_a_second_attempt_is_told_what_the_first_one_did_and_does_nothing_twice(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    llm = script(coding=[PATCH, report("", "1"), MENDED]).make_llm()
    (done,) = await carry(bench, llm)
    assert done.success
    assert "patch_file" in llm.questions[2].split("Your tools:")[1].split("The task:")[1]
    assert await states(bench.db, bench.run) == ["done"]


async def test_another_agent_of_the_domain_takes_over_what_one_did_not_manage(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    failed = report("I cannot.", "0", issues="no idea")
    scripted = script(git=failed, coding=[PATCH, MENDED])
    (done,) = await carry(bench, scripted, message(agent="git"))
    assert (done.agent, done.tried, done.success) == ("coding", ["git"], True)
    assert scripted.asked == ["You are git."] * 2 + ["You are coding."] * 2
    assert [one.key for one in await bench.ledger.list_calls("delegation d1~coding")] == ["delegation d1~coding#0"]


async def test_a_person_is_asked_when_nobody_manages_it_and_may_leave_it_out(bench: Workbench) -> None:
    await bench.begin("Write to Anna.")
    failed = report("I cannot.", "0", issues="no address")
    with pytest.raises(WaitingForUser):
        await carry(bench, script(email=failed), message(agent="email"))
    (question,) = await questions(bench.db, bench.run)
    assert "no address" in question.sentence
    assert (await look(bench))["d1"].state == "interrupted"
    await answer(bench.db, bench.run, "leave it out")
    await bench.again()
    (done,) = await carry(bench, FakeLlm([]), message(agent="email"))
    assert (done.state, done.success) == ("failed", False)
    assert "anna left it out." in done.summary


async def test_what_a_person_says_is_told_to_the_agent_that_tries_again(bench: Workbench) -> None:
    await bench.begin("Write to Anna.")
    failed = report("I cannot.", "0", issues="no address")
    with pytest.raises(WaitingForUser):
        await carry(bench, script(email=failed), message(agent="email"))
    await answer(bench.db, bench.run, "try again", "Nothing need be sent: it is enough to say so.")
    await bench.again()
    llm = script(email=report("There is nothing to send.")).make_llm()
    (done,) = await carry(bench, llm, message(agent="email"))
    assert done.success
    assert "it is enough to say so" in llm.questions[0]


def write(*names: str) -> list[Any]:
    return [use("write_file", path=name, text=name) for name in names]


UNSURE = report("I wrote the files.", needs_verification="true")
BROKEN = report("I could not write all of them.", "0", issues="the disk is full")
LATER = [*write("g.txt"), report("I wrote the file g.txt, too.", artifacts="g.txt")]


@pytest.mark.parametrize(
    "before",
    [
        [*write(*(f"{n}.txt" for n in range(11))), UNSURE],
        [*write(*(f"{n}.txt" for n in range(6))), BROKEN, *write(*(f"{n}.md" for n in range(6))), BROKEN],
    ],
    ids=["asks to be verified", "failed twice"],
)
async def test_who_is_let_to_try_again_by_a_person_has_all_rounds_for_it(bench: Workbench, before: list[Any]) -> None:
    await bench.begin("Write the files.")
    with pytest.raises(WaitingForUser):
        await carry(bench, script(coding=before))
    written = len(await bench.ledger.list_calls("delegation d1"))
    await answer(bench.db, bench.run, "try again", "Write g.txt, too.")
    await bench.again()
    llm = script(coding=LATER).make_llm()
    (done,) = await carry(bench, llm)
    assert "This is the last round" not in llm.questions[0]
    assert (bench.folder / "g.txt").read_text() == "g.txt"
    assert done.success
    keys = [one.key for one in await bench.ledger.list_calls("delegation d1")]
    assert keys == [f"delegation d1#{n}" for n in range(written + 1)], "the same place, and the next number"


async def test_rounds_of_a_second_try_count_across_a_kill(bench: Workbench) -> None:
    await bench.begin("Write the files.")
    with pytest.raises(WaitingForUser):
        await carry(bench, script(coding=[*write("0.txt", "1.txt"), UNSURE]), max_rounds=4)
    await answer(bench.db, bench.run, "try again", "Write g.txt, too.")
    await bench.again()
    with pytest.raises(Transient):
        await carry(bench, script(coding=[*write("g.txt", "h.txt"), Transient("gone")]), max_rounds=4)
    await bench.again()
    llm = script(coding=[*write("i.txt"), report("I wrote the files.")]).make_llm()
    await carry(bench, llm, max_rounds=4)
    assert ["This is the last round" in one for one in llm.questions[:2]] == [False, True]
    assert await states(bench.db, bench.run) == ["done"] * 5


async def test_the_words_of_a_person_are_an_order_and_stay_one_in_the_attempt_after(bench: Workbench) -> None:
    await bench.begin("Write the files.")
    with pytest.raises(WaitingForUser):
        await carry(bench, script(coding=[*write("0.txt"), UNSURE]))
    await answer(bench.db, bench.run, "try again", "Write g.txt, too.")
    await bench.again()
    llm = script(coding=[report("", "1"), *LATER]).make_llm()
    (done,) = await carry(bench, llm)
    assert done.success
    for asked in llm.questions[:2]:
        task = asked.partition("The task:")[2].partition("What is known:")[0]
        fenced = "".join(task[one.begin : one.end] for one in find_fenced(task))
        assert "A person said: Write g.txt, too." in task
        assert "g.txt" not in fenced
    assert "Its result is empty." in llm.questions[1] or "without a RESULT" in llm.questions[1]


async def test_a_call_from_before_comes_to_its_end_although_its_tool_is_not_offered_any_more(bench: Workbench) -> None:
    agents = {"writer": make_agent("writer", "write_document", "write_file")}
    group = [message(agent="writer", task="Write the report.")]
    await bench.begin("Write the report.")
    keep = use("write_document", title="Report", text="All is well with the mill.")
    scripted = script(writer=[keep, report("I wrote the document.", needs_verification="true")])
    with pytest.raises(WaitingForUser):
        await Delegator(open_handle(bench, scripted), agents).carry_group(group, {})
    await answer(bench.db, bench.run, "try again", "Put it into report.md, too.")
    await bench.again()
    write_it = use("write_file", path="report.md", text="All is well.")
    llm = script(writer=[write_it, report("I wrote the file report.md.")]).make_llm()
    (done,) = await Delegator(open_handle(bench, llm), agents).carry_group(group, {})
    assert done.success
    assert "write_document(" not in llm.questions[0], "where a file is named, no document is offered"
    assert "There is no tool" not in llm.questions[0]
    assert "result of write_document" in llm.questions[0]


async def test_work_that_asks_to_be_verified_is_accepted_by_a_person(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    unsure = report("I mended the function add.", needs_verification="true")
    with pytest.raises(WaitingForUser):
        await carry(bench, script(coding=[PATCH, unsure]))
    await answer(bench.db, bench.run, "accept")
    await bench.again()
    (done,) = await carry(bench, FakeLlm([]))
    assert done.success


@pytest.mark.parametrize("nonsense", ["", "hm", "{}", {"thought": "x"}, '{"thought": "x", "move": {"tool": "fly"}}'])
async def test_a_model_that_never_answers_in_the_form_ends_as_a_question(bench: Workbench, nonsense: Any) -> None:
    await bench.begin("Write to Anna.")
    with pytest.raises(WaitingForUser):
        await carry(bench, script(email=nonsense), message(agent="email"))
    (question,) = await questions(bench.db, bench.run)
    assert "no answer that could be used" in question.sentence


async def test_an_agents_own_check_counts(bench: Workbench) -> None:
    await bench.begin("Mend add.")

    def want_tests(output: AgentOutput, acted: Any) -> list[str]:
        return [] if "tests" in output.result else ["Say something about tests."]

    agents = {"coding": make_agent("coding", check=want_tests)}
    llm = script(coding=[report("Nothing to do."), report("There are no tests.")]).make_llm()
    (done,) = await Delegator(open_handle(bench, llm), agents).carry_group([message()], {})
    assert done.success
    assert "Say something about tests." in llm.questions[1]


async def test_a_member_that_ends_the_run_leaves_no_other_half_begun(bench: Workbench) -> None:
    await bench.begin("Look.")
    group = [message("d1", "coding"), message("d2", "git")]
    with pytest.raises(Transient):
        await carry(bench, script(coding=Transient("gone"), git=report("There is main.")), *group)
    gc.collect()  # a coroutine that nobody awaited would complain here
    assert list(await look(bench)) == ["d1"]


# --- side by side


class Meeting(FakeLlm):
    """Answers when this many agents have asked: one after another, two would never be answered."""

    def __init__(self, replies: Any, agents: int) -> None:
        super().__init__(replies)
        self._barrier = asyncio.Barrier(agents)
        self.running = self.most = 0

    async def ask_text(self, question: Any, **more: Any) -> str:
        self.running += 1
        self.most = max(self.most, self.running)
        async with asyncio.timeout(30):
            await self._barrier.wait()
        self.running -= 1
        return await super().ask_text(question, **more)


@pytest.mark.parametrize(("side_by_side", "agents"), [(False, 1), (True, 3)])
async def test_members_of_a_group_run_side_by_side_only_if_the_settings_say_so(
    bench: Workbench, side_by_side: bool, agents: int
) -> None:
    await bench.begin("Look.")
    scripted = script(coding=report("Nothing."), git=report("Nothing."), test=report("Nothing."))
    llm = Meeting(scripted.answer, agents)
    group = [message("d1"), message("d2", "git"), message("d3", "test")]
    done = await carry(bench, llm, *group, use_dag_execution=side_by_side)
    assert llm.most == agents
    assert [one.delegation for one in done] == ["d1", "d2", "d3"]


@pytest.mark.parametrize("side_by_side", [False, True])
async def test_one_that_waits_for_a_person_stops_no_other(bench: Workbench, side_by_side: bool) -> None:
    await bench.begin("Send the figures to anna@acme.example, and mend add.")
    mail = use("send_mail", to=["anna@acme.example"], subject="Figures", text="42")
    group = [message("d1", "email", "Send."), message("d2")]
    scripted = script(email=[mail, report("I sent the mail.")], coding=[PATCH, MENDED])
    with pytest.raises(WaitingForUser):
        await carry(bench, scripted, *group, use_dag_execution=side_by_side)
    assert {id_: one.state for id_, one in (await look(bench)).items()} == {"d1": "interrupted", "d2": "completed"}
    await answer(bench.db, bench.run, "approve")
    await bench.again()
    again = script(email=[report("I sent the mail.")])  # d2 is not asked again
    done = await carry(bench, again, *group, use_dag_execution=side_by_side)
    assert [one.success for one in done] == [True, True]
    assert len(bench.mail.mails) == 1


@pytest.mark.parametrize("side_by_side", [False, True])
async def test_an_error_of_the_world_leaves_what_is_done_and_the_rest_for_the_next_worker(
    bench: Workbench, side_by_side: bool
) -> None:
    await bench.begin("Look.")
    group = [message("d1"), message("d2", "git")]
    scripted = script(coding=[PATCH, MENDED], git=Transient("The router is away."))
    with pytest.raises(Transient):
        await carry(bench, scripted, *group, use_dag_execution=side_by_side)
    await bench.again()
    scripted = script(git=report("Nothing to commit."))
    done = await carry(bench, scripted, *group, use_dag_execution=side_by_side)
    assert [one.success for one in done] == [True, True]
    assert set(scripted.asked) == {"You are git."}


async def test_a_worker_that_lost_the_run_settles_nothing(bench: Workbench) -> None:
    await bench.begin("Mend add.")

    async def lose() -> None:
        await take_again(bench.db, bench.run)

    class Losing(FakeLlm):
        async def ask_text(self, question: Any, **more: Any) -> str:
            await lose()
            return await super().ask_text(question, **more)

    with pytest.raises(LeaseLost):
        await carry(bench, Losing(script(coding=report("Nothing.")).answer))
    assert (await look(bench))["d1"].state == "running"


# --- below


async def test_an_agent_gives_a_part_to_another_and_sees_a_summary(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    long = "The mill turns. " * 2_000
    llm = script(
        coding=[use("delegate", agent="research", task="Find out about add."), report("It is all known now.")],
        research=report(long),
    ).make_llm()
    (done,) = await carry(bench, llm)
    part = (await look(bench))["d1.1"]
    assert (part.agent, part.depth, part.parent) == ("research", 2, "d1")
    output = part.read_output()
    assert output is not None
    assert output.result == long.strip()  # stored in full …
    assert "tokens were left out here" in llm.questions[2]  # … and its parent sees a summary
    assert (done.parts, done.read_output().sub_delegations) == (1, ["d1.1"])  # pyright: ignore[reportOptionalMemberAccess]
    async with bench.db.reading() as tx:
        steps = [one for one in await list_steps(tx, bench.run) if one.node == "delegation"]
    assert steps[1].parent == steps[0].id


async def test_what_was_read_is_read_again_after_a_helper_was_at_work(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    read = use("read_file", path="main.py")
    part = use("delegate", agent="coding", task="Mend add.")
    llm = script(test=[read, part, read, report("It adds.")], coding=[PATCH, MENDED]).make_llm()
    (done,) = await carry(bench, llm, message(agent="test", task="See to it that add works."))
    assert done.success
    assert "return a + b" in llm.questions[-1]
    assert "made this call before" not in llm.questions[-1]


async def test_only_agents_that_may_delegate_are_told_how(bench: Workbench) -> None:
    await bench.begin("Look.")
    llm = script(git=report("Nothing."), coding=report("Nothing.")).make_llm()
    await carry(bench, llm, message("d1"), message("d2", "git"))
    assert "- delegate(agent, task)" in llm.questions[0]
    assert "delegate(" not in llm.questions[1]


async def test_delegations_are_four_deep_at_most_and_no_agent_stands_twice_on_a_stack(bench: Workbench) -> None:
    await bench.begin("Look.")
    names = ["one", "two", "three", "four", "five"]
    agents = {name: make_agent(name, can_sub_delegate=True) for name in names}
    told: dict[str, str] = {}

    def go_down(words: str) -> Any:
        who = next(name for name in names if f"You are {name}." in words)
        told.setdefault(who, words)
        if "result of delegate" in words or "delegate(" not in words:
            return report(f"{who} is here.")
        return use("delegate", agent=names[names.index(who) + 1], task=f"Go below {who}.")

    handle = open_handle(bench, FakeLlm(go_down))
    (done,) = await Delegator(handle, agents).carry_group([message(agent="one")], {})
    assert done.success
    assert [(id_, one.depth) for id_, one in sorted((await look(bench)).items())] == [
        ("d1", 1),
        ("d1.1", 2),
        ("d1.1.1", 3),
        ("d1.1.1.1", 4),
    ]
    offered = told["three"].split("- delegate(")[1].split("\n")[0]
    assert [name for name in names if f"{name}: Does" in offered] == ["four", "five"]
    assert "delegate(" not in told["four"]


async def test_a_part_that_was_done_before_a_kill_is_not_done_again(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    part = use("delegate", agent="git", task="Look at the  branches.")
    with pytest.raises(Transient):
        await carry(bench, script(coding=[part, Transient("gone")], git=report("There is main.")))
    await bench.again()
    llm = script(
        coding=[use("delegate", agent="git", task="look at the branches."), report("There is main.")]
    ).make_llm()
    (done,) = await carry(bench, llm)  # nobody asks git again
    assert done.success
    assert "There is main." in llm.questions[0]
    assert list(await look(bench)) == ["d1", "d1.1"]


async def test_a_part_that_sent_a_mail_and_is_worded_anew_after_a_kill_is_asked_about(bench: Workbench) -> None:
    await bench.allow(recipients=("anna@acme.example",))
    await bench.begin("Send the figures to anna@acme.example.")
    mail = use("send_mail", to=["anna@acme.example"], subject="Figures", text="42")
    part = use("delegate", agent="email", task="Send the figures.")
    with pytest.raises(Transient):
        await carry(bench, script(coding=[part, Transient("gone")], email=[mail, report("I sent the mail.")]))
    await bench.again()
    anew = use("delegate", agent="email", task="Please mail the figures to Anna.")
    llm = script(coding=[anew, report("It is sent.")], email=[mail, report("I sent the mail.")]).make_llm()
    with pytest.raises(WaitingForUser):
        await carry(bench, llm)
    assert '"task":"Send the figures."' in llm.questions[0], "it is told of the call that it made"
    (question,) = await questions(bench.db, bench.run)
    assert "“Send the figures.”" in question.sentence
    assert "“Please mail the figures to Anna.”" in question.sentence
    await answer(bench.db, bench.run, "refuse")
    await bench.again()
    (done,) = await carry(bench, script(coding=[anew, report("It is sent.")]))
    assert done.success
    assert len(bench.mail.mails) == 1


async def test_nobody_repeats_what_a_helper_has_done_outside_without_a_person(bench: Workbench) -> None:
    await bench.allow(recipients=("bob@acme.example",))
    await bench.begin("Tell Bob.")
    mail = use("send_mail", to=["bob@acme.example"], subject="Invoice", text="Please pay it.")
    agents = {**AGENTS, "general": make_agent("general", "send_mail", domains=())}
    failed = report("", "0", issues="odd")
    scripted = script(
        coding=[use("delegate", agent="email", task="Tell Bob."), failed, failed],
        email=[mail, report("Bob was told.")],
        general=[mail, report("Bob was told.")],
    )
    with pytest.raises(WaitingForUser):
        await Delegator(open_handle(bench, scripted), agents).carry_group([message(task="Tell Bob.")], {})
    (question,) = await questions(bench.db, bench.run)
    assert question.sentence.startswith("coding did not manage d1: ")
    assert len(bench.mail.mails) == 1


async def test_a_part_that_was_interrupted_comes_to_its_end_first(bench: Workbench) -> None:
    await bench.begin("Send the figures to anna@acme.example.")
    mail = use("send_mail", to=["anna@acme.example"], subject="Figures", text="42")
    part = use("delegate", agent="email", task="Send the figures.")
    with pytest.raises(WaitingForUser):
        await carry(bench, script(coding=part, email=mail))
    await answer(bench.db, bench.run, "approve")
    await bench.again()
    (done,) = await carry(bench, script(coding=report("It is sent."), email=report("I sent the mail.")))
    assert done.success
    assert len(bench.mail.mails) == 1
    assert (await look(bench))["d1.1"].success


async def test_an_agent_cannot_give_everything_away(bench: Workbench) -> None:
    await bench.begin("Look.")
    parts = [use("delegate", agent="git", task=f"Part {n}.") for n in range(MOST_PARTS + 1)]
    llm = script(coding=[*parts, report("That is all.")], git=report("Yes.")).make_llm()
    (done,) = await carry(bench, llm)
    assert done.parts == MOST_PARTS
    assert "do the rest yourself" in llm.questions[-1]


async def test_a_part_that_waits_for_a_person_lets_all_above_it_wait(bench: Workbench) -> None:
    await bench.begin("Send the figures to anna@acme.example.")
    mail = use("send_mail", to=["anna@acme.example"], subject="Figures", text="42")
    part = use("delegate", agent="email", task="Send the figures.")
    with pytest.raises(WaitingForUser):
        await carry(bench, script(coding=part, email=mail))
    assert {one.state for one in (await look(bench)).values()} == {"interrupted"}
    await answer(bench.db, bench.run, "approve")
    await bench.again()
    (done,) = await carry(bench, script(coding=[part, report("It is sent.")], email=report("I sent the mail.")))
    assert done.success
    assert len(bench.mail.mails) == 1


# --- budgets and words


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
async def test_a_prompt_keeps_the_budget_of_its_depth(bench: Workbench, depth: int) -> None:
    await bench.begin("Look.")
    llm = script(git=report("Nothing.")).make_llm()
    handle = open_handle(bench, llm, prompt_tokens=48_000)
    known = "something that is known " * 30_000
    await Delegator(handle, AGENTS, known).carry(message(agent="git", depth=depth))
    assert get_budget(depth) * 0.5 < len(llm.questions[0].split()) <= get_budget(depth)


def test_a_task_says_what_is_expected_and_what_was_wrong() -> None:
    words = describe_task(message(expected_output="a number", constraints=["short"]), ["It was empty."])
    assert words.startswith("Mend add.\nExpected: a number\nKeep to this: short\n")
    assert "It was empty." in words


def test_a_summary_says_how_it_ended() -> None:
    output = AgentOutput(
        delegation_id="d1", agent_name="git", success=False, result="Half.", structured_data={"status": "P"}
    )
    assert summarise(output, DelegationStatus.COMPLETED, ["half is missing"]) == (
        "d1 (git), done in part: Half.\nIssues: half is missing"
    )
    assert summarise(output, DelegationStatus.FAILED).startswith("d1 (git), failed")


async def test_code_is_asked_for_with_the_priority_of_code(bench: Workbench) -> None:
    await bench.begin("Look.")
    await carry(
        bench, script(coding=report("Nothing."), research=report("Nothing.")), message("d1"), message("d2", "research")
    )
    rows, handle = await look(bench), open_handle(bench, None)
    assert make_brief(message("d1"), rows["d1"], AGENTS["coding"], handle, []).coding
    assert not make_brief(message("d2"), rows["d2"], AGENTS["research"], handle, []).coding


# --- figures


async def test_the_figures_of_each_agent_are_added_up(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    part = use("delegate", agent="git", task="Look.")
    scripted = script(coding=[part, PATCH, MENDED], git=report("There is main."))
    await carry(bench, scripted, message("d1"), message("d2", "git", "Look."))
    async with bench.db.reading() as tx:
        coding, git = await list_agent_metrics(tx)
    assert (coding.agent, coding.delegations, coding.succeeded, coding.parts, coding.calls) == ("coding", 1, 1, 1, 3)
    assert (git.agent, git.delegations, git.succeeded, git.failed) == ("git", 2, 2, 0)
    row = (await look(bench))["d1"]
    assert (row.calls, row.parts, row.success) == (3, 1, True)
    assert row.finished_at is not None


async def test_figures_are_kept_for_ninety_days_after_which_only_open_runs_keep_theirs(bench: Workbench) -> None:
    await bench.begin("Mend add.")
    await carry(bench, script(coding=[PATCH, MENDED]))
    async with bench.db.transaction() as tx:
        await tx.execute("UPDATE agent_delegation SET started_at = clock() - interval '91 days'")
    await tidy_runs(TidyRuns(), db=bench.db, settings=bench.settings, embedders=FakeEmbedder())
    assert list(await look(bench)) == ["d1"]
    assert (await state_of(bench.db, bench.run)).state == "running"
    async with bench.db.transaction() as tx:
        await tx.execute("UPDATE agent_run SET state = 'completed', report = 'x', finished_at = clock()")
    await tidy_runs(TidyRuns(), db=bench.db, settings=bench.settings, embedders=FakeEmbedder())
    assert await look(bench) == {}
