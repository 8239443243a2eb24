"""An output is judged by what it says and what its calls did; how sure the agent says it is decides nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.agents.delegation.judging import (
    MOST_ASKED,
    MOST_ATTEMPTS,
    Accept,
    AskPerson,
    GiveUp,
    ObservedWork,
    OtherAgent,
    RetryAgent,
    find_problems,
    find_unfounded_claims,
    judge_output,
)
from gristmill.agents.delegation.model import AgentOutput
from gristmill.agents.delegation.protocol import parse_output
from gristmill.agents.tools import PastCall, ToolResult

CHANGING = frozenset({"write_file", "git_commit", "send_mail"})


def say(result: str = "The mill turns.", **more: Any) -> AgentOutput:
    given: dict[str, Any] = {"delegation_id": "d1", "agent_name": "coding", "success": True, "confidence": 0.9, **more}
    return AgentOutput(result=result, **given)


def call(tool: str, *, fails: bool = False, refused: bool = False, text: str = "ok", **arguments: Any) -> PastCall:
    return PastCall(tool, arguments, ToolResult(text, is_error=fails, is_refused=refused))


def work(*calls: PastCall, **more: Any) -> ObservedWork:
    return ObservedWork(calls=calls, changing=CHANGING, **more)


PARTIAL: dict[str, Any] = {"structured_data": {"status": "P", "issues": ["half is missing"]}, "success": False}
FAILED: dict[str, Any] = {"structured_data": {"status": "0", "issues": ["no stone"]}, "success": False}
CHANGED: dict[str, Any] = {"changed_files": ["main.py"]}

VERDICTS: dict[str, tuple[AgentOutput, ObservedWork, dict[str, Any], object]] = {
    "all is well": (say(), work(), {}, Accept()),
    "it needs to be verified, and changed nothing": (
        say(needs_verification=True),
        work(),
        {},
        Accept(("It needs to be verified.",)),
    ),
    "it failed for the first time": (say(**FAILED), work(), {}, RetryAgent(("It reports failure: no stone",))),
    "it failed twice, and another agent is there": (
        say(**FAILED),
        work(),
        {"attempts": 2, "others": ["git", "test"]},
        OtherAgent("git", ("It reports failure: no stone",)),
    ),
    "it failed twice, and nobody else is there": (
        say(**FAILED),
        work(),
        {"attempts": 2},
        AskPerson("coding did not manage d1: It reports failure: no stone"),
    ),
    "it failed after it had changed something": (
        say(**FAILED),
        work(**CHANGED),
        {"attempts": 2, "others": ["git"]},
        AskPerson("coding did not manage d1: It reports failure: no stone"),
    ),
    "a person was asked often enough": (
        say(**FAILED),
        work(),
        {"attempts": 2, "asked": MOST_ASKED},
        GiveUp(("It reports failure: no stone",)),
    ),
    "a part is tried again": (say(**PARTIAL), work(), {}, RetryAgent(("It is done in part only. half is missing",))),
    "a part is better than nothing": (
        say(**PARTIAL),
        work(),
        {"attempts": 2, "others": ["git"]},
        Accept(("It is done in part only. half is missing",)),
    ),
    "an empty result": (say("  "), work(), {}, RetryAgent(("Its result is empty.",))),
    "it follows no form": (
        parse_output("Just words.", delegation_id="d1", agent_name="coding"),
        work(),
        {"attempts": 2},
        Accept(("The answer does not follow the form: it names neither STATUS nor RESULT.",)),
    ),
    "its rounds ran out": (
        say(),
        work(is_complete=False),
        {"attempts": 2},
        Accept(("Its rounds ran out before it was done.",)),
    ),
    "its own check complains": (say(), work(complaints=["No test was run."]), {}, RetryAgent(("No test was run.",))),
    "every call failed": (
        say(),
        work(call("read_file", fails=True, text="There is no such file.\nReally.")),
        {},
        RetryAgent(("Every call of it failed, the last one by: There is no such file.",)),
    ),
    "a change failed, and it says that all is well": (
        say(),
        work(call("read_file"), call("write_file", fails=True, text="The policy forbids it.")),
        {},
        RetryAgent(("It reports success, but write_file failed: The policy forbids it.",)),
    ),
    "a change failed first and was made then": (
        say(),
        work(call("write_file", fails=True), call("write_file")),
        {},
        Accept(),
    ),
    "a person said no, and the agent says so": (
        say("Nothing was sent.", **FAILED),
        work(call("send_mail", fails=True, refused=True, text="anna said no: not now.")),
        {},
        Accept(("It reports failure: no stone",)),
    ),
    "a person said no, and the agent says that it is done": (
        say("I sent the mail."),
        work(call("send_mail", fails=True, refused=True, text="anna said no.")),
        {"attempts": 2, "others": ["git"]},
        GiveUp(("It says “I sent the mail.”, but none of its calls did that.",)),
    ),
    "something could not be read, and was found elsewhere": (
        say(),
        work(call("read_file", fails=True), call("search_files")),
        {},
        Accept(),
    ),
}


@pytest.mark.parametrize(("output", "seen", "more", "verdict"), VERDICTS.values(), ids=VERDICTS.keys())
def test_what_happens_with_an_output(
    output: AgentOutput, seen: ObservedWork, more: dict[str, Any], verdict: object
) -> None:
    more.setdefault("attempts", 1)
    assert judge_output(output, seen, **more) == verdict


def test_work_that_asks_to_be_verified_is_shown_to_a_person_once() -> None:
    output, seen = say(needs_verification=True), work(**CHANGED)
    verdict = judge_output(output, seen, attempts=1)
    assert isinstance(verdict, AskPerson)
    assert "It changed: main.py." in verdict.sentence
    assert isinstance(judge_output(output, seen, attempts=1, asked=1), Accept)


CLAIMS = {
    "I sent the mail to Anna.": "send_mail",
    "Sent an email to anna@acme.example.": "send_mail",
    "I have committed the change as agent/fix.": "git_commit",
    "Committed and pushed.": "git_commit",
    "I've pushed the branch.": "git_push",
    "I created an issue for it.": "create_issue",
    "We closed the ticket MILL-4.": "move_issue",
    "I updated the wiki page.": "update_page",
    "I successfully modified the file main.py.": "patch_file",
    "- Fixed the function add.": "write_file",
    "1. I ran the tests.": "run_tests",
    "All 12 tests pass.": "run_tests",
    "I scheduled a meeting for Monday.": "add_event",
}


@pytest.mark.parametrize(("sentence", "tool"), CLAIMS.items())
def test_a_deed_that_no_call_did_is_no_deed(sentence: str, tool: str) -> None:
    (found,) = find_unfounded_claims(say(sentence), work(call("search_knowledge")))
    assert "none of its calls did that" in found
    assert find_unfounded_claims(say(sentence), work(call(tool, fails=True)))
    if sentence != "Committed and pushed.":
        assert find_unfounded_claims(say(sentence), work(call(tool))) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "Margaret Oakes sent the mail on 12 January.",
        "The contract was sent by mail.",
        "I did not send the mail.",
        "I have not committed anything.",
        "I could have pushed the branch.",
        "Nothing was changed in the file.",
        "The tests are in tests/agents.",
        "She closed the ticket last week.",
        "I found two files that were changed in May.",
    ],
)
def test_what_others_did_is_no_claim_of_the_agent(sentence: str) -> None:
    assert find_unfounded_claims(say(sentence), work()) == []


def test_a_helper_may_have_done_what_an_agent_reports() -> None:
    assert find_unfounded_claims(say("I sent the mail.", sub_delegations=["d1.1"]), work()) == []


@pytest.mark.parametrize(
    ("artifact", "seen", "is_known"),
    [
        ("main.py", work(changed_files=["main.py"]), True),
        ("./main.py", work(changed_files=["main.py"]), True),
        ("commit 3f2a91c", work(artifacts=["commit 3f2a91c00d"]), True),
        ("3f2a91c", work(call("git_log", text="3f2a91c Begin")), True),
        ("src/mill.py (new)", work(call("write_file", path="src/mill.py")), True),
        ("src/mill.py", work(call("write_file", fails=True, path="src/mill.py")), False),
        ("backdoor.sh", work(changed_files=["main.py"]), False),
        ("3f2a91c", work(), False),
        ("a summary of the contract", work(), True),
    ],
)
def test_an_artifact_was_made_or_seen_by_a_call(artifact: str, seen: ObservedWork, is_known: bool) -> None:
    assert (find_unfounded_claims(say(artifacts=[artifact]), seen) == []) is is_known


OUTPUTS = st.sampled_from([one for one, *_ in VERDICTS.values()])
WORKS = st.sampled_from([seen for _, seen, *_ in VERDICTS.values()])


@given(
    OUTPUTS,
    WORKS,
    st.floats(0, 1),
    st.integers(1, 4),
    st.lists(st.sampled_from(["git"]), max_size=1),
    st.integers(0, 4),
)
def test_confidence_decides_nothing(
    output: AgentOutput, seen: ObservedWork, confidence: float, attempts: int, others: list[str], asked: int
) -> None:
    other = output.model_copy(update={"confidence": confidence})
    given: dict[str, Any] = {"attempts": attempts, "others": others, "asked": asked}
    assert judge_output(output, seen, **given) == judge_output(other, seen, **given)


@given(OUTPUTS, WORKS, st.integers(0, 4))
def test_every_output_comes_to_an_end(output: AgentOutput, seen: ObservedWork, asked: int) -> None:
    """Each verdict uses something up: attempts, agents, questions."""
    attempts, others, steps = 1, ["git", "test"], 0
    while not isinstance(
        verdict := judge_output(output, seen, attempts=attempts, others=others, asked=asked), Accept | GiveUp
    ):
        steps += 1
        assert steps < 4 * (MOST_ATTEMPTS + MOST_ASKED)
        match verdict:
            case RetryAgent():
                attempts += 1
            case OtherAgent(agent=agent):
                others.remove(agent)
                attempts = 1
            case AskPerson():
                asked += 1
                attempts = 1
    if isinstance(verdict, Accept):
        assert all(one.is_mild for one in find_problems(output, seen))
