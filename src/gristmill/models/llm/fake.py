"""An LLM for tests: it gives the answers of a test, and checks them as the real client does."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

import orjson

from gristmill.errors import BadAnswer
from gristmill.models.llm.client import Count, Json, Level, Message, Shape, TokenCount, make_checker, make_schema

Reply = str | Json | Exception
PIECE = 7  # characters that it streams at a time: words and citations are cut as tokens cut them


class FakeLlm:
    """Answers from a list, or by a function of the question; `questions` holds every question it got."""

    def __init__(self, replies: Sequence[Reply] | Callable[[str], Reply]) -> None:
        self._replies = replies if callable(replies) else list(replies)
        self.questions: list[str] = []

    async def ask_text(
        self,
        question: str | Sequence[Message],
        *,
        model: str = "",
        priority: Level = "P3",
        count: Count | None = None,
    ) -> str:
        """The next answer in words."""
        del model, priority
        words = question if isinstance(question, str) else "\n".join(turn.text for turn in question)
        self.questions.append(words)
        reply = self._replies(words) if callable(self._replies) else self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        text = reply if isinstance(reply, str) else orjson.dumps(reply).decode()
        if count is not None:
            count(TokenCount(len(words.split()), len(text.split())))
        if not text.strip():
            raise BadAnswer("The model's answer is empty.")
        return text

    async def stream_text(
        self, question: str | Sequence[Message], *, model: str = "", priority: Level = "P0", max_tokens: int = 0
    ) -> AsyncGenerator[str]:
        """The next answer in words, a few characters at a time."""
        del max_tokens
        text = await self.ask_text(question, model=model, priority=priority)
        for at in range(0, len(text), PIECE):
            yield text[at : at + PIECE]
            await asyncio.sleep(0)  # as a real one lets others have their turn

    async def ask_json(
        self,
        question: str | Sequence[Message],
        schema: Json,
        *,
        model: str = "",
        priority: Level = "P3",
        count: Count | None = None,
    ) -> Json:
        """The next answer, if it follows the schema."""
        return make_checker(schema)(await self.ask_text(question, model=model, priority=priority, count=count))

    async def ask_object(
        self, question: str | Sequence[Message], shape: type[Shape], *, model: str = "", priority: Level = "P3"
    ) -> Shape:
        """The next answer as an object of a pydantic model."""
        return shape.model_validate(await self.ask_json(question, make_schema(shape), model=model, priority=priority))
