"""The node that answers a question, with citations that were checked."""

from contextlib import aclosing

from gristmill.agents.ask.model import Answer, Ended, Waits
from gristmill.agents.desk import Desk
from gristmill.agents.orchestrator.knowing import make_answerer
from gristmill.agents.orchestrator.state import State, Update
from gristmill.agents.runs import Stepping
from gristmill.errors import BadAnswer, Transient

LONGEST_QUESTION = 1_000  # characters of a request that is asked as it is


async def respond(state: State, desk: Desk, step: Stepping) -> Update:
    request = desk.run.request
    question = request if len(request) <= LONGEST_QUESTION else state.get("goal", request[:LONGEST_QUESTION])
    try:
        answer = await find_answer(desk, step, question)
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


async def find_answer(desk: Desk, step: Stepping, question: str) -> Answer:
    async with aclosing(make_answerer(desk, step).answer(question, desk.run.place)) as events:
        async for event in events:
            if isinstance(event, Waits):
                await step.say(event.text)
            if isinstance(event, Ended):
                return event.answer
    raise Transient("The answer broke off before its end.")


def list_cited(state: State, answer: Answer) -> list[dict[str, object]]:
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
