"""Questions to a person: each has an id of its own, and an answer names the question that it answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple

from gristmill.agents.runs.keeping import clean_text, write_keepable
from gristmill.db import Tx, queries
from gristmill.errors import GristmillError, Refused, Unknown
from gristmill.ids import EffectId, QuestionId, RunId, ScopeId

SQL = queries("gristmill.agents.runs", "questions.sql")
LONGEST_ANSWER = 20_000  # characters
LONGEST_SENTENCE = 50_000  # more than all recipients of a mail take: a target is never cut
QuestionKind = Literal[
    "clarify",
    "commit",
    "push",
    "cloud_model",
    "epic_plan",
    "generative_design",
    "approve_effect",
    "unknown_effect",
]


class WaitingForUser(GristmillError):
    """A person is asked: the run ends its task here, and goes on when all of its questions are answered."""


@dataclass(frozen=True)
class QuestionToAsk:
    """A question as a run asks it. The same key is the same question: after a restart it is not asked again."""

    key: str
    kind: QuestionKind
    sentence: str
    choices: Sequence[str] = ()
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    effect: EffectId | None = None


@dataclass(frozen=True)
class Question:
    """A row of `agent_question`."""

    id: QuestionId
    run: RunId
    scope: ScopeId
    client: str
    project: str
    key: str
    kind: QuestionKind
    sentence: str
    details: Mapping[str, Any]
    choices: Sequence[str]
    effect: EffectId | None
    asked_at: datetime
    answered_at: datetime | None
    answered_by: str | None
    choice: str | None
    answer: str
    withdrawn_at: datetime | None

    @property
    def state(self) -> Literal["open", "answered", "withdrawn"]:
        if self.answered_at is not None:
            return "answered"
        return "open" if self.withdrawn_at is None else "withdrawn"


class UserAnswer(NamedTuple):
    """What a person answered."""

    key: str
    sentence: str  # the question
    choice: str
    answer: str
    by: str


async def ask(tx: Tx, run: RunId, asked: QuestionToAsk) -> Question:
    """The question as it stands, with its answer if a person gave one; the caller holds the run."""
    await tx.execute(
        SQL["add_question"],
        run=run,
        key=asked.key,
        kind=asked.kind,
        sentence=clean_text(asked.sentence)[:LONGEST_SENTENCE],
        details=write_keepable(asked.details),
        choices=list(asked.choices),
        effect=asked.effect,
    )
    found = await tx.one(SQL["find_question"], Question, run=run, key=asked.key)
    if found is None:
        raise Unknown(f"There is no run {run}.")
    return found


async def find_question(tx: Tx, run: RunId, key: str) -> Question | None:
    """A question that a run has asked under this key."""
    return await tx.one(SQL["find_question"], Question, run=run, key=key)


async def load_question(tx: Tx, id_: QuestionId) -> Question:
    found = await tx.one(SQL["load_question"], Question, id=id_)
    if found is None:
        raise Unknown(f"There is no question {id_}.")
    return found


async def count_open_questions(tx: Tx) -> int:
    """How many wait for a person, up to a thousand."""
    return await tx.only_value(SQL["count_open"], int)


async def load_answers(tx: Tx, run: RunId) -> list[UserAnswer]:
    """Everything that persons have answered to a run, the oldest first."""
    return await tx.all(SQL["load_answers"], UserAnswer, run=run)


class ItemsQuestion(NamedTuple):
    """A question of a run of an item, and the message of the item that answered it."""

    id: QuestionId
    choices: Sequence[str]
    message: int | None


async def list_questions_of_item(tx: Tx, item: int) -> list[ItemsQuestion]:
    return await tx.all(SQL["list_of_item"], ItemsQuestion, item=item)


async def note_answer(
    tx: Tx, question: Question, *, choice: str | None, answer: str, by: str, message: int | None = None
) -> None:
    """Write an answer down; the first one counts. The caller holds the run. `message`: where its item heard it."""
    check_answer(question, choice, answer)
    kept = {"choice": choice, "answer": clean_text(answer.strip()), "by": by, "message": message}
    if await tx.value(SQL["answer_question"], id=question.id, **kept) is None:
        raise Refused(f"Question {question.id} needs no answer any more.")


def check_answer(question: Question, choice: str | None, answer: str) -> None:
    """Refused if the answer does not fit the question."""
    if question.choices and choice not in question.choices:
        raise Refused(f"Question {question.id} has the answers {', '.join(question.choices)}: choose one of them.")
    if not question.choices and choice is not None:
        raise Refused(f"Question {question.id} has no answers to choose from: answer it in your own words.")
    if not question.choices and not answer.strip():
        raise Refused(f"Question {question.id} needs an answer in words.")
    if len(answer) > LONGEST_ANSWER:
        raise Refused(f"The answer has {len(answer):,} characters; {LONGEST_ANSWER:,} are the most.")


async def withdraw_questions(tx: Tx, run: RunId, effect: EffectId | None = None) -> None:
    """Nobody needs to answer any more what a run, or one effect of it, has asked."""
    await tx.execute(SQL["withdraw_questions"], run=run, effect=effect)


async def withdraw_stale_questions(tx: Tx) -> None:
    """What runs asked that are over by now needs no answer, but for effects that nobody knows the end of."""
    await tx.execute(SQL["withdraw_stale"])
