"""The whole surface of the web, found by itself: every route and page, who may call it, and a request that fits it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import getclosurevars
from typing import Any, get_args
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts

from gristmill.serving import Role

# whoever calls: these ask for no key, or ask for it in their own way
CRON = {"/api/workers/ingestion", "/api/workers/vectorization", "/api/workers/cleanup"}
OPEN = {"/healthz", "/readyz", "/metrics", "/sign-in", "/sign-in/link", "/static/{version}/{name}", *CRON}


@dataclass(frozen=True)
class Call:
    """A method of a route, and who may use it."""

    method: str
    path: str
    role: Role | None  # None: nobody is asked
    operator: bool
    route: APIRoute

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def is_api(self) -> bool:
        return self.path.startswith("/api")

    @property
    def is_for_programs(self) -> bool:
        """Whether an error is a problem, and no page: also at addresses that programs of others expect."""
        return self.is_api or self.path.startswith(("/v1/", "/mcp"))

    @property
    def is_reading(self) -> bool:
        return self.method == "GET"

    @property
    def parameters(self) -> list[str]:
        return re.findall(r"{(\w+)(?::\w+)?}", self.path)

    @property
    def queries(self) -> dict[str, type | None]:
        """The parameters behind the question mark, with their types."""
        return {
            field.alias: pick_type(field.field_info.annotation)
            for one in walk(self.route.dependant)
            for field in one.query_params
        }

    def fill(self, values: Mapping[str, str]) -> str:
        """The address with these values for its parameters."""
        return re.sub(r"{(\w+)(?::\w+)?}", lambda found: quote(values[found[1]], safe=""), self.path)


def pick_type(annotation: Any) -> type | None:
    """The type of a value that may also be missing."""
    kinds = [one for one in get_args(annotation) if one is not type(None)] or [annotation]
    return kinds[0] if isinstance(kinds[0], type) else None


def find_calls(app: FastAPI) -> list[Call]:
    return [
        Call(method, context.path, *find_role(context.dependant), context.original_route)
        for context in iter_route_contexts(app.routes)
        if isinstance(context.original_route, APIRoute)
        for method in sorted(context.methods - {"HEAD"})
    ]


def find_role(dependant: Dependant) -> tuple[Role | None, bool]:
    """The role that a route asks for, and whether only of the operator: what `require` was called with."""
    for one in walk(dependant):
        if getattr(one.call, "__qualname__", "") == "require.<locals>.find_caller":
            asked = getclosurevars(one.call).nonlocals
            return asked["role"], asked["operator"]
    return None, False


def walk(dependant: Dependant) -> Iterator[Dependant]:
    yield dependant
    for one in dependant.dependencies:
        yield from walk(one)


# --- requests that fit


def make_body(app: FastAPI, call: Call, number: int, text: str) -> tuple[Any, dict[str, Any]]:
    """What a route wants as its body and its query, with this number and text wherever a value is free."""
    if not call.is_api:
        return None, {}
    document = app.openapi()
    operation = document["paths"][call.path][call.method.lower()]
    query = {
        one["name"]: make_value(document, one["schema"], number, text)
        for one in operation.get("parameters", [])
        if one["in"] == "query" and one.get("required")
    }
    content = operation.get("requestBody", {}).get("content", {})
    kind = content.get("application/json")
    return (None if kind is None else make_value(document, kind.get("schema", {}), number, text)), query


def make_value(document: dict[str, Any], schema: dict[str, Any], number: int, text: str) -> Any:
    if "$ref" in schema:
        return make_value(document, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], number, text)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return make_value(document, schema[choice][0], number, text)
    if "const" in schema or "enum" in schema:
        return schema.get("const") or schema["enum"][0]
    match schema.get("type"):
        case "object":
            fields = schema.get("properties", {})
            return {
                name: make_value(document, one, number, text)
                for name, one in fields.items()
                if name in schema.get("required", ()) or {"id", "ids"} & set(name.split("_"))
            }
        case "array":
            return [make_value(document, schema.get("items", {}), number, text)]
        case "integer":
            return min(number, schema.get("maximum", number))
        case "number":
            return schema.get("minimum", 0.5)
        case "boolean":
            return False
        case _:
            return text
