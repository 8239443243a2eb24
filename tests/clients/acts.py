"""What every client does, in its own words: chat, stream, tool call, structured output, embedding."""

import asyncio
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

# litellm would fetch a price list, and llm would write into the home folder
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["LLM_USER_PATH"] = tempfile.mkdtemp(prefix="llm-")

import instructor
import litellm
import llm
import ollama
import openai
from langchain_ollama import ChatOllama, OllamaEmbeddings
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.embeddings.ollama import OllamaEmbedding
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.llms.ollama import Ollama as LlamaIndexOllama
from llama_index.llms.openai_like import OpenAILike
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

MODEL, EMBEDDER = "plain", "my-embedding:8b"
ASK = [{"role": "user", "content": "hello"}]
TEXTS = ["a", "bcd"]


class City(BaseModel):
    """A city, and for how many days."""

    city: str
    days: int = 3


SCHEMA = City.model_json_schema()
PARAMETERS = {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}}
WEATHER: Any = {
    "type": "function",
    "function": {"name": "weather", "description": "The weather of a city.", "parameters": PARAMETERS},
}


def weather(city: str, days: int) -> str:
    """The weather of a city."""
    return f"sunny in {city} for {days} days"


class OpenAI:
    """The official client, by chat completions."""

    def __init__(self, url: str) -> None:
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)

    def chat(self) -> Any:
        answer = self.client.chat.completions.create(model=MODEL, messages=ASK)  # type: ignore[arg-type]
        usage = answer.usage
        assert usage is not None
        return answer.choices[0].message.content, answer.choices[0].finish_reason, usage.total_tokens

    def stream(self) -> Any:
        stream = self.client.chat.completions.create(model=MODEL, messages=ASK, stream=True)  # type: ignore[arg-type]
        return [chunk.choices[0].delta.content for chunk in stream if chunk.choices and chunk.choices[0].delta.content]

    def tool(self) -> Any:
        answer = self.client.chat.completions.create(model=MODEL, messages=ASK, tools=[WEATHER])  # type: ignore[arg-type]
        calls = answer.choices[0].message.tool_calls or []
        return [(call.function.name, json.loads(call.function.arguments)) for call in calls]  # type: ignore[union-attr]

    def structured(self) -> Any:
        answer = self.client.chat.completions.parse(model=MODEL, messages=ASK, response_format=City)  # type: ignore[arg-type]
        return answer.choices[0].message.parsed

    def embedding(self) -> Any:
        return [row.embedding for row in self.client.embeddings.create(model=EMBEDDER, input=TEXTS).data]


class OpenAIResponses(OpenAI):
    """The official client, by responses."""

    def chat(self) -> Any:
        answer = self.client.responses.create(model=MODEL, input="hello")
        assert answer.usage is not None
        return answer.output_text, answer.status, answer.usage.total_tokens

    def stream(self) -> Any:
        with self.client.responses.stream(model=MODEL, input="hello") as stream:
            words = [event.delta for event in stream if event.type == "response.output_text.delta"]
            return words, stream.get_final_response().output_text

    def tool(self) -> Any:
        tools: Any = [{"type": "function", "strict": False, **WEATHER["function"]}]
        answer = self.client.responses.create(model=MODEL, input="hello", tools=tools)
        return [(item.name, json.loads(item.arguments)) for item in answer.output if item.type == "function_call"]

    def structured(self) -> Any:
        return self.client.responses.parse(model=MODEL, input="hello", text_format=City).output_parsed


class Ollama:
    """The official client."""

    def __init__(self, url: str) -> None:
        self.client = ollama.Client(host=url)

    def chat(self) -> Any:
        answer = self.client.chat(MODEL, ASK)
        return answer.message.content, answer.done_reason, answer.prompt_eval_count, answer.eval_count

    def stream(self) -> Any:
        words = [piece.message.content for piece in self.client.chat(MODEL, ASK, stream=True)]
        return [word for word in words if word]

    def tool(self) -> Any:
        calls = self.client.chat(MODEL, ASK, tools=[weather]).message.tool_calls or []
        return [(call.function.name, dict(call.function.arguments)) for call in calls]

    def structured(self) -> Any:
        return City.model_validate_json(self.client.chat(MODEL, ASK, format=SCHEMA).message.content or "")

    def embedding(self) -> Any:
        return [list(row) for row in self.client.embed(EMBEDDER, TEXTS).embeddings]


