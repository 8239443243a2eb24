"""Judges the output of an agent by what it says and what its calls did, never by how sure it says it is."""

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from gristmill.agents.acting import is_refused
from gristmill.agents.ask.sentences import find_spans
from gristmill.agents.delegation.model import AgentOutput
from gristmill.agents.tools import PastCall

MOST_ATTEMPTS = 2  # of one agent at one delegation
MOST_ASKED = 3  # questions to a person about one delegation


# --- what happens next


@dataclass(frozen=True)
class Accept:
    """The output is used; `notes` say what is open."""

    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class RetryAgent:
    """The same agent tries again, and is told what was wrong."""

    complaints: tuple[str, ...]


@dataclass(frozen=True)
class OtherAgent:
    """Another agent tries, and is told what was wrong."""

    agent: str
    complaints: tuple[str, ...]


@dataclass(frozen=True)
class AskPerson:
    """Nobody but a person can say how to go on."""

    sentence: str


@dataclass(frozen=True)
class GiveUp:
    """The delegation failed: a person was asked often enough."""

    complaints: tuple[str, ...]


Verdict = Accept | RetryAgent | OtherAgent | AskPerson | GiveUp


@dataclass(frozen=True)
class ObservedWork:
    """What our own code saw of the work of an agent."""

    calls: Sequence[PastCall] = ()
    changed_files: Sequence[str] = ()
    artifacts: Sequence[str] = ()  # of effects that were done
    changes: Sequence[str] = ()  # what the delegation has changed or may have: by any agent of it, and by its helpers
    is_complete: bool = True
    complaints: Sequence[str] = ()  # of the agent's own check
    changing: AbstractSet[str] = frozenset()  # names of tools that change something

    @property
    def is_refused(self) -> bool:
        """Whether a person said no to one of its calls: that is an answer, and no failure of the agent."""
        return any(is_refused(one) for one in self.calls)

    @property
    def has_changed(self) -> bool:
        """Whether it has changed something that another attempt would find changed."""
        return bool(self.changes or self.changed_files or self.artifacts)


@dataclass(frozen=True)
class OutputProblem:
    """Something that is wrong with an output; a mild one does not make it useless."""

    sentence: str
    is_mild: bool = False


def judge_output(
    output: AgentOutput, work: ObservedWork, *, attempts: int, others: Sequence[str] = (), asked: int = 0
) -> Verdict:
    """What happens with an output. `attempts` of this agent were made, `others` have not tried yet, and a person was
    asked `asked` times. How confident the agent says it is changes nothing."""
    problems = find_problems(output, work)
    said = tuple(one.sentence for one in problems)
    is_bad = any(not one.is_mild for one in problems)
    if not problems:
        if output.needs_verification and work.has_changed and not asked:
            return AskPerson(_ask_to_verify(output, work))
        return Accept(("It needs to be verified.",) if output.needs_verification else ())
    if attempts < MOST_ATTEMPTS and (is_bad or not work.is_refused):
        return RetryAgent(said)
    if not is_bad:
        return Accept(said)
    if work.is_refused:
        return GiveUp(said)  # a person who said no is not asked again
    # what was changed once would be changed again by an agent that does not know of it
    if others and not work.has_changed:
        return OtherAgent(others[0], said)
    if asked < MOST_ASKED:
        return AskPerson(f"{output.agent_name} did not manage {output.delegation_id}: {' '.join(said)}")
    return GiveUp(said)


def _ask_to_verify(output: AgentOutput, work: ObservedWork) -> str:
    changed = ", ".join(dict.fromkeys([*work.changed_files, *work.artifacts, *work.changes]))
    return f"{output.agent_name} asks for its work to be verified ({output.delegation_id}). It changed: {changed}."


# --- what is wrong


def find_problems(output: AgentOutput, work: ObservedWork) -> list[OutputProblem]:
    """Everything that speaks against an output, by rule."""
    return [
        *_check_form(output, is_refused=work.is_refused),
        *_check_calls(output, work),
        *(OutputProblem(one) for one in find_unfounded_claims(output, work)),
        *(OutputProblem(one) for one in work.complaints),
    ]


def _check_form(output: AgentOutput, *, is_refused: bool) -> Iterator[OutputProblem]:
    error = str(output.structured_data.get("error", ""))
    if not output.result.strip():
        yield OutputProblem(error or "Its result is empty.")
    elif error:
        yield OutputProblem(error, is_mild=True)  # its words can be read, although they follow no form
    elif output.is_partial:
        yield OutputProblem(f"It is done in part only. {' '.join(output.issues)}".strip(), is_mild=True)
    elif not output.success:
        said = " ".join(output.issues) or output.result[:300]
        yield OutputProblem(f"It reports failure: {said}", is_mild=is_refused)


