"""Schemathesis over the whole OpenAPI document: no server error, no undocumented answer, the right content types.

The server runs in a thread of its own, on a real socket. Every operation is called with values that fit its schema and
with values that do not; `--hypothesis-profile=thorough` tries more of each.
"""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import Case, CheckContext, GenerationMode, Response
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serving import OPERATOR

from gristmill.app import ROOMS
from gristmill.db import Database
from gristmill.knowledge import Finder
from gristmill.settings import Settings
from gristmill.web import add_key, open_web
from gristmill.web.api import ingest


def no_fault_of_ours(ctx: CheckContext, response: Response, case: Case) -> bool | None:
    """No router runs here: its routes say so with a 503. Nothing else may fail."""
    if response.status_code == 503 and case.path.startswith("/api/router"):
        return None
    return not_a_server_error(ctx, response, case)


CHECKS = [
    no_fault_of_ours,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = 4  # of each operation that fit, and as many that do not
MORE = 60  # if somebody asks for thoroughness
PATIENCE = 60.0  # seconds for an answer; events of a document go on for ever


@dataclass
class Server:
    """A server in a thread, for clients that wait."""

    url: str
    document: dict
    keys: Iterator[str]


@pytest.fixture
def served(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(ingest, "PATIENCE", 0.2)  # no worker runs here: who waits for one gets a 202
    started, stop, found = threading.Event(), threading.Event(), list[str]()
    running = threading.Thread(target=lambda: asyncio.run(run_server(url, started, stop, found)), daemon=True)
    running.start()
    assert started.wait(30)
    try:
        document = httpx.get(f"{found[0]}/api/openapi.json").json()
        yield Server(found[0], document, make_keys(url))
    finally:
        stop.set()
        running.join(30)


async def run_server(url: str, started: threading.Event, stop: threading.Event, found: list[str]) -> None:
    chosen = Settings(web={"port": 0, "rate": 10_000, "burst": 1_000_000})  # type: ignore[arg-type]
    async with Database(url) as db, Finder(db, chosen) as finder, open_web(db, chosen, ROOMS, finder) as serving:
        found.append(f"http://127.0.0.1:{serving.port}")
        started.set()
        await asyncio.to_thread(stop.wait)


def make_keys(url: str) -> Iterator[str]:
    """Fresh keys of the operator: some operations revoke keys."""
    number = 0
    while True:
        number += 1
        yield asyncio.run(make_key(url, f"fuzz {number}"))


async def make_key(url: str, name: str) -> str:
    async with Database(url, size=1) as db, db.transaction() as tx:
        return (await add_key(tx, OPERATOR, name, "admin")).secret


def test_no_request_that_the_document_allows_or_forbids_is_answered_with_anything_but_what_it_says(
    served: Server,
) -> None:
    schema = schemathesis.openapi.from_dict(served.document)
    failures: list[str] = []
    tried, key = 0, next(served.keys)
    for found in schema.get_all_operations():
        operation = found.ok()
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if operation.path.startswith("/api/keys"):
                key = next(served.keys)
            try:
                tried += try_operation(served, operation, mode, key)
            except (Exception, FailureGroup) as error:  # noqa: BLE001 all operations are tried, all failures told
                failures.append(f"{operation.label} ({mode.value}): {type(error).__name__}: {error}"[:2000])
    assert tried > 20
    assert not failures, "\n\n".join(failures)


def try_operation(server: Server, operation, mode: GenerationMode, key: str) -> int:
    tried = 0

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=MORE if settings().max_examples > 500 else EXAMPLES,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    def call(case: Case) -> None:
        nonlocal tried
        tried += 1
        headers = {"Authorization": f"Bearer {key}"}
        case.call_and_validate(base_url=server.url, headers=headers, checks=CHECKS, timeout=PATIENCE)

    with suppress(Unsatisfiable):  # an operation without parameters cannot be called wrongly
        call()
    return tried