class LangChain:
    """What both of LangChain's clients have in common."""

    model: Any
    embedder: Any

    def chat(self) -> Any:
        answer = self.model.invoke("hello")
        return answer.content, answer.usage_metadata["total_tokens"]

    def stream(self) -> Any:
        return [chunk.content for chunk in self.model.stream("hello") if chunk.content]

    def tool(self) -> Any:
        return [(call["name"], call["args"]) for call in self.model.bind_tools([weather]).invoke("hello").tool_calls]

    def structured(self) -> Any:
        return self.model.with_structured_output(City).invoke("hello")

    def embedding(self) -> Any:
        return self.embedder.embed_documents(TEXTS)


class LangChainOllama(LangChain):
    def __init__(self, url: str) -> None:
        self.model = ChatOllama(model=MODEL, base_url=url)
        self.embedder = OllamaEmbeddings(model=EMBEDDER, base_url=url)


class LangChainOpenAI(LangChain):
    def __init__(self, url: str) -> None:
        common: Any = {"base_url": f"{url}/v1", "api_key": "any", "max_retries": 0}
        self.model = ChatOpenAI(model=MODEL, **common)
        # without this it sends tokens, which only OpenAI's own models understand
        self.embedder = OpenAIEmbeddings(model=EMBEDDER, check_embedding_ctx_length=False, **common)


class LlamaIndex:
    """What both of LlamaIndex's clients have in common."""

    model: Any
    embedder: Any

    def chat(self) -> Any:
        return self.model.chat([ChatMessage(role="user", content="hello")]).message.content

    def stream(self) -> Any:
        pieces = self.model.stream_chat([ChatMessage(role="user", content="hello")])
        return [piece.delta for piece in pieces if piece.delta]

    def tool(self) -> Any:
        tool = FunctionTool.from_defaults(weather)
        answer = self.model.chat_with_tools([tool], user_msg="hello")
        calls = self.model.get_tool_calls_from_response(answer)
        return [(call.tool_name, call.tool_kwargs) for call in calls]

    def structured(self) -> Any:
        return self.model.as_structured_llm(City).chat([ChatMessage(role="user", content="hello")]).raw

    def embedding(self) -> Any:
        return self.embedder.get_text_embedding_batch(TEXTS)


class LlamaIndexOllamaClient(LlamaIndex):
    def __init__(self, url: str) -> None:
        self.model = LlamaIndexOllama(model=MODEL, base_url=url, context_window=4096, request_timeout=60)
        self.embedder = OllamaEmbedding(model_name=EMBEDDER, base_url=url)


class LlamaIndexOpenAI(LlamaIndex):
    def __init__(self, url: str) -> None:
        common: Any = {"api_base": f"{url}/v1", "api_key": "any", "max_retries": 0}
        kind: Any = {"is_chat_model": True, "is_function_calling_model": True, "context_window": 4096}
        self.model = OpenAILike(model=MODEL, **common, **kind)
        self.embedder = OpenAILikeEmbedding(model_name=EMBEDDER, **common)


class LiteLLM:
    """LiteLLM as a library, which speaks either API by the prefix of the model's name."""

    def __init__(self, url: str, chat: str, embed: str, path: str) -> None:
        self.chat_model, self.embed_model = f"{chat}/{MODEL}", f"{embed}/{EMBEDDER}"
        self.common: Any = {"api_base": f"{url}{path}", "api_key": "any", "num_retries": 0}

    def _ask(self, **more: Any) -> Any:
        return litellm.completion(model=self.chat_model, messages=ASK, **self.common, **more)

    def chat(self) -> Any:
        answer = self._ask()
        return answer.choices[0].message.content, answer.choices[0].finish_reason

    def stream(self) -> Any:
        words = [chunk.choices[0].delta.content for chunk in self._ask(stream=True) if chunk.choices]
        return [word for word in words if word]

    def tool(self) -> Any:
        calls = self._ask(tools=[WEATHER]).choices[0].message.tool_calls or []
        return [(call.function.name, json.loads(call.function.arguments)) for call in calls]

    def structured(self) -> Any:
        return City.model_validate_json(self._ask(response_format=City).choices[0].message.content)

    def embedding(self) -> Any:
        rows = litellm.embedding(model=self.embed_model, input=TEXTS, **self.common).data
        return [row["embedding"] for row in rows]


