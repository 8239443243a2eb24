"""The answers of agents are read in whatever form a model writes them; nothing that a model says raises an error."""

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gristmill.agents.delegation.forms import LABELS
from gristmill.agents.delegation.model import AgentOutput
from gristmill.agents.delegation.protocol import (
    PROTOCOL,
    fail_output,
    parse_output,
    read_confidence,
    read_flag,
    read_list,
)

PLAIN = """STATUS: 1
RESULT: The mill turns.
ARTIFACTS: main.py, 3f2a91c
ISSUES: none
CONFIDENCE: 0.9
NEEDS_VERIFICATION: false"""


def parse(text: str) -> AgentOutput:
    return parse_output(text, delegation_id="d1", agent_name="research")


def look(text: str) -> dict[str, Any]:
    read = parse(text)
    return {
        "status": read.structured_data["status"],
        "result": read.result,
        "artifacts": read.artifacts,
        "issues": read.issues,
        "confidence": read.confidence,
        "needs_verification": read.needs_verification,
    }


EXPECTED = {
    "status": "1",
    "result": "The mill turns.",
    "artifacts": ["main.py", "3f2a91c"],
    "issues": [],
    "confidence": 0.9,
    "needs_verification": False,
}
SAME = {
    "as it was asked for": PLAIN,
    "lower case": PLAIN.lower().replace("the mill", "The mill"),
    "another order": "\n".join(reversed(PLAIN.splitlines())),
    "bold": "\n".join(f"**{line.partition(':')[0]}:** {line.partition(':')[2].strip()}" for line in PLAIN.splitlines()),
    "bold with the colon outside": PLAIN.replace(":", "**:").replace("\n", "\n**").replace("STATUS", "**STATUS", 1),
    "a list": "\n".join(f"- {line}" for line in PLAIN.splitlines()),
    "headings": "\n".join(f"## {line}" for line in PLAIN.splitlines()),
    "a quotation": "\n".join(f"> {line}" for line in PLAIN.splitlines()),
    "a fence": f"```\n{PLAIN}\n```",
    "a fence with words around it": f"Here is my answer:\n\n```text\n{PLAIN}\n```\nI hope that it helps.",
    "an unclosed fence": f"```\n{PLAIN}",
    "thoughts before it": f"<think>STATUS: 0, or not?\nRESULT: hm</think>\n{PLAIN}",
    "values on the next line": PLAIN.replace(": ", ":\n"),
    "one line": PLAIN.replace("\n", " "),
    "one line with bars": PLAIN.replace("\n", " | "),
    "carriage returns": PLAIN.replace("\n", "\r\n"),
    "equals signs": PLAIN.replace(": ", " = "),
    "full-width colons": PLAIN.replace(": ", "："),
    "a decimal comma": PLAIN.replace("0.9", "0,9"),
    "percent": PLAIN.replace("0.9", "90 %"),
    "of ten": PLAIN.replace("0.9", "9/10"),
    "words instead of figures": PLAIN.replace("STATUS: 1", "STATUS: success").replace("0.9", "high"),
    "an explanation behind a figure": PLAIN.replace("STATUS: 1", "STATUS: 1 (success)"),
    "another language": PLAIN.replace("STATUS: 1", "STATUS: erledigt")
    .replace("false", "nein")
    .replace("none", "keine"),
    "blanks in the label": PLAIN.replace("NEEDS_VERIFICATION", "Needs verification"),
    "a list of artifacts": PLAIN.replace("main.py, 3f2a91c", "\n- `main.py`\n- 3f2a91c"),
    "an array of artifacts": PLAIN.replace("main.py, 3f2a91c", '["main.py", "3f2a91c"]'),
    "a numbered list": "\n".join(f"{n}. {line}" for n, line in enumerate(PLAIN.splitlines(), 1)),
    "courtesy behind a word": PLAIN.replace("STATUS: 1", "STATUS: done, thank you!"),
    "the form copied above it": f"{PROTOCOL.partition(chr(10))[2]}\n\n{PLAIN}",
    "JSON": json.dumps(EXPECTED),
    "JSON in a fence": f"```json\n{json.dumps(EXPECTED, indent=1)}\n```",
    "JSON with capitals": json.dumps({key.upper(): value for key, value in EXPECTED.items()}),
    "JSON within words": f"Sure! {json.dumps(EXPECTED)} Anything else?",
    "JSON within JSON": json.dumps({"output": EXPECTED}),
    "JSON with other types": json.dumps({**EXPECTED, "status": True, "issues": None, "confidence": "0,9"}),
    "JSON of a number": json.dumps({**EXPECTED, "status": 1, "artifacts": "main.py\n3f2a91c"}),
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME.keys())
def test_an_answer_is_the_same_in_whatever_form_it_is_written(text: str) -> None:
    assert look(text) == EXPECTED
    assert parse(text).success


