"""What follows from an answer: an effect is approved or refused, and a run that waits for nobody else goes on."""

from gristmill.agents.effects.model import EffectResult, EffectRow
from gristmill.agents.effects.store import (
    APPROVE,
    DONE,
    NOT_DONE,
    approve,
    complete,
    fail,
    load_effect,
    redo,
    refuse,
)
from gristmill.agents.runs import ENDED, Question, continue_run, load_question, lock_run, note_answer
from gristmill.db import Tx
from gristmill.ids import QuestionId


async def answer_question(
    tx: Tx, id_: QuestionId, *, choice: str | None = None, answer: str = "", by: str, message: int | None = None
) -> Question:
    """Answer one question, by a `message` of its item or elsewhere; the last open one of a run sends it on its way."""
    question = await load_question(tx, id_)
    is_over = (await lock_run(tx, question.run)).state in ENDED
    await note_answer(tx, question, choice=choice, answer=answer, by=by, message=message)
    if question.effect is not None:
        await _move_effect(tx, await load_effect(tx, question.effect), choice or "", answer, by, is_over=is_over)
    await continue_run(tx, question.run)
    return await load_question(tx, id_)


async def _move_effect(tx: Tx, row: EffectRow, choice: str, answer: str, by: str, *, is_over: bool) -> None:
    """A worker that knew the truth after all may have settled it first: then nothing moves."""
    words = f": {answer.strip()}" if answer.strip() else "."
    if row.state == "intended":
        await (approve(tx, row, by) if choice == APPROVE else refuse(tx, row, f"{by} said no{words}", by))
    elif row.state == "unknown":
        if choice == DONE:
            await complete(tx, row.id, row.attempt, EffectResult(f"{by} says that it was done{words}"))
        elif choice == NOT_DONE and is_over:
            await fail(tx, row.id, row.attempt, "It was not done; its run is over: ask anew.")
        elif choice == NOT_DONE:
            await redo(tx, row, by)
        else:
            await fail(tx, row.id, row.attempt, f"{by} left it as it is{words}")
