"""Servers of repositories that refuse, break off or hang up: it costs a delay, and never a commit or the clone."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web
from farm import Farm, a_farm
from git_server import GitServer, serve_git
from worlds import GitWorld

from gristmill.db import Database
from gristmill.errors import Overloaded, Permanent, Transient
from gristmill.queue import Done, Snooze
from gristmill.sources.git import connector
from gristmill.sources.git.connector import GitOptions, hold_folder, prepare_clone
from gristmill.sources.git.program import explain
from gristmill.sources.kinds import KINDS

KEYS = [f"k{n}" for n in range(5)]


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path) as opened:
        yield opened


@pytest.fixture
async def repository(tmp_path: Path) -> GitWorld:
    world = GitWorld(tmp_path / "repository")
    for key in KEYS:
        await world.put(key, f"Text of {key}. " * 500)
    return world


@pytest.fixture
async def remote(repository: GitWorld) -> AsyncIterator[GitServer]:
    async with serve_git(repository.folder) as running:
        yield running


FAULTS = {
    "busy": lambda request, said: web.Response(status=503),
    "wrong": lambda request, said: web.Response(status=500, text="<html>oops</html>"),
    "closed": lambda request, said: web.Response(status=403),
    "gone": lambda request, said: web.Response(status=404),
    "moved": lambda request, said: web.Response(status=301, headers={"Location": "https://example.org/"}),
    "no git": lambda request, said: web.Response(text="<html>\n<p>Please sign in.</p>\n</html>\n"),
    "silent": lambda request, said: b"",
    "cut off amid the names": lambda request, said: said[:60] if request.method == "GET" else said,
    "cut off amid the pack": lambda request, said: said if request.method == "GET" else said[: len(said) // 2],
    "one byte short": lambda request, said: said if request.method == "GET" else said[:-1],
    "damaged pack": lambda request, said: said if request.method == "GET" else damage(said),
}


def damage(said: bytes) -> bytes:
    at = said.find(b"PACK") + 40
    return said[:at] + bytes(byte ^ 0xFF for byte in said[at : at + 20]) + said[at + 20 :] if at > 40 else said


async def count_kept(farm: Farm) -> int:
    (row,) = await farm.rows("SELECT count(*)::int AS n FROM source_item WHERE NOT leaving")
    return row.n


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_server_that_fails_costs_a_delay_and_no_commit(
    farm: Farm, repository: GitWorld, remote: GitServer, fault: str
) -> None:
    """At the first clone, at a fetch into a clone that is there, and while a listing asks what is there."""
    source = await farm.add("git", url=remote.url, project="mill")
    await farm.rows("DELETE FROM ticket RETURNING 1")  # it is polled by hand
    hands = farm.by_hand(KINDS)
    for n, late in enumerate(("", "late")):
        if late:
            await repository.put(late)
        remote.fault = FAULTS[fault]
        assert isinstance(await hands.poll(source), Snooze)
        assert isinstance(await hands.compare(source), Snooze)
        error = str((await farm.look(source)).error)
        assert error
        assert "repository exists" not in error
        assert await count_kept(farm) == n * len(KEYS)
        remote.fault = lambda request, said: said
        assert isinstance(await hands.poll(source), Done)
        assert isinstance(await hands.compare(source), Done)
        assert await count_kept(farm) == len(repository.hashes)
    folder = farm.settings.data / "sources" / str(source.id)
    assert sorted(one.name for one in folder.iterdir()) == ["lock", "repository"]
    assert list(folder.glob("repository/objects/pack/tmp_*")) == []


async def test_two_who_clone_at_once_take_turns(remote: GitServer, repository: GitWorld, tmp_path: Path) -> None:
    options, folder = GitOptions(url=remote.url), tmp_path / "clone"
    clones = await asyncio.gather(*(prepare_clone(options, folder) for _ in range(3)))
    for git in clones:
        assert len((await git.run("rev-list", "--all")).splitlines()) == len(KEYS)


async def test_whoever_waits_too_long_for_a_clone_comes_back_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "PATIENCE_FOR_OTHERS", 0.2)
    async with hold_folder(tmp_path):
        with pytest.raises(Overloaded) as later:
            async with hold_folder(tmp_path):
                raise AssertionError
    assert later.value.retry_after == timedelta(minutes=1)
    async with hold_folder(tmp_path):
        pass


async def test_a_test_of_a_source_asks_the_server_and_leaves_the_clone_alone(
    farm: Farm, repository: GitWorld, remote: GitServer
) -> None:
    source = await farm.add("git", url=remote.url, project="mill")
    folder = farm.settings.data / "sources" / str(source.id)
    async with hold_folder(folder), farm.by_hand(KINDS).opener.open(source) as opened:
        assert await opened.check() == "It has 5 branches."
    assert not (folder / "repository").exists()


async def test_many_fetches_leave_few_packs(
    remote: GitServer, repository: GitWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connector, "MANY_PACKS", 8)
    options, folder = GitOptions(url=remote.url), tmp_path / "clone"
    git = await prepare_clone(options, folder)
    for n in range(10):
        await repository.put(f"more{n}")
        await prepare_clone(options, folder)
    assert len(list((git.folder / "objects" / "pack").glob("*.pack"))) < 6
    assert len((await git.run("rev-list", "--all")).splitlines()) == len(repository.hashes)


BOILERPLATE = """fatal: Could not read from remote repository.