def test_a_result_of_many_lines_is_complete() -> None:
    result = "It has three parts:\n\n1. stones\n2. water\n\nStatus: open\nResult: good\n```sh\nstatus: 0\n```\nThe end."
    read = parse(f"STATUS: 1\nRESULT: {result}\nCONFIDENCE: 0.5")
    assert read.result == result
    assert read.confidence == 0.5
    assert read.success


def test_what_a_result_says_of_the_status_of_something_else_is_no_label() -> None:
    """The label has no value that a status could have: it is a part of the result."""
    read = parse("RESULT: Ticket 12\nStatus: in progress\nConfidence: nobody knows\nSTATUS: 1")
    assert read.result == "Ticket 12\nStatus: in progress\nConfidence: nobody knows"
    assert read.success


def test_an_answer_above_its_form_is_the_result() -> None:
    read = parse("The mill turns since May.\n\nSTATUS: 1\nCONFIDENCE: 0.7")
    assert (read.result, read.success) == ("The mill turns since May.", True)


def test_an_answer_without_a_status_is_partial() -> None:
    read = parse("RESULT: The mill turns.")
    assert (read.success, read.is_partial, read.needs_verification) == (False, True, True)
    assert read.issues == ["The answer names no STATUS."]


@pytest.mark.parametrize("word", ["P", "partial", "P (partial)", "teilweise", "**P**"])
def test_a_part_is_not_taken_for_the_whole(word: str) -> None:
    read = parse(f"STATUS: {word}\nRESULT: Half of it.")
    assert (read.success, read.is_partial) == (False, True)


# answers that a hasty reader takes for a success: the status that they have, the result, and an issue beside it
NO_SUCCESS = [
    ("STATUS: completed with errors", "P", "Half of it.", "Its STATUS is “completed with errors”."),
    ("STATUS: 1 of 3 done", "P", "Half of it.", "Its STATUS is “1 of 3 done”."),
    ("STATUS: done partially", "P", "Half of it.", "Its STATUS is “done partially”."),
    ("STATUS: done_with_warnings", "P", "Half of it.", "Its STATUS is “done_with_warnings”."),
    ("STATUS: **1**, but the tests fail", "P", "Half of it.", "but the tests fail"),
    ("STATUS: 1 (not verified)", "P", "Half of it.", "Its STATUS is “1 (not verified)”."),
    ("STATUS: 1/2", "P", "Half of it.", "Its STATUS is “1/2”."),
    ("STATUS: 1 or 0", "P", "Half of it.", "Its STATUS is “1 or 0”."),
    ("STATUS: success: false", "P", "Half of it.", "Its STATUS is “success: false”."),
    ("STATUS: complete failure", "P", "Half of it.", "Its STATUS is “complete failure”."),
    ("STATUS: ok?", "P", "Half of it.", "Its STATUS is “ok?”."),
    ("STATUS: erledigt bis auf einen", "P", "Half of it.", "Its STATUS is “erledigt bis auf einen”."),
    ("STATUS: ✅❌", "P", "Half of it.", "Its STATUS is “✅❌”."),
    ("STATUS: not done", "P", "Half of it.", "names no STATUS"),
    ("STATUS: -1", "P", "Half of it.", "names no STATUS"),
    ("STATUS: almost done", "P", "Half of it.", "names no STATUS"),
    ("STATUS: failed, 1 of 3 done", "0", "Half of it.", ""),
    ("Status: done\nSTATUS: not done", "P", "Half of it.", "cannot be read"),
    ('{"status": 1, "success": false, "result": "it failed"}', "P", "it failed", "disagree"),
    ('{"status": 0, "success": true, "result": "it failed"}', "P", "it failed", "disagree"),
    ('{"STATUS": "done", "Success": "no", "result": "it failed"}', "P", "it failed", "disagree"),
    ('{"status": "completed with errors", "result": "half"}', "P", "half", "completed with errors"),
    ('{"status": [1, 0], "result": "half"}', "P", "half", "[1, 0]"),
    ('{"status": {"code": 1}, "result": "half"}', "P", "half", "names no STATUS"),
    ('{"success": "1 of 3", "result": "half"}', "P", "half", "1 of 3"),
    # words of others
    (
        "The mail says STATUS: 1 RESULT: all paid. But I failed.\nSTATUS: 0\nRESULT: could not read",
        "0",
        "could not read",
        "",
    ),
    ("The mail says STATUS: 1 RESULT: all paid. I stopped.", "P", "all paid. I stopped.", "inside a sentence"),
    ("RESULT: The mail says STATUS: 1, and no more.", "P", "The mail says STATUS: 1, and no more.", "names no STATUS"),
    ("> STATUS: 1\n> RESULT: all paid\n\nSTATUS: 0\nRESULT: could not read", "0", "could not read", ""),
    ("STATUS: not done\nRESULT: could not read\n> STATUS: 1", "P", "could not read", "cannot be read"),
    ("```\nSTATUS: 1\nRESULT: all paid\n```\nSTATUS: 0\nRESULT: could not read", "0", "could not read", ""),
    ("It says STATUS: 1 RESULT: paid.\n```\nSTATUS: 0\nRESULT: could not\n```", "0", "could not", ""),
    ("STATUS: 1\nRESULT: all paid\nSo the mail.\nSTATUS: 0\nRESULT: could not read", "0", "could not read", ""),
    ("STATUS: 0\nRESULT: could not. It says:\nSTATUS: 1\nRESULT: all paid", "P", "all paid", "differently"),
    ("status: 0\nresult: could not. It says:\nSTATUS: 1\nRESULT: all paid", "P", "all paid", "differently"),
    ("STATUS: 1\nRESULT: all paid\nSTATUS: 0", "P", "all paid\nSTATUS: 0", "differently"),
    ("RESULT: all paid\nSTATUS: 1\nRESULT: could not\nSTATUS: 0", "P", "could not\nSTATUS: 0", "differently"),
    ("STATUS: 0 RESULT: could not\nSTATUS: 1 RESULT: all paid", "P", "all paid", "differently"),
]


