"""The node that answers a question, with citations that were checked."""

from contextlib import aclosing

from gristmill.agents.ask.model import AnswerEnded, CheckedAnswer, Waits
from gristmill.agents.orchestrator.knowing import make_answerer
from gristmill.agents.orchestrator.state import OrchestratorState, Update
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import Stepping
from gristmill.errors import BadAnswer, Transient

LONGEST_QUESTION = 1_000  # characters of a request that is asked as it is


async def respond(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    request = handle.run.request
    question = request if len(request) <= LONGEST_QUESTION else state.get("goal", request[:LONGEST_QUESTION])
    try:
        answer = await find_answer(handle, step, question)
    except BadAnswer as error:
        step.output = {"note": str(error)}
        return {"answer": "", "citations": []}
    citations = [
        {"document": int(one.document), "page": one.page, "start": one.start, "stop": one.stop, "words": one.quote}
        for sentence in answer.sentences
        if sentence.verdict == "supported"
        for one in sentence.citations
    ]
    step.output = {"kind": answer.kind, "answer": answer.text, "citations": citations, "note": answer.note}
    return {"answer": answer.text, "citations": citations, "evidence": list_cited(state, answer)}


async def find_answer(handle: RunHandle, step: Stepping, question: str) -> CheckedAnswer:
    async with aclosing(make_answerer(handle, step).answer(question, handle.run.place)) as events:
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