def _check_calls(output: AgentOutput, work: ObservedWork) -> Iterator[OutputProblem]:
    if not work.is_complete:
        yield OutputProblem("Its rounds ran out before it was done.", is_mild=True)
    calls = [one for one in work.calls if not is_refused(one)]
    if calls and all(one.result.is_error for one in calls):
        yield OutputProblem(f"Every call of it failed, the last one by: {_first_line(calls[-1].result.text)}")
        return
    last = {one.tool: one for one in calls if one.tool in work.changing}
    for tool, call in last.items():
        if call.result.is_error and output.success:
            yield OutputProblem(f"It reports success, but {tool} failed: {_first_line(call.result.text)}")


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:300]


# --- claims

DENIED = re.compile(
    r"\b(?:not|never|no|nothing|cannot|unable|failed|without|would|could|should|if|to be)\b|n['’]t\b", re.I
)
# The agent speaks of itself: it names itself, or leaves itself out at the beginning of a sentence.
SELF = (
    r"(?:\b(?:I|we)(?:['’]ve| have)?(?: (?:also|then|now|just|successfully|already|and)){0,2} "
    r"|^\W*(?:(?:successfully|then|also) )?)"
)


def _did(verbs: str, things: str = "") -> re.Pattern[str]:
    behind = rf"\b[^.]{{0,80}}\b(?:{things})" if things else r"\b"
    return re.compile(rf"{SELF}(?:{verbs}){behind}", re.IGNORECASE)


FILES = "file|files|code|module|script|function|test|tests|document|readme|line|lines"
DEEDS: tuple[tuple[re.Pattern[str], frozenset[str]], ...] = (
    (_did("sent|e-?mailed|mailed", "e-?mails?|mails?|message|reply|it to"), frozenset({"send_mail"})),
    (_did("drafted|prepared", "e-?mails?|mails?|reply"), frozenset({"draft_mail", "send_mail"})),
    (_did("committed"), frozenset({"git_commit"})),
    (_did("pushed"), frozenset({"git_push"})),
    (_did("opened|created|filed|raised", "issues?|tickets?"), frozenset({"create_issue"})),
    (_did("commented", "issues?|tickets?"), frozenset({"comment_on_issue"})),
    (_did("closed|moved|resolved|transitioned", "issues?|tickets?"), frozenset({"move_issue"})),
    (_did("created|wrote|published", "(?:wiki )?pages?"), frozenset({"create_page", "update_page"})),
    (_did("updated|edited", "(?:wiki )?pages?"), frozenset({"update_page"})),
    (
        _did("scheduled|added|invited", "meetings?|events?|appointments?|calendar"),
        frozenset({"add_event", "draft_event"}),
    ),
    (
        _did("changed|modified|edited|patched|wrote|created|added|fixed|mended|updated|replaced", FILES),
        frozenset({"write_file", "patch_file", "write_document", "draft_mail", "draft_event", "git_commit"}),
    ),
    (_did("ran|executed|run", "tests?|test suite"), frozenset({"run_tests", "run_command"})),
    (
        re.compile(r"\ball (?:the )?(?:\d+ )?tests (?:now )?(?:pass|passed|succeed|succeeded)\b", re.I),
        frozenset({"run_tests", "run_command"}),
    ),
)
FILE = re.compile(r"[\w./-]*[\w-]\.[A-Za-z]\w{0,9}|[\w.-]+(?:/[\w.-]+)+")
COMMIT = re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{7,40}\b")


def find_unfounded_claims(output: AgentOutput, work: ObservedWork) -> list[str]:
    """What the agent says that it did, and none of its calls did. Helpers of it did what they report."""
    done = {one.tool for one in work.calls if not one.result.is_error}
    if output.sub_delegations:
        return list(_check_artifacts(output, work))
    found = [
        f"It says “{_first_line(sentence)}”, but none of its calls did that."
        for sentence in _list_sentences(output.result)
        if not DENIED.search(sentence) and any(deed.search(sentence) and not tools & done for deed, tools in DEEDS)
    ]
    return [*dict.fromkeys(found), *_check_artifacts(output, work)]


def _list_sentences(text: str) -> list[str]:
    return [re.sub(r"^[\s\d.)*#>-]+", "", text[start:stop]) for start, stop in find_spans(text)]


def _check_artifacts(output: AgentOutput, work: ObservedWork) -> Iterator[str]:
    known = "\n".join([*work.changed_files, *work.artifacts, *work.changes, *_list_traces(work.calls)])
    for artifact in output.artifacts:
        named = COMMIT.findall(artifact) or FILE.findall(artifact)
        for one in named:
            if one.removeprefix("./") not in known:
                yield f"It names the artifact “{one}”, which none of its calls made or saw."


def _list_traces(calls: Sequence[PastCall]) -> Iterator[str]:
    """Everything that calls which worked were told and said."""
    for one in calls:
        if not one.result.is_error:
            yield from (str(value) for value in one.arguments.values())
            yield one.result.text
            yield from (str(value) for value in one.result.data.values())
