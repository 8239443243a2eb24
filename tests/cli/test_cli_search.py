"""`gristmill search` asks a running `gristmill up`, and says the same without one."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from desk import within

sys.path.insert(0, str(Path(__file__).parents[1] / "knowledge"))

from shelf import chunked, placed, searchable

from gristmill.db import Tx
from gristmill.knowledge import Finder
from gristmill.scopes import Scope

PATIENCE = 60.0  # seconds


async def _fill(tx: Tx) -> None:
    plan = await placed(tx, name="plan.md", title="The plan", scope=Scope("acme"), urn="file:///srv/the%20plan.md")
    for chunk in await chunked(tx, plan, "New millstones come in May."):
        await searchable(tx, chunk)


@pytest.fixture
def up(cli, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """A `gristmill up` that serves searches of a database with one document."""
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    within(url, _fill)
    process = subprocess.Popen([sys.executable, "-m", "gristmill", "up"], stderr=subprocess.PIPE)
    try:
        deadline = time.monotonic() + PATIENCE
        while not (tmp_path / "local.sock").exists():
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE)


def test_a_running_up_is_asked_and_the_answer_is_the_same_without_it(cli, up, monkeypatch):
    for limit in ("CONNECT", "ANSWER"):  # on a busy machine, an `up` that has just begun answers late
        monkeypatch.setattr(f"gristmill.web.local.client.{limit}", PATIENCE)
    questions = [
        ("search", "millstones", "--alpha", "0", "--client", "acme"),
        ("search", "millstones", "--alpha", "0", "--client", "acme", "--json"),
        ("search", "millstones", "--alpha", "0", "--client", "rival", "--json"),
        ("search", "millstones", "--alpha", "0", "--client", "acme", "--type", "jpg"),
        ("search", "millstones", "--alpha", "0", "--json"),
        ("search", "millstones", "--alpha", "0", "--client", "GLOBAL"),
        ("search", "sand " * 300, "--alpha", "0", "--client", "GLOBAL"),
    ]
    with monkeypatch.context() as alone:
        alone.setattr(Finder, "find", None)  # this process cannot search by itself
        warm = [cli(*words) for words in questions]
    up.send_signal(signal.SIGTERM)
    up.wait(PATIENCE)
    assert warm == [cli(*words) for words in questions]
    shown, hits, lack, refused, everything, of_all, long = warm
    assert "The plan  plan.md  document 1  page 1" in shown.out
    assert "    /srv/the plan.md\n" in shown.out
    assert [hit["name"] for hit in hits.json["hits"]] == ["plan.md"]
    assert lack.json["note"].startswith("Nothing belongs to rival")
    assert (refused.code, refused.err) == (1, "No document is of the type “jpg”: there are markdown.\n")
    assert [hit["client"] for hit in everything.json["hits"]] == ["acme"]  # the operator sees all of them
    assert of_all.out == "Nothing fits “millstones”.\n"
    assert len(long.out) < 250
