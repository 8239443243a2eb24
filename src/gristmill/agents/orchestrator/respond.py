"""The node that answers a question, with citations that were checked."""

from collections.abc import Sequence
from contextlib import aclosing

from gristmill.agents.ask.answering import Past
from gristmill.agents.ask.model import KEPT_VERDICTS, AnswerEnded, CheckedAnswer, Waits
from gristmill.agents.orchestrator.knowing import make_answerer
from gristmill.agents.orchestrator.prompts import CLARIFYING, load_said
from gristmill.agents.orchestrator.state import OrchestratorState, Update
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import Stepping, UserAnswer
from gristmill.errors import BadAnswer, Transient
from gristmill.models import Message

LONGEST_QUESTION = 1_000  # characters of a request that is asked as it is, and of what was said about it


async def respond(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    request = handle.run.request
    asked = request if len(request) <= LONGEST_QUESTION else state.get("goal", request[:LONGEST_QUESTION])
    said = await load_said(handle, CLARIFYING)
    try:
        answer = await find_answer(handle, step, complete_question(asked, said), recall_talk(asked, said))
    except BadAnswer as error:
        step.output = {"note": str(error)}
        return {"answer": "", "citations": []}
    citations = [
        {"document": int(one.document), "page": one.page, "start": one.start, "stop": one.stop, "words": one.quote}
        for sentence in answer.sentences
        if sentence.verdict in KEPT_VERDICTS
        for one in sentence.citations
    ]
    step.output = {"kind": answer.kind, "answer": answer.text, "citations": citations, "note": answer.note}
    return {"answer": answer.text, "citations": citations, "evidence": list_cited(state, answer)}


def complete_question(asked: str, said: Sequence[UserAnswer]) -> str:
    """The question with what a person has said about it, as passages are searched for it.

    The words of our own question are left out: no passage need have them.
    """
    words = "; ".join(one.answer for one in said)[:LONGEST_QUESTION]
    return f"{asked} ({words})" if words else asked


def recall_talk(asked: str, said: Sequence[UserAnswer]) -> Past:
    """What was asked back, and what a person said to it, as the conversation before the question."""
    turns = [Message("user", asked)] if said else []
    for one in said:
        turns += [Message("assistant", one.sentence), Message("user", one.answer)]
    return Past(turns)


async def find_answer(handle: RunHandle, step: Stepping, question: str, past: Past) -> CheckedAnswer:
    async with aclosing(make_answerer(handle, step).answer(question, handle.run.place, past)) as events:
        async for event in events:
            if isinstance(event, Waits):
                await step.say(event.text)
            if isinstance(event, AnswerEnded):
                return event.answer
    raise Transient("The answer broke off before its end.")


def list_cited(state: OrchestratorState, answer: CheckedAnswer) -> list[dict[str, object]]:
    """The passages under the numbers that the answer cites them by."""
    return [
        {
            "number": one.number,
            "document": int(one.document),
            "page": one.page,
            "start": one.start,
            "stop": one.stop,
            "title": one.title or one.name,
            "text": one.text,
        }
        for one in answer.passages
    ]
