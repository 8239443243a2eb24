"""Schemathesis over the whole OpenAPI document: no server error, no undocumented answer, the right content types.

The server runs in a process of its own, on a real socket: Hypothesis watches the random numbers of its process, and
would take those that a server in a thread draws for a fault of the test. Every operation is called with values that fit
its schema and with values that do not; `--hypothesis-profile=thorough` tries more of each. Calls change the database,
so the same call may be answered otherwise the second time: each answer is judged when it comes, and none is repeated.
"""

import asyncio
import multiprocessing
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from multiprocessing.connection import Connection

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import APIOperation, Case, CheckContext, GenerationMode, Response
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
PROCESSES = multiprocessing.get_context("spawn")
EXAMPLES = 4  # of each operation that fit, and as many that do not
LONGEST = 4_000  # characters that are told of one failure
MORE = 60  # if somebody asks for thoroughness
BUDGET = timedelta(seconds=20)  # of a call by cron, which answers before it is used up …
ENDLESS = frozenset({"/api/items/status/events"})  # it tells what changes until its listener leaves: test_web_items.py
PATIENCE = 120.0  # … and seconds for any answer, also on a busy machine; events of a document go on for ever


@dataclass
class Server:
    """A server that runs, and keys for it."""

    url: str
    document: dict
    keys: Iterator[str]


@pytest.fixture
def served(url: str) -> Iterator[Server]:
    near, far = PROCESSES.Pipe()
    process = PROCESSES.Process(target=run_server, args=(url, far))
    process.start()
    try:
        assert near.poll(60)
        place = near.recv()
        yield Server(place, httpx.get(f"{place}/api/openapi.json", timeout=60).json(), make_keys(url))
    finally:
        near.send("stop")
        process.join(30)
        process.kill()


def run_server(url: str, parent: Connection) -> None:
    """The body of the server's process."""
    ingest.PATIENCE = 0.2  # no worker runs here: who waits for one gets a 202
    asyncio.run(serve_until_told(url, parent))


async def serve_until_told(url: str, parent: Connection) -> None:
    web = {"port": 0, "rate": 10_000, "burst": 1_000_000}
    chosen = Settings(web=web, records={"budget": BUDGET})  # type: ignore[arg-type]
    async with Database(url) as db, Finder(db, chosen) as finder, open_web(db, chosen, ROOMS, finder) as serving:
        parent.send(f"http://127.0.0.1:{serving.port}")
        await asyncio.to_thread(parent.recv)


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
        if operation.path in ENDLESS:
            continue
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            if operation.path.startswith("/api/keys"):
                key = next(served.keys)
            try:
                tried += try_operation(served, operation, mode, key, failures.append)
            except Exception as error:  # noqa: BLE001 all operations are tried, all failures told
                failures.append(describe_failure(operation.label, mode, error))
    assert tried > 20
    assert not failures, "\n\n".join(failures)


def try_operation(
    server: Server, operation: APIOperation, mode: GenerationMode, key: str, tell: Callable[[str], None]
) -> int:
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
        try:
            case.call_and_validate(base_url=server.url, headers=headers, checks=CHECKS, timeout=PATIENCE)
        except (Exception, FailureGroup) as error:  # noqa: BLE001 Hypothesis would repeat the call, and lose the reason
            tell(describe_failure(operation.label, mode, error))

    with suppress(Unsatisfiable):  # an operation without parameters cannot be called wrongly
        call()
    return tried


def describe_failure(label: str, mode: GenerationMode, error: BaseException) -> str:
    """The failure with everything within it: a group says no more than how many it holds."""
    lines = (line for one in flatten(error) for line in traceback.format_exception_only(one))
    return f"{label} ({mode.value}): {''.join(lines)}"[:LONGEST]


def flatten(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from flatten(one)
    else:
        yield error
