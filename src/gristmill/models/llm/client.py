"""The LLM client: asks the router, and refuses every empty or wrong answer."""

import base64
import hashlib
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, cast

import orjson
from pydantic import BaseModel, ValidationError

from gristmill.errors import BadAnswer, GristmillError, Permanent, Transient
from gristmill.models.http import Http, Json, Response, hide_credentials, make_bearer_header, read_response

if TYPE_CHECKING:  # the child processes import this file and need no settings
    from jsonschema.protocols import Validator

    from gristmill.settings import LlmSettings

Level = Literal["P0", "P1", "P2", "P3"]
Shape = TypeVar("Shape", bound=BaseModel)
MOST_NAMED = 8  # models that an error lists
FENCE = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ImageBytes:
    """The bytes of an image file."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str
    pictures: tuple[ImageBytes, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenCount:
    """How many tokens one question and its answer had."""

    prompt: int
    completion: int


Count = Callable[[TokenCount], None]  # gets the tokens of an answer, also of one that is refused


class Llm(Protocol):
    """Answers questions; every method raises an error rather than return an empty answer."""

    async def ask_text(
        self,
        question: str | Sequence[Message],
        *,
        model: str = "",
        priority: Level = "P3",
        count: Count | None = None,
    ) -> str:
        """An answer in words."""
        ...

    async def ask_json(
        self,
        question: str | Sequence[Message],
        schema: Json,
        *,
        model: str = "",
        priority: Level = "P3",
        count: Count | None = None,
    ) -> Json:
        """An answer that follows a JSON schema."""
        ...

    async def ask_object(
        self, question: str | Sequence[Message], shape: type[Shape], *, model: str = "", priority: Level = "P3"
    ) -> Shape:
        """An answer as an object of a pydantic model."""
        ...


class StreamingLlm(Protocol):
    """Writes an answer piece by piece; as an Llm, it raises an error rather than end an empty answer."""

    def stream_text(
        self, question: str | Sequence[Message], *, model: str = "", priority: Level = "P0", max_tokens: int = 0
    ) -> AsyncGenerator[str]:
        """The pieces of an answer in words, as they are written; closing the generator ends the call everywhere.

        An answer that is cut off at its length limit ends with BadAnswer, behind all its pieces.
        """
        ...


class RouterLlm:
    """Asks the router over HTTP; one for each process is enough, and `async with` closes its connections."""

    def __init__(
        self,
        settings: "LlmSettings",
        *,
        session: str = "",
        count: Count | None = None,
        turn: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
    ) -> None:
        """Every call takes a `turn` first and may wait for it; `count` gets the tokens of each answer."""
        self._settings, self._count, self._turn = settings, count, turn
        headers = {"X-Router-Session": session} if session else {}
        self._http = Http({**headers, **make_bearer_header(settings.key)}, settings.timeout)

    async def __aenter__(self) -> "RouterLlm":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._http.close()

    async def ask_text(
        self,
        question: str | Sequence[Message],
        *,
        model: str = "",
        priority: Level = "P3",
        count: Count | None = None,
    ) -> str:
        """An answer in words."""
        return await self._ask(question, model, priority, None, count)

    async def ask_json(
        self,
        question: str | Sequence[Message],
        schema: Json,
        *,
        model: str = "",
        priority: Level = "P3",
        count: Count | None = None,
    ) -> Json:
        """An answer that follows a JSON schema."""
        check = make_checker(schema)
        return check(await self._ask(question, model, priority, schema, count))

    async def ask_object(
        self, question: str | Sequence[Message], shape: type[Shape], *, model: str = "", priority: Level = "P3"
    ) -> Shape:
        """An answer as an object of a pydantic model."""
        answer = await self.ask_json(question, make_schema(shape), model=model, priority=priority)
        try:
            return shape.model_validate(answer)
        except ValidationError as wrong:
            raise BadAnswer(f"The model's answer is no {shape.__name__}: {wrong.errors()[0]['msg']}.") from wrong

    async def check(self) -> None:
        """Whether the router answers at all; Transient if not."""
        url = f"{self._settings.url.rstrip('/')}/api/version"
        answer = await self._http.get(url, whom=self._whom)
        if answer.status >= 500:
            raise Transient(f"The LLM router answered {answer.status}.")

    async def list_models(self) -> list[str]:
        """The models that the router can ask now; Transient with what is wrong if it does not tell."""
        url = f"{self._settings.url.rstrip('/')}/api/tags"
        answer = await self._http.get(url, whom=self._whom)
        if answer.status == 404:
            raise Transient(await self._explain_missing())
        return read_models(read_response(answer, whom=self._whom, key=self._settings.key))

    async def has_urgent_requests(self) -> bool:
        """Whether the router runs a P0 request, or one waits there; False if it does not tell."""
        url = f"{self._settings.url.rstrip('/')}/router/status"
        try:
            found = read_response(await self._http.get(url, whom="The LLM router"), whom="The LLM router")
        except GristmillError:
            return False
        running = cast("list[Json]", found.get("running") or [])
        waiting = cast("Json", found.get("queues") or {})
        return any(one.get("priority") == "P0" for one in running) or bool(waiting.get("P0"))

    async def stream_text(
        self, question: str | Sequence[Message], *, model: str = "", priority: Level = "P0", max_tokens: int = 0
    ) -> AsyncGenerator[str]:
        """The pieces of an answer in words, as they are written."""
        most = min(max_tokens or self._settings.max_tokens, self._settings.max_tokens)
        body = self._make_body(question, model, most) | {"stream": True}
        is_empty = True
        async with self._turn(), aclosing(self._stream(body, priority)) as lines:
            async for line in lines:
                text = _read_content(line)
                is_empty = is_empty and not text.strip()
                if text:
                    yield text
                if line.get("done"):
                    self._check_end(line, most, is_empty=is_empty)
                    return
        raise Transient("The LLM router ended the answer before it was complete.")

    async def _stream(self, body: Json, priority: Level) -> AsyncGenerator[Json]:
        """The lines of an answer; an error, before the first of them or among them, is raised."""
        pieces = self._http.stream(self._chat, orjson.dumps(body), {"X-Ollama-Priority": priority}, whom=self._whom)
        async with aclosing(pieces):
            async for piece in pieces:
                if isinstance(piece, Response):
                    await self._read(piece)
                elif piece.strip():
                    yield read_response(Response(200, None, piece), whom="The LLM router", key=self._settings.key)

    async def _ask(
        self,
        question: str | Sequence[Message],
        model: str,
        priority: Level,
        schema: Json | None,
        count: Count | None,
    ) -> str:
        body: Json = self._make_body(question, model, self._settings.max_tokens) | {"stream": False}
        if schema is not None:
            body["format"] = schema
            # a form is filled in: small models wander off where they may
            body["options"] = {"num_predict": self._settings.max_tokens, "temperature": 0}
        answer = await self._post(body, priority)
        text = _read_content(answer).strip()
        if count is not None:
            count(_read_tokens(answer))
        self._check_end(answer, self._settings.max_tokens, is_empty=not text)
        return text

    def _make_body(self, question: str | Sequence[Message], model: str, max_tokens: int) -> Json:
        named = model or self._settings.model
        if not named:
            raise Permanent("No model was named and GRISTMILL_LLM_MODEL is not set.")
        # a model that repeats itself would else write until its context is full, for minutes
        return {"model": named, "messages": _make_messages(question), "options": {"num_predict": max_tokens}}

    def _check_end(self, answer: Json, most: int, *, is_empty: bool) -> None:
        """Count the tokens, and refuse an answer that is cut off or empty."""
        if self._count is not None:
            self._count(_read_tokens(answer))
        if answer.get("done_reason") == "length":
            own = "llm.max_tokens" if most == self._settings.max_tokens else "ask.answer_tokens"
            limit = f"{most:,} tokens (setting {own})"
            raise BadAnswer(f"The model's answer was cut off at its length limit, {limit} or the model's own.")
        if is_empty:
            raise BadAnswer("The model's answer is empty.")

    async def _post(self, body: Json, priority: Level) -> Json:
        async with self._turn():
            answer = await self._http.post(
                self._chat, orjson.dumps(body), {"X-Ollama-Priority": priority}, whom=self._whom
            )
            return await self._read(answer)

    async def _read(self, answer: Response) -> Json:
        """The answer as an object; a place that is not there is looked at, so that the error says what to mend."""
        try:
            return read_response(answer, whom="The LLM router", key=self._settings.key)
        except Transient as error:
            if answer.status != 404:
                raise
            more = await self._explain_missing()
            raise Transient(f"{error} {more}" if is_told(answer) else more) from None

    async def _explain_missing(self) -> str:
        """What listens there instead of the router, or which models the router has."""
        url = self._settings.url.rstrip("/")
        models = await self._look(f"{url}/api/tags")
        if models is not None:
            return say_models(models)
        root = url.removesuffix("/v1")
        if root != url and await self._look(f"{root}/api/tags") is not None:
            return f"The address of the LLM router ends without /v1: set GRISTMILL_LLM_URL to {hide_credentials(root)}."
        if await self._look(f"{root}/v1/models") is not None:
            return (
                f"{hide_credentials(root)} speaks the OpenAI API and is no LLM router: name it as a backend of the "
                "router (GRISTMILL_ROUTER_GPU_BACKENDS, docs/router.md), and let GRISTMILL_LLM_URL point at the router."
            )
        return f"Nothing at {hide_credentials(url)} answers as the LLM router: set GRISTMILL_LLM_URL to its address."

    async def _look(self, url: str) -> list[str] | None:
        """The models that are listed at an address; None if it lists none."""
        try:
            return read_models(read_response(await self._http.get(url, whom=self._whom), whom=self._whom))
        except GristmillError:
            return None

    @property
    def _chat(self) -> str:
        return f"{self._settings.url.rstrip('/')}/api/chat"

    @property
    def address(self) -> str:
        """Where it asks, without a password."""
        return hide_credentials(self._settings.url)

    @property
    def _whom(self) -> str:
        return f"The LLM router at {self.address}"


def read_models(found: Json) -> list[str]:
    """The names of models, as Ollama or OpenAI lists them."""
    listed: object = found.get("models") or found.get("data")
    if not isinstance(listed, list):
        return []
    rows = [row for one in cast("list[object]", listed) if (row := _as_object(one)) is not None]
    return sorted({str(row.get("name") or row.get("id") or "") for row in rows} - {""})


def say_models(models: Sequence[str]) -> str:
    """Which models one may ask for."""
    if not models:
        return "The LLM router has no model: see docs/router.md on how it gets a backend."
    more = f" and {len(models) - MOST_NAMED} more" if len(models) > MOST_NAMED else ""
    return f"It has {', '.join(models[:MOST_NAMED])}{more}: set GRISTMILL_LLM_MODEL to one of them."


def is_told(answer: Response) -> bool:
    """Whether an error is told in an object with a reason, as a router tells it."""
    try:
        found = _as_object(orjson.loads(answer.body))
    except orjson.JSONDecodeError:
        return False
    return bool(found and found.get("error"))


def _read_content(answer: Json) -> str:
    message = _as_object(answer.get("message")) or {}
    return str(message.get("content") or "")


def _read_tokens(answer: Json) -> TokenCount:
    return TokenCount(answer.get("prompt_eval_count") or 0, answer.get("eval_count") or 0)


def _make_messages(question: str | Sequence[Message]) -> list[Json]:
    turns = [Message("user", question)] if isinstance(question, str) else question
    return [_make_message(turn) for turn in turns]


def _make_message(turn: Message) -> Json:
    message: Json = {"role": turn.role, "content": turn.text}
    if turn.pictures:
        message["images"] = [base64.b64encode(picture.data).decode() for picture in turn.pictures]
    return message


def _as_object(value: object) -> Json | None:
    return cast("Json", value) if isinstance(value, dict) else None


def fence_text(text: str, what: str) -> str:
    """A text of others between two lines that its author cannot have foreseen, so that it cannot end early."""
    fence = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:16]
    return f"The {what} begins and ends with the line {fence}.\n{fence}\n{text}\n{fence}"


def make_schema(shape: type[BaseModel]) -> Json:
    """The JSON schema of a pydantic model."""
    return shape.model_json_schema()


def make_checker(schema: Json) -> Callable[[str], Json]:
    """Make a function that turns an answer into the object that the schema describes, or raises BadAnswer."""
    from jsonschema import ValidationError as SchemaViolation  # noqa: PLC0415 as below

    validator = _make_validator(orjson.dumps(schema))

    def check(text: str) -> Json:
        fenced = FENCE.match(text)
        try:
            found = _as_object(orjson.loads(fenced[1] if fenced else text))
        except orjson.JSONDecodeError as wrong:
            raise BadAnswer("The model's answer is not JSON.") from wrong
        if found is None:
            raise BadAnswer("The model's answer is not a JSON object.")
        if not found and (schema.get("properties") or schema.get("required")):
            raise BadAnswer("The model's answer is an empty object.")
        try:
            validator.validate(found)  # pyright: ignore[reportUnknownMemberType] its types name attrs' internals
        except SchemaViolation as wrong:
            place = "/".join(map(str, wrong.absolute_path)) or "the whole"
            raise BadAnswer(f"The model's answer does not follow the schema at {place}.") from wrong
        return found

    return check


@lru_cache(maxsize=64)  # checking a schema takes longer than checking a hundred answers, and agents have a few of them
def _make_validator(schema: bytes) -> "Validator":
    # it is slow to load, and only answers with a schema need it
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415

    described = orjson.loads(schema)
    try:
        Draft202012Validator.check_schema(described)
    except SchemaError as wrong:
        raise Permanent(f"The schema of the question is wrong: {wrong.message}.") from wrong
    return Draft202012Validator(described)
