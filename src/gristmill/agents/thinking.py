"""Asks the model for one step of a run: by the run's priority, within a budget, and until its answer can be used."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import lru_cache
from typing import Any, Protocol, TypeVar, cast

from pydantic import BaseModel, ValidationError

from gristmill.agents.budgets import fit_turns
from gristmill.agents.patience import describe_silence, wait_aloud
from gristmill.agents.runs import Stepping
from gristmill.errors import BadAnswer, Permanent
from gristmill.models import Count, Level, Llm, Message, StreamingLlm, TokenCount, make_schema, tokens
from gristmill.settings import explain_reason
from gristmill.telemetry import log

S = TypeVar("S", bound=BaseModel)
T = TypeVar("T")
ASKED = 3  # times, before a wrong answer is an error
LONGEST_LIMIT = 400  # characters of a text that a grammar counts; one that counts more is refused by small backends
UNKNOWN_TO_GRAMMARS = ("pattern", "default", "format")


class RunLlm(Llm, StreamingLlm, Protocol):
    """What a run asks: whole answers, and answers piece by piece."""


class Thinker:
    """The model of one run. A person who waits goes first (P0), code comes next (P1), the background last (P3)."""

    def __init__(self, llm: RunLlm | None, model: str, *, foreground: bool, where: str = "") -> None:
        """Without a model's name, no model is configured. `where` it is, is told to people who wait for it."""
        self._llm = llm if model else None
        self._foreground = foreground
        self.where = where
        self.model = model

    @property
    def is_there(self) -> bool:
        """Whether a model is configured."""
        return self._llm is not None

    async def ask(
        self, messages: Sequence[Message], shape: type[S], *, step: Stepping, budget: int, coding: bool = False
    ) -> S:
        """An answer in this shape. A wrong or empty one is asked for again, with the complaint; then BadAnswer."""
        schema = describe_shape(shape)
        llm = self.llm

        async def ask_once(turns: Sequence[Message]) -> S:
            found = await llm.ask_json(
                turns, schema, model=self.model, priority=self.choose_priority(coding=coding), count=self._counter(step)
            )
            return read_shape(found, shape)

        return await self._insist(messages, budget, step, ask_once)

    async def write(self, messages: Sequence[Message], *, step: Stepping, budget: int, coding: bool = False) -> str:
        """An answer in words."""
        llm = self.llm

        async def ask_once(turns: Sequence[Message]) -> str:
            return await llm.ask_text(
                turns, model=self.model, priority=self.choose_priority(coding=coding), count=self._counter(step)
            )

        return await self._insist(messages, budget, step, ask_once)

    def stream(self, step: Stepping) -> StreamingLlm:
        """The same model, piece by piece, for one step."""
        return _Stream(self, step)

    def use(self, model: str) -> None:
        """Ask another model from now on."""
        self.model = model

    @property
    def llm(self) -> RunLlm:
        if self._llm is None:
            raise Permanent("No model is configured: set GRISTMILL_LLM_MODEL.")
        return self._llm

    def choose_priority(self, *, coding: bool = False) -> Level:
        """By who waits for the answer."""
        if not self._foreground:
            return "P3"
        return "P1" if coding else "P0"

    def _counter(self, step: Stepping) -> Count:
        def count(used: TokenCount) -> None:
            step.cost = step.cost.add(self.model, used.prompt, used.completion)

        return count

    async def _wait(self, step: Stepping, answer: Awaitable[T]) -> T:
        """An answer of the model; a person who watches the step is told when it takes long."""
        is_told = False

        async def say(seconds: int) -> None:
            nonlocal is_told
            is_told = True
            await step.say(describe_silence(self.model, self.where, seconds))

        try:
            return await wait_aloud(answer, say)
        finally:
            if is_told:
                await step.say(None)

    async def _insist(
        self,
        messages: Sequence[Message],
        budget: int,
        step: Stepping,
        ask_once: Callable[[Sequence[Message]], Awaitable[T]],
    ) -> T:
        asked = list(messages)
        for n in range(ASKED):
            try:
                return await self._wait(step, ask_once(fit_turns(asked, budget)))
            except BadAnswer as wrong:
                log.info("thinking.bad_answer", attempt=n + 1, error=str(wrong)[:200])
                if n == ASKED - 1:
                    raise
                asked = [*messages, Message("user", f"Your last answer could not be used: {wrong} Answer again.")]
        raise AssertionError("the last attempt returns or raises")


class _Stream:
    """Streams for one step; the tokens are counted as the built-in model counts them."""

    def __init__(self, thinker: Thinker, step: Stepping) -> None:
        self._thinker = thinker
        self._step = step

    async def stream_text(
        self, question: str | Sequence[Message], *, model: str = "", priority: Level = "P0", max_tokens: int = 0
    ) -> AsyncGenerator[str]:
        thinker = self._thinker
        read = question if isinstance(question, str) else "\n".join(one.text for one in question)
        said: list[str] = []
        pieces = thinker.llm.stream_text(
            question, model=thinker.model, priority=thinker.choose_priority(), max_tokens=max_tokens
        )
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    said.append(piece)
                    yield piece
        finally:
            used = (tokens.count(read), tokens.count("".join(said)))
            self._step.cost = self._step.cost.add(thinker.model, *used)


def read_shape(found: Any, shape: type[S]) -> S:
    try:
        return shape.model_validate(found)
    except ValidationError as wrong:
        said = "; ".join(
            f"{'.'.join(map(str, one['loc'])) or 'it'}: {explain_reason(one)}" for one in wrong.errors()[:5]
        )
        raise BadAnswer(f"The answer is wrong: {said}.") from wrong


@lru_cache(maxsize=128)  # making it takes longer than all else in a round, and the shapes are few
def describe_shape(shape: type[BaseModel]) -> dict[str, Any]:
    """The schema of a shape, as models are given it; nobody changes it."""
    return simplify_schema(make_schema(shape))


def simplify_schema(schema: Any) -> Any:
    """The schema as grammars of small backends can follow it; whatever they do not check is checked here afterwards."""
    if isinstance(schema, list):
        return [simplify_schema(one) for one in cast(list[Any], schema)]
    if not isinstance(schema, dict):
        return schema
    given = cast(dict[str, Any], schema)
    kept = {name: value for name, value in given.items() if not _is_too_much(name, value)}
    return {name: _simplify(name, value) for name, value in kept.items()}


def _simplify(name: str, value: Any) -> Any:
    # the names below are those of fields, whatever they are called
    if name in ("properties", "$defs"):
        return {field: simplify_schema(one) for field, one in value.items()}
    return value if name in ("enum", "const", "required") else simplify_schema(value)


def _is_too_much(name: str, value: Any) -> bool:
    if name in UNKNOWN_TO_GRAMMARS:
        return True
    return name in ("maxLength", "maxItems", "minLength") and isinstance(value, int) and value > LONGEST_LIMIT