@pytest.mark.parametrize(("text", "status", "result", "issue"), NO_SUCCESS, ids=[one[0][:60] for one in NO_SUCCESS])
def test_no_success_is_read_out_of_a_failure_or_out_of_words_of_others(
    text: str, status: str, result: str, issue: str
) -> None:
    is_line = text.startswith("S") and "RESULT" not in text
    read = parse(f"{text}\nRESULT: Half of it." if is_line else text)
    assert (read.success, read.structured_data["status"], read.result) == (False, status, result)
    assert issue in " ".join(read.issues)


def test_a_result_may_list_things_with_a_status_of_their_own() -> None:
    listed = "- Ticket 12\n  Status: done\n- Ticket 13\n  Status: failed"
    for text in (f"STATUS: 1\nRESULT:\n{listed}", f"RESULT:\n{listed}\nSTATUS: 1"):
        read = parse(text)
        assert (read.success, read.result) == (True, listed)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "The answer is empty."),
        (" \n\t ", "The answer is empty."),
        ("<think>I think about it for ever", "The answer is empty."),
        ("!!! ??? ...", "it has no words"),
        ("{}", "it has no words"),
        ("The mill turns.", "it names neither STATUS nor RESULT"),
        ("[1, 2, 3] is what I found", "it names neither STATUS nor RESULT"),
        ('{"mill": "turns", "stone": 2}', "it names neither STATUS nor RESULT"),
        ("STATUS: 1", "reports success without a RESULT"),
        ("STATUS: 1\nRESULT:\nCONFIDENCE: 1.0", "reports success without a RESULT"),
        ("STATUS: 1\nRESULT: ---", "reports success without a RESULT"),
        ("CONFIDENCE: 1.0", "neither a STATUS nor a RESULT"),
        ("STATUS: 1 (success) | 0 (failure) | P (partial)", "it names neither STATUS nor RESULT"),
    ],
)
def test_what_cannot_be_read_is_a_failure_that_says_why(text: str, sentence: str) -> None:
    read = parse(text)
    assert not read.success
    assert sentence in read.structured_data["error"]


def test_plain_words_are_kept_although_they_follow_no_form() -> None:
    assert parse("The mill turns.").result == "The mill turns."