class Llm:
    """Simon Willison's llm, whose OpenAI models are listed in a file."""

    def __init__(self, url: str) -> None:
        row = {"model_id": f"fake-{url}", "model_name": MODEL, "api_base": f"{url}/v1", "api_key_name": "any"}
        rows = [{**row, "supports_tools": True, "supports_schema": True}]
        Path(os.environ["LLM_USER_PATH"], "extra-openai-models.yaml").write_text(json.dumps(rows))  # JSON is YAML, too
        self.url, self.model = url, llm.get_model(f"fake-{url}")
        self.model.key = "any"

    def chat(self) -> Any:
        return self.model.prompt("hello", stream=False).text()

    def stream(self) -> Any:
        return [piece for piece in self.model.prompt("hello") if piece]

    def tool(self) -> Any:
        answer = self.model.prompt("hello", tools=[weather], stream=False)
        return [(call.name, call.arguments) for call in answer.tool_calls()]

    def structured(self) -> Any:
        return City.model_validate_json(self.model.prompt("hello", schema=City, stream=False).text())

    def embedding(self) -> Any:
        model = llm.get_embedding_model("3-small")
        model.key = "any"
        os.environ["OPENAI_BASE_URL"] = f"{self.url}/v1"
        try:
            return list(model.embed_multi(TEXTS))
        finally:
            del os.environ["OPENAI_BASE_URL"]


class Instructor:
    """instructor: structured output by a tool or by a schema, also piece by piece."""

    def __init__(self, url: str) -> None:
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="any", max_retries=0)
        self.by_tool = instructor.from_openai(client, mode=instructor.Mode.TOOLS)
        self.by_schema = instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA)
        self.common: Any = {"model": MODEL, "messages": ASK, "max_retries": 0}

    def chat(self) -> Any:
        return self.by_tool.chat.completions.create(response_model=None, **self.common).choices[0].message.content

    def stream(self) -> Any:
        return list(self.by_tool.chat.completions.create_partial(response_model=City, **self.common))[-1].model_dump()

    def tool(self) -> Any:
        return self.by_tool.chat.completions.create(response_model=City, **self.common).model_dump()

    def structured(self) -> Any:
        return self.by_schema.chat.completions.create(response_model=City, **self.common).model_dump()


class PydanticAI:
    """pydantic-ai's agents, which call tools and go on with what they said."""

    def __init__(self, url: str, kind: Callable[..., Any] = OpenAIChatModel) -> None:
        self.model = kind(MODEL, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="any"))

    def chat(self) -> Any:
        found = Agent(self.model).run_sync("hello")
        return found.output, found.usage.total_tokens

    def stream(self) -> Any:
        async def pieces() -> list[str]:
            async with Agent(self.model).run_stream("hello") as stream:
                return [piece async for piece in stream.stream_text(delta=True, debounce_by=None)]

        return asyncio.run(pieces())

    def tool(self) -> Any:
        return Agent(self.model, tools=[weather]).run_sync("hello").output

    def structured(self) -> Any:
        by_tool = Agent(self.model, output_type=City).run_sync("hello").output
        by_schema = Agent(self.model, output_type=NativeOutput(City)).run_sync("hello").output
        return by_tool, by_schema


CLIENTS: dict[str, Callable[[str], Any]] = {
    "openai": OpenAI,
    "openai-responses": OpenAIResponses,
    "ollama": Ollama,
    "langchain-ollama": LangChainOllama,
    "langchain-openai": LangChainOpenAI,
    "llama-index-ollama": LlamaIndexOllamaClient,
    "llama-index-openai": LlamaIndexOpenAI,
    "litellm-ollama": lambda url: LiteLLM(url, "ollama_chat", "ollama", ""),
    "litellm-openai": lambda url: LiteLLM(url, "openai", "openai", "/v1"),
    "llm": Llm,
    "instructor": Instructor,
    "pydantic-ai": PydanticAI,
    "pydantic-ai-responses": lambda url: PydanticAI(url, OpenAIResponsesModel),
}
