"""The node that understands a request: its language, its category, and its goal in one sentence."""

import re

from gristmill.agents.ask.question import recognise_language
from gristmill.agents.orchestrator.prompts import make_prompt, show_request
from gristmill.agents.orchestrator.shapes import Understood
from gristmill.agents.orchestrator.state import Category, OrchestratorState, Update
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import QuestionToAsk, Stepping, UserAnswer
from gristmill.errors import BadAnswer

MOST_QUESTIONS = 2  # that are asked back before one begins with what is known
LONGEST_GOAL = 400  # characters
TASK = """Say which category the request has, and what it asks for in one sentence. It is clear if one can begin with
it and ask about details later. Only if nobody could begin, say what a person must answer."""
QUESTION = re.compile(r"\?\s*$|^\W*(?:what|which|who|when|where|why|how|is|are|was|does|did|can)\b", re.IGNORECASE)
NEW = re.compile(r"\b(?:design|invent|generate|create|compose|draw up|entwirf|entwerfe|navrhni)\b", re.IGNORECASE)
ORDER = re.compile(
    r"\W*(?:please\s+|bitte\s+)?(?:write|add|fix|mend|change|implement|send|commit|update|delete|remove|rename|move|draft"
    r"|create|build|make|refactor|schreib\w*|behebe|ändere|erstelle|sende|napiš|oprav|přidej|pošli)\b",
    re.IGNORECASE,
)
LIST = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+\S", re.MULTILINE)


async def intake(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    language = recognise_language(handle.run.request[:2_000]) or "en"
    found: Update = {"language": language, "has_model": handle.thinker.is_there}
    if not handle.thinker.is_there:
        return found | {"category": guess_category(handle.run.request), "goal": shorten(handle.run.title)}
    answers: list[UserAnswer] = []
    for n in range(1, MOST_QUESTIONS + 2):
        key = f"clarify {n}"
        known = await handle.recall(key)
        if known is None:
            understood = await understand(found, handle, step, answers)
            if understood.is_clear or not understood.question.strip() or n > MOST_QUESTIONS:
                return found | {
                    "category": correct_category(understood.category, handle.run.request),
                    "goal": understood.goal,
                }
            asked = QuestionToAsk(key, "clarify", understood.question.strip())
        else:
            asked = QuestionToAsk(key, "clarify", known.sentence)
        answers += await handle.ask(asked)
    return found | {"category": guess_category(handle.run.request), "goal": shorten(handle.run.title)}


async def understand(found: Update, handle: RunHandle, step: Stepping, answers: list[UserAnswer]) -> Understood:
    """By the model; by rule if it gives no answer that can be used."""
    prompt = make_prompt(OrchestratorState(language=found["language"]), TASK, show_request(handle, answers))
    try:
        return await handle.thinker.ask(prompt, Understood, step=step, budget=handle.budget(16_000))
    except BadAnswer as error:
        step.output = {"note": f"The category was found by rule: {error}"}
        goal = shorten(handle.run.title)
        return Understood(category=guess_category(handle.run.request), goal=goal, is_clear=True)


def correct_category(category: Category, request: str) -> Category:
    """Small models take orders for questions: what begins with an order is work, and not answered from passages."""
    return "SINGLE_TASK" if category == "ADVICE" and is_order(request) else category


def is_order(request: str) -> bool:
    return ORDER.match(request) is not None and "?" not in request


def guess_category(request: str) -> Category:
    """By rule: a question, something new, several things, or one."""
    text = request.strip()
    if QUESTION.search(text.splitlines()[0] if text else "") and len(text) < 600:
        return "ADVICE"
    if NEW.search(text):
        return "GENERATIVE"
    return "EPIC" if len(LIST.findall(text)) >= 3 else "SINGLE_TASK"


def shorten(title: str) -> str:
    return title[:LONGEST_GOAL] if len(title) >= 3 else f"{title} (as asked)"
