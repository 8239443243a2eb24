"""`gristmill worker`, as processes: it serves, tells how it is, stops in good order, and outlives what kills it."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest
from desk import MILL, PATIENCE, SLOW, wait_until, within

from mill import Extract, ReadPage, Render

COMMAND = [sys.executable, "-m", "gristmill", "worker", "--app", MILL]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(url: str) -> Iterator[Start]:
    """Start a worker; whatever is left of it at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [*COMMAND, *map(str, words)],
            env={**os.environ, "GRISTMILL_DATABASE_URL": url},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=PATIENCE)
        process.kill()
        process.communicate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def page(port: int, path: str) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, ""
    except URLError:
        return 0, ""


def test_once_ends_when_all_is_done(cli, start, sent):
    sent(*(Extract(item) for item in range(20)))
    process = start("--once", "--processes", 2, "--json")
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert [json.loads(line)["event"] for line in out.splitlines()] == ["started", "stopped"]
    assert {task["status"] for task in cli("task", "list", "--json").json} == {"completed"}


def test_it_tells_how_it_is_and_stops_when_told(cli, start):
    port = free_port()
    process = start("--port", port, "--queues", "demo-extract", "--name", "the miller")
    wait_until(lambda: page(port, "/readyz")[0] == 200)
    assert page(port, "/healthz")[0] == 200
    assert "worker_active_jobs" in page(port, "/metrics")[1]
    assert cli("queue", "list", "--json").json[0]["workers"] == ["the miller"]
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert "Serving demo-extract with one process" in err
    assert "Stopped" in err
    assert cli("queue", "list", "--json").json[0]["workers"] == []


STUBBORN = SLOW.replace(
    "    await asyncio.sleep(letter.seconds)",
    """    while True:
        try:
            await asyncio.sleep(letter.seconds)
        except asyncio.CancelledError:
            pass""",
)


def test_a_handler_that_will_not_be_interrupted_does_not_hold_up_the_stop(cli, start, tmp_path, monkeypatch):
    (tmp_path / "stubborn.py").write_text(STUBBORN)
    monkeypatch.setenv("GRISTMILL_QUEUE_STOP", "100ms")
    app = f"{tmp_path}/stubborn.py:handlers"
    task = cli("task", "send", "slow.sleep", '{"seconds": 1000}', "--app", app, "--json").json["task"]
    process = start("--app", app)
    wait_until(lambda: cli("task", "show", task, "--json").json["task"]["status"] == "processing")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert cli("task", "show", task, "--json").json["task"]["status"] == "pending"


def test_a_running_task_is_finished_before_it_stops(cli, start, sent):
    (task,) = sent(ReadPage(1))
    process = start()
    wait_until(lambda: cli("task", "show", task, "--json").json["task"]["status"] != "pending")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert cli("task", "show", task, "--json").json["task"]["status"] == "completed"


def test_the_second_signal_stops_it_at_once(cli, start, url, tmp_path):
    (tmp_path / "slow.py").write_text(SLOW)
    app = f"{tmp_path}/slow.py:handlers"
    task = cli("task", "send", "slow.sleep", '{"seconds": 1000}', "--app", app, "--json").json["task"]
    process = start("--app", app)
    wait_until(lambda: cli("task", "show", task, "--json").json["task"]["status"] == "processing")
    process.send_signal(signal.SIGINT)
    wait_until(lambda: within(url, lambda tx: tx.value("SELECT state FROM worker")) == "stopping")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Stopped at once" in err


def test_what_kills_its_process_ends_in_the_dead_letters_and_its_neighbours_do_not(cli, start, sent):
    cli("queue", "set", "demo-poison", "--max-attempts", 2, "--retry-base", "200ms")
    innocent = sent(Render(1), Render(2), *(Extract(item) for item in range(5)))
    (culprit,) = sent(Render(3, poisoned=True))
    process = start("--once")
    _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    found = {task["id"]: task["status"] for task in cli("task", "list", "--json").json}
    assert found.pop(culprit) == "failed"
    assert found == dict.fromkeys(innocent, "completed")
    assert "it ran alone" in cli("dead", "list").out


def test_processes_whose_supervisor_was_killed_stop_by_themselves(cli, start):
    process = start("--queues", "demo-extract")
    wait_until(lambda: [len(queue["workers"]) for queue in cli("queue", "list", "--json").json] == [1])
    process.kill()
    wait_until(lambda: [len(queue["workers"]) for queue in cli("queue", "list", "--json").json] == [0])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--queues", "demo-extrat"], "did you mean demo-extract?"),
        (["--queues", "ocr"], "it has demo-broken"),
        (["--app", "nowhere:handlers"], "There is no module nowhere"),
    ],
)
def test_orders_that_cannot_be_followed_are_refused(cli, words, sentence):
    said = cli("worker", "--app", MILL, *words)
    assert said.code == 1
    assert sentence in said.err


def test_an_app_without_handlers_is_refused(cli, tmp_path):
    (tmp_path / "nothing_bound.py").write_text("handlers = {}\n")
    said = cli("worker", "--app", f"{tmp_path / 'nothing_bound.py'}:handlers")
    assert said.code == 1
    assert "binds no handlers yet" in said.err


def test_a_taken_port_is_refused(cli):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        said = cli("worker", "--app", MILL, "--port", port)
    assert said.code == 1
    assert f"The port 127.0.0.1:{port} cannot be used" in said.err


class Oracle(BaseHTTPRequestHandler):
    """A router whose model has the same answer to everything."""

    ANSWER: ClassVar = {"entities": [{"name": "Nordwind GmbH", "type": "organisation"}], "relations": []}

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        said = {"role": "assistant", "content": json.dumps(self.ANSWER)}
        body = json.dumps({"model": "m", "message": said, "done": True, "done_reason": "stop"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: whoever runs the tests did not ask for it."""


@pytest.fixture
def oracle() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Oracle) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_worker_that_has_asked_an_llm_leaves_no_connection_open_at_its_end(cli, start, oracle, tmp_path, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("GRISTMILL_LLM_URL", oracle)
    monkeypatch.setenv("GRISTMILL_LLM_MODEL", "m")
    (tmp_path / "plan.md").write_text("# Plan\n\nAnna Berg of Nordwind GmbH signed the contract in Hamburg.\n")
    cli("add", tmp_path / "plan.md")
    queues = "documents,ocr,vector,graph,knowledge"  # the answers of this LLM fit the graph alone
    process = start("--once", "--app", "gristmill.app:handlers", "--queues", queues)
    _, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, cli("document", "show", 1, "--json").json["status"]) == (0, "completed")
    told = [line for line in err.splitlines() if "[info" not in line]  # what it logs in good order
    assert [line.split()[0] for line in told] == ["Serving", "Stopped;"], err
