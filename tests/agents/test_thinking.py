"""The model of a run: asked by priority, within a budget, again if its answer is wrong, and its tokens counted."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from pydantic import BaseModel, Field

from gristmill.agents.budgets import count_turns, cut_text, fit_turns
from gristmill.agents.runs import Stepping
from gristmill.agents.thinking import Thinker, simplify_schema
from gristmill.errors import BadAnswer, Permanent, Transient
from gristmill.ids import StepId
from gristmill.models import FakeLlm, Message, fence_text, tokens


class City(BaseModel):
    """An answer."""

    name: str = Field(min_length=2, max_length=60_000, pattern=r"^\w+$")
    people: int = Field(default=0, ge=0)


class Listening(FakeLlm):
    """Knows with which priority and schema it was asked."""

    def __init__(self, replies: Sequence[Any]) -> None:
        super().__init__(replies)
        self.priorities: list[str] = []
        self.schemas: list[Any] = []

    async def ask_text(self, question: Any, **more: Any) -> str:
        self.priorities.append(more["priority"])
        return await super().ask_text(question, **more)

    async def ask_json(self, question: Any, schema: Any, **more: Any) -> Any:
        self.schemas.append(schema)
        return await super().ask_json(question, schema, **more)


ASKED = [Message("system", "You know cities."), Message("user", "Which?")]


def make_step() -> Stepping:
    return Stepping(StepId(1))


async def test_an_answer_has_its_shape_and_its_tokens_count_for_the_step() -> None:
    llm, step = FakeLlm([{"name": "Brno", "people": 400_000}, "It is Brno."]), make_step()
    thinker = Thinker(llm, "small", foreground=True)
    assert await thinker.ask(ASKED, City, step=step, budget=100) == City(name="Brno", people=400_000)
    assert await thinker.write(ASKED, step=step, budget=100) == "It is Brno."
    assert (step.cost.model, step.cost.calls) == ("small", 2)
    assert step.cost.tokens_in > 0
    assert step.cost.tokens_out > 0


@pytest.mark.parametrize("wrong", ["", "no JSON", "{}", {"name": 3}, {"name": "B"}, {"people": 3}, ["Brno"]])
async def test_a_wrong_answer_is_asked_for_again_with_the_complaint(wrong: Any) -> None:
    llm = FakeLlm([wrong if isinstance(wrong, str | dict) else "[]", {"name": "Brno"}])
    step = make_step()
    found = await Thinker(llm, "small", foreground=True).ask(ASKED, City, step=step, budget=1_000)
    assert found.name == "Brno"
    assert "could not be used" in llm.questions[1]
    assert "Which?" in llm.questions[1]


async def test_a_model_that_answers_wrongly_three_times_is_an_error_and_all_three_are_counted() -> None:
    llm, step = FakeLlm(lambda _: {"name": "B"}), make_step()
    with pytest.raises(BadAnswer, match="name"):
        await Thinker(llm, "small", foreground=True).ask(ASKED, City, step=step, budget=1_000)
    assert len(llm.questions) == step.cost.calls == 3


async def test_a_model_that_does_not_answer_at_all_is_not_asked_again_here() -> None:
    llm = FakeLlm([Transient("The router is away.")])
    with pytest.raises(Transient, match="away"):
        await Thinker(llm, "small", foreground=True).write(ASKED, step=make_step(), budget=1_000)
    assert len(llm.questions) == 1


@pytest.mark.parametrize(
    ("foreground", "coding", "priority"),
    [(True, False, "P0"), (True, True, "P1"), (False, False, "P3"), (False, True, "P3")],
)
async def test_a_person_who_waits_goes_before_code_and_code_before_the_background(
    foreground: bool, coding: bool, priority: str
) -> None:
    llm = Listening(["yes"])
    await Thinker(llm, "small", foreground=foreground).write(ASKED, step=make_step(), budget=100, coding=coding)
    assert llm.priorities == [priority]


async def test_without_a_model_it_says_so() -> None:
    thinker = Thinker(FakeLlm([]), "", foreground=True)
    assert not thinker.is_there
    with pytest.raises(Permanent, match="GRISTMILL_LLM_MODEL"):
        await thinker.write(ASKED, step=make_step(), budget=100)


async def test_a_model_is_told_the_schema_without_what_grammars_cannot_follow() -> None:
    llm = Listening([{"name": "Brno"}])
    await Thinker(llm, "small", foreground=True).ask(ASKED, City, step=make_step(), budget=100)
    (schema,) = llm.schemas
    assert schema["properties"]["name"] == {"minLength": 2, "title": "Name", "type": "string"}
    assert simplify_schema({"properties": {"format": {"type": "string"}}}) == {
        "properties": {"format": {"type": "string"}}
    }


def test_a_text_that_is_cut_says_how_much_is_missing() -> None:
    text = " ".join(f"word{n}" for n in range(2_000))
    cut = cut_text(text, 100)
    assert tokens.count(cut) <= 110
    assert cut.startswith("word0 ")
    assert cut.endswith("word1999")
    assert "tokens were left out here" in cut
    assert cut_text("short", 100) == "short"


@pytest.mark.parametrize("most", [20, 60, 90, 150, 250, 320])
def test_words_of_others_stay_between_their_marks_however_a_text_is_cut(most: int) -> None:
    """Cut in the middle of two texts, each would else lose the line that says where it ends."""
    text = "\n\n".join([fence_text("alpha beta " * 80, "page"), fence_text("gamma delta " * 80, "mail")])
    cut = cut_text(text, most)
    assert tokens.count(cut) <= most
    rest = "".join(part for n, part in enumerate(re.split(r"^[0-9a-f]{16}$", cut, flags=re.MULTILINE)) if n % 2 == 0)
    assert not re.search("alpha|beta|gamma|delta", rest), cut


def test_of_a_conversation_the_oldest_turns_go_first_and_the_task_stays() -> None:
    turns = [Message("system", "You work."), Message("user", "THE TASK")]
    turns += [Message("assistant", f"call {n} " + "x " * 50) for n in range(20)] + [Message("user", "THE END")]
    kept = fit_turns(turns, 400)
    assert count_turns(kept) <= 400
    assert [kept[0].text, kept[1].text, kept[-1].text] == ["You work.", "THE TASK", "THE END"]
    assert kept[-2].text.startswith("call 19")
    assert not any(one.text.startswith("call 0 ") for one in kept)
    assert fit_turns(turns, 100_000) == turns


def test_a_task_that_is_too_long_is_cut_last_and_says_so() -> None:
    turns = [
        Message("system", "You work."),
        Message("user", "Begin. " + "word " * 5_000 + "End."),
        Message("user", "Go."),
    ]
    kept = fit_turns(turns, 500)
    assert count_turns(kept) <= 520
    assert "left out here" in kept[1].text
    assert kept[2].text == "Go."