Please make sure you have the correct access rights
and the repository exists.
"""


@pytest.mark.parametrize(
    ("complaint", "kind", "said"),
    [
        (
            f"ssh: connect to host git.example.org port 22: Connection refused\n{BOILERPLATE}",
            Transient,
            "git clone failed: ssh: connect to host git.example.org port 22: Connection refused",
        ),
        (
            f"ssh: Could not resolve hostname git.example.org: Name or service not known\r\n{BOILERPLATE}",
            Transient,
            "git clone failed: ssh: Could not resolve hostname git.example.org: Name or service not known",
        ),
        (
            f"No ED25519 host key is known for a.org and you have requested strict checking.\n"
            f"Host key verification failed.\n{BOILERPLATE}",
            Permanent,
            "The server has another key than we know, or none that we know: No ED25519 host key is known for a.org",
        ),
        (
            f"@@@@@@@@@@@@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@@@@@@@@@@@@\n"
            f"IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\nHost key verification failed.\n{BOILERPLATE}",
            Permanent,
            "The server has another key than we know, or none that we know: IT IS POSSIBLE",
        ),
        (
            f"git@a.org: Permission denied (publickey).\r\n{BOILERPLATE}",
            Permanent,
            "The server does not let us in: git@a.org: Permission denied (publickey).",
        ),
        (
            "fatal: unable to access 'https://a.org/team-401/x.git/': Could not resolve host: a.org\n",
            Transient,
            "git clone failed: fatal: unable to access 'https://a.org/team-401/x.git/': Could not resolve host",
        ),
        (
            "fatal: unable to access 'https://a.org/x.git/': The requested URL returned error: 401\n",
            Permanent,
            "The server does not let us in: fatal: unable to access",
        ),
        (
            "Cloning into bare repository 'x'...\nremote: Enumerating objects: 5, done.\nerror: RPC failed; curl 18\n"
            "fatal: early EOF\nfatal: fetch-pack: invalid index-pack output\n",
            Transient,
            "git clone failed: error: RPC failed; curl 18",
        ),
        (BOILERPLATE, Transient, "git clone failed: fatal: Could not read from remote repository."),
        ("", Transient, "git clone failed: it says nothing"),
    ],
)
def test_a_complaint_is_told_by_its_reason(complaint: str, kind: type[Exception], said: str) -> None:
    found = explain("clone", complaint)
    assert type(found) is kind
    assert str(found).startswith(said)
