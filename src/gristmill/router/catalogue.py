"""Which models there are, across all backends, in the words of both APIs."""

import time
from typing import Any

from gristmill.router.backends import Adapter
from gristmill.router.rows import LoadedRow, ModelDetails, ModelRow, OpenAIModelRow
from gristmill.router.scheduler import Scheduler
from gristmill.router.upstream import AttemptFailed
from gristmill.router.wire import BadRequest, canonical, model_missing

Json = dict[str, Any]


class Catalogue:
    """Answers questions of clients about models."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    def tags(self) -> dict[str, list[ModelRow]]:
        """/api/tags: every model once, by its first backend."""
        found: dict[str, ModelRow] = {}
        for adapter in self._scheduler.adapters.values():
            for name, item in self._list_models(adapter).items():
                found.setdefault(name, item)
        return {"models": [found[name] for name in sorted(found)]}

    def names(self) -> list[str]:
        return [item["name"] for item in self.tags()["models"]]

    def _list_models(self, adapter: Adapter) -> dict[str, ModelRow]:
        models = adapter.models or {}
        if adapter.speaks == "ollama":
            return {name: item for name, item in models.items() if adapter.serves(name)}
        return {
            canonical(name): _as_tag(name)
            for name in [*models, *_plain(adapter.spec.models)]
            if adapter.serves(canonical(name))
        }

    def list_loaded(self) -> dict[str, list[LoadedRow]]:
        """/api/ps: the models in memory, and where they are."""
        rows = list[LoadedRow]()
        for adapter in self._scheduler.adapters.values():
            rows.extend(LoadedRow({**row, "backend": adapter.name}) for row in adapter.loaded.values())
        return {"models": rows}

    def version(self) -> dict[str, str]:
        """/api/version: the oldest version of the backends, because clients choose their features by it."""
        versions = [adapter.version for adapter in self._scheduler.adapters.values() if adapter.version]
        return {"version": min(versions, key=_comparable) if versions else "0.0.0"}

    async def show(self, body: Json) -> Json:
        """/api/show, asked of a backend that has the model."""
        model = body.get("model") or body.get("name") or ""
        if not isinstance(model, str) or not model:
            raise BadRequest("model is required")
        having = [adapter for adapter in self._scheduler.adapters.values() if adapter.serves(canonical(model))]
        for adapter in having:
            if adapter.speaks == "ollama":
                try:
                    return await adapter.ask("POST", "/api/show", body)
                except AttemptFailed:
                    continue
        if not having:
            raise model_missing(model, self.names())
        return {
            "modelfile": "",
            "parameters": "",
            "template": "",
            "details": _details(),
            "model_info": {},
            "capabilities": ["completion"],
        }

    def openai(self) -> Json:
        """/v1/models."""
        return {"object": "list", "data": [_as_openai(item["name"]) for item in self.tags()["models"]]}

    def openai_model(self, model: str) -> OpenAIModelRow:
        """/v1/models/{model}."""
        if not any(adapter.serves(canonical(model)) for adapter in self._scheduler.adapters.values()):
            raise model_missing(model, self.names())
        return _as_openai(model)


def _plain(patterns: tuple[str, ...]) -> list[str]:
    return [name for name in patterns if not set(name) & set("*?[")]


def _as_openai(name: str) -> OpenAIModelRow:
    return {
        "id": name.removesuffix(":latest"),
        "object": "model",
        "created": int(time.time()),
        "owned_by": "gristmill",
    }


def _as_tag(name: str) -> ModelRow:
    full = canonical(name)
    return {
        "name": full,
        "model": full,
        "modified_at": "1970-01-01T00:00:00Z",
        "size": 0,
        "digest": "",
        "details": _details(),
    }


def _details() -> ModelDetails:
    return {
        "parent_model": "",
        "format": "",
        "family": "",
        "families": [],
        "parameter_size": "",
        "quantization_level": "",
    }


def _comparable(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))