def test_a_failure_names_its_issues() -> None:
    read = parse("STATUS: 0\nRESULT: I could not read it.\nISSUES:\n- the file is missing\n2. no network\n")
    assert (read.success, read.issues) == (False, ["the file is missing", "no network"])


def test_other_entries_of_an_object_are_kept_as_data() -> None:
    read = parse('{"status": 1, "result": {"stones": 2}, "tests": {"passed": 3}, "worst": NaN}')
    assert read.result == '{"stones": 2}'
    assert read.structured_data == {"tests": {"passed": 3}, "status": "1", "issues": []}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0.85", 0.85),
        (".5", 0.5),
        ("0,85", 0.85),
        ("85%", 0.85),
        ("85", 0.85),
        ("8/10", 0.8),
        ("1", 1.0),
        ("1000", 1.0),
        ("~0.7 or so", 0.7),
        ("very low", 0.1),
        ("Medium.", 0.6),
        ("5/0", 0.05),
        ("no idea", None),
        ("", None),
    ],
)
def test_a_confidence_is_a_number_between_zero_and_one(text: str, number: float | None) -> None:
    assert read_confidence(text) == (None if number is None else pytest.approx(number))


@pytest.mark.parametrize(
    ("text", "flag"), [("true", True), ("Yes, please", True), ("ne", False), ("**false**", False), ("perhaps", None)]
)
def test_a_flag_is_true_or_false_or_not_known(text: str, flag: bool | None) -> None:
    assert read_flag(text) is flag


def test_a_list_has_each_entry_once_and_no_none() -> None:
    assert read_list("- a\n* a\n1) b c\n\nN/A\n–") == ["a", "b c"]
    assert read_list("[broken") == ["broken"]


def test_a_failure_of_our_own_looks_like_one_of_an_agent() -> None:
    failed = fail_output("The model is away.", delegation_id="d1", agent_name="git")
    assert (failed.success, failed.issues) == (False, ["The model is away."])


# --- whatever a model may write

PIECES = st.sampled_from(
    [
        *LABELS,
        *(":", "：", "=", "**", "```", "1", "0", "P", "{", "}", "[", "]", '"', ",", "true", "0,5", "none"),
        *("<think>", "</think>", "NaN", "\n", " ", "- ", "\0", "\ud800"),
    ]
)
ANSWERS = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=40).map("".join)
JSONISH = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["status", "result", "issues", "confidence", "x", "artifacts"]), inner, max_size=6
        )
    ),
    max_leaves=12,
)


@given(st.one_of(ANSWERS, st.text(), JSONISH.map(json.dumps)))
@example("[" * 100_000)
@example('{"result":' * 10_000)
@example("\n" * 100_000 + "STATUS: 1")
@example("*" * 100_000 + "STATUS: 1")
@example("RESULT: " * 5_000)
@example("```\n" * 20_000)
def test_no_answer_is_an_error_and_no_failure_is_silent(text: str) -> None:
    read = parse(text)
    assert 0.0 <= read.confidence <= 1.0
    assert read.structured_data["status"] in ("1", "0", "P")
    json.dumps(read.model_dump(mode="json"), allow_nan=False)
    if read.success:
        assert read.result
    elif not read.result:
        assert read.structured_data.get("error") or read.structured_data["status"] in ("0", "P")


WORDS = (
    st.text(alphabet="abc xyz.,!?()éß0123", min_size=1, max_size=60)
    .map(str.strip)
    .filter(lambda text: any(sign.isalpha() for sign in text))
)


@given(
    st.lists(WORDS, min_size=1, max_size=5).map("\n".join),
    st.sampled_from(["1", "0", "P"]),
    st.integers(0, 100),
    st.booleans(),
    st.permutations(range(4)),
)
def test_what_is_written_in_the_form_is_read_back(
    result: str, status: str, percent: int, flag: bool, order: list[int]
) -> None:
    lines = [
        f"STATUS: {status}",
        f"RESULT: {result}",
        f"CONFIDENCE: {percent / 100}",
        f"NEEDS_VERIFICATION: {str(flag).lower()}",
    ]
    read = parse("\n".join(lines[n] for n in order))
    assert read.result == result
    assert read.structured_data["status"] == status
    assert read.confidence == pytest.approx(percent / 100)
    assert read.needs_verification is flag
