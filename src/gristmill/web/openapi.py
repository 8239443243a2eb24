"""The OpenAPI document: beside what routes say of themselves, every answer that the gate can give, exactly."""

from collections.abc import Iterator, Sequence
from http import HTTPStatus
from typing import Any

from fastapi.openapi.utils import get_openapi
from starlette.routing import BaseRoute

from gristmill.web.gate.writes import describe_header

VERSION = "0.1.0"  # of the API
WRITING = ("post", "put", "patch", "delete")
OPEN = ("/healthz", "/readyz")
PROBLEM = {
    "type": "object",
    "title": "Problem",
    "description": "What went wrong (RFC 9457): `detail` is a sentence for a person.",
    "properties": {
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
    "required": ["title", "status", "detail"],
}
DESCRIPTION = """Everything that the console does. Send a key as `Authorization: Bearer gm_…`.
Errors are `application/problem+json` with a sentence in `detail`. Lists are `{"items": […], "next": cursor}`. What is
polled has an ETag. A write with an `Idempotency-Key` is done once."""

Operation = dict[str, Any]


def describe_api(title: str, routes: Sequence[BaseRoute]) -> dict[str, Any]:
    return complete(get_openapi(title=title, version=VERSION, description=DESCRIPTION, routes=routes))


def complete(document: dict[str, Any]) -> dict[str, Any]:
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = PROBLEM
    for unused in ("HTTPValidationError", "ValidationError"):  # FastAPI's own shape of errors, which we do not use
        schemas.pop(unused, None)
    document["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    for path, method, operation in find_operations(document):
        add_problems(path, method, operation)
    return document


def find_operations(document: dict[str, Any]) -> Iterator[tuple[str, str, Operation]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def add_problems(path: str, method: str, operation: Operation) -> None:
    operation["security"] = [] if path in OPEN else [{"key": []}]
    if method in WRITING:
        operation.setdefault("parameters", []).append(describe_header())
    if method == "get" and answers_json(operation):
        operation["responses"]["304"] = {"description": "Nothing has changed since the ETag of If-None-Match."}
    for status in sorted(list_problems(path, method, operation)):
        operation["responses"][str(status)] = describe_problem_answer(status)


def list_problems(path: str, method: str, operation: Operation) -> set[int]:
    """The problems that this route can end with; what a route names itself stays."""
    named = {int(status) for status in operation["responses"] if status.isdecimal() and int(status) >= 400}
    found = named | {503}  # the database is away
    if path not in OPEN:
        found |= {401, 403, 429}
    if "{" in path or any(one["name"] in ("client", "project") for one in operation.get("parameters", [])):
        found.add(404)
    if method in WRITING:
        found |= {404, 409, 413, 422, 507}
    if operation.get("parameters") or "requestBody" in operation:
        found.add(422)
    return found


def answers_json(operation: Operation) -> bool:
    return "application/json" in operation["responses"].get("200", {}).get("content", {})


def describe_problem_answer(status: int) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": HTTPStatus(status).phrase, "content": content}
