"""A provider of embeddings that behaves like real ones: it counts tokens and credit, is busy, refuses, and errs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from pydantic import SecretStr

from gristmill.models import FakeEmbedder
from gristmill.settings import EmbeddingSettings

KEY = "sk-or-secret"


@dataclass
class Provider:
    """`credit` is spent by every call; without any left it answers 402."""

    credit: float = 100.0
    price: float = 0.01  # of a text
    busy: int = 0  # so many calls are answered 429
    dimensions: int = 0  # of its vectors, where they are wrong
    poison: str = ""  # a text that it refuses
    tells_usage: bool = True
    texts: list[str] = field(default_factory=list)
    calls: int = 0

    async def embed(self, request: web.Request) -> web.Response:
        self.calls += 1
        if request.headers["Authorization"] != f"Bearer {KEY}":
            return self._refuse(401, f"Incorrect API key provided: {request.headers['Authorization']}")
        texts = (await request.json())["input"]
        if self.busy:
            self.busy -= 1
            return web.json_response({"error": {"message": "slow down"}}, status=429, headers={"Retry-After": "0"})
        if self.credit < self.price * len(texts):
            return self._refuse(402, "Insufficient credits. Add more at the settings page")
        if self.poison and any(self.poison in text for text in texts):
            return self._refuse(400, "this text cannot be embedded")
        self.credit -= self.price * len(texts)
        self.texts += texts
        return web.json_response(await self._answer(texts))

    async def _answer(self, texts: list[str]) -> dict[str, Any]:
        fake = FakeEmbedder()
        if self.dimensions:
            fake.dimensions = self.dimensions
        vectors = [memoryview(one).cast("f").tolist() for one in await fake.embed(texts)]
        answer: dict[str, Any] = {"data": [{"index": n, "embedding": one} for n, one in enumerate(vectors)]}
        tokens = sum(len(text.split()) for text in texts)
        if self.tells_usage:
            answer["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens, "cost": self.price * len(texts)}
        return answer

    async def credits(self, request: web.Request) -> web.Response:
        return web.json_response({"data": {"total_credits": 100.0, "total_usage": 100.0 - self.credit}})

    def _refuse(self, status: int, why: str) -> web.Response:
        return web.json_response({"error": {"message": why, "code": status}}, status=status)


@asynccontextmanager
async def open_provider(**behaviour: Any) -> AsyncIterator[tuple[Provider, EmbeddingSettings]]:
    """The provider, and the settings that lead to it."""
    provider = Provider(**behaviour)
    app = web.Application()
    app.router.add_post("/api/v1/embeddings", provider.embed)
    app.router.add_get("/api/v1/credits", provider.credits)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield (
            provider,
            EmbeddingSettings(
                kind="openai", url=f"http://127.0.0.1:{port}/api", model="small", key=SecretStr(KEY), price=20.0
            ),
        )
    finally:
        await runner.cleanup()
