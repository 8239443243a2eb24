"""Git repositories: every commit once, with its files and changes, whatever its history went through."""

import shlex
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from farm import Farm, a_farm
from pydantic import ValidationError
from worlds import GitWorld

from gristmill.db import Database
from gristmill.errors import Transient
from gristmill.models import TextPassage
from gristmill.models.language.extraction import extract_passages
from gristmill.sources.git.commits import MOST_PATCH, read_commits, split_patches
from gristmill.sources.git.connector import GIT, GitOptions, name_workspace
from gristmill.sources.git.index import describe_commit, find_keys, list_branches
from gristmill.sources.git.program import Git, make_header
from gristmill.sources.model import Fetched, Source
from gristmill.sources.poller import choose_pause

HOUSE = Path(__file__).parents[2]


@pytest.fixture
async def farm(db: Database, tmp_path: Path) -> AsyncIterator[Farm]:
    async with a_farm(db, tmp_path) as opened:
        yield opened


@pytest.fixture
def repository(tmp_path: Path) -> GitWorld:
    return GitWorld(tmp_path / "repository")


def commit(repository: GitWorld, message: str, **files: str | bytes | None) -> str:
    """A commit that writes or removes these files; its hash."""
    for name, content in files.items():
        path = repository.folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    repository.git("add", "--all")
    repository.git("commit", "--quiet", "--allow-empty", "--message", message)
    return repository.git("rev-parse", "HEAD")


async def read_one(repository: GitWorld, hash_: str) -> Any:
    (found,) = await read_commits(Git(repository.folder), [hash_])
    return found


async def test_a_commit_knows_its_files_and_what_became_of_them(repository: GitWorld) -> None:
    text = "\n".join(f"line {n}" for n in range(20))
    commit(repository, "First", a=text, b="gone soon", c="stays")
    second = commit(repository, "Second\n\nBecause of PROJ-7.", a=None, moved__a=text, b=None, c="changed", d="new")
    found = await read_one(repository, second)
    files = {one.path: (one.status, one.before) for one in found.files}
    assert files == {
        "moved/a": ("renamed", "a"),
        "b": ("deleted", None),
        "c": ("modified", None),
        "d": ("created", None),
    }
    assert found.message == "Second\n\nBecause of PROJ-7."
    assert (found.author, found.author_mail) == ("Anna", "anna@acme.test")
    assert "+changed" in found.patch
    assert len(found.parents) == 1


async def test_binary_files_merges_submodules_and_odd_names_are_told_as_they_are(repository: GitWorld) -> None:
    first = commit(repository, "First", a="1")
    repository.git("checkout", "--quiet", "-b", "side")
    commit(repository, "Side", picture=b"\0\1\2" * 100, **{'ä \t" name': "odd"})
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{first},library")
    repository.git("commit", "--quiet", "--message", "Submodule")
    library = await read_one(repository, repository.git("rev-parse", "HEAD"))
    side = await read_one(repository, repository.git("rev-parse", "HEAD~1"))
    repository.git("checkout", "--quiet", "--detach", first)
    commit(repository, "Meanwhile", b="2")
    repository.git("merge", "--quiet", "--no-edit", "side")
    merge = await read_one(repository, repository.git("rev-parse", "HEAD"))
    assert [(one.path, one.submodule) for one in library.files] == [("library", True)]
    assert {one.path: one.added for one in side.files} == {"picture": None, 'ä \t" name': 1}
    assert len(merge.parents) == 2
    assert merge.files == []


async def test_a_huge_commit_is_named_and_its_changes_are_cut(repository: GitWorld) -> None:
    wide = commit(repository, "Wide", **{f"f{n}": "x" for n in range(2_500)})
    long = commit(repository, "Long", big="\n".join(f"line {n} of a very long file" for n in range(15_000)))
    found = await read_one(repository, wide)
    assert (len(found.files), found.more_files, found.patch, found.cut) == (2_000, 500, "", True)
    found = await read_one(repository, long)
    assert found.cut
    assert len(found.patch) <= MOST_PATCH


async def test_patches_are_told_apart_wherever_their_pieces_end() -> None:
    whole = b"MARKone\nfirst\nMARKtwo\n" + b"x" * (2 * MOST_PATCH) + b"\nMARKthree\nlast"
    for size in (1_000, 4_097, len(whole)):

        async def pieces(size: int = size) -> AsyncIterator[bytes]:
            for start in range(0, len(whole), size):
                yield whole[start : start + size]

        found = [(patch[:5], cut) async for patch, cut in split_patches(pieces(), b"MARK")]
        assert found == [(b"one\nf", False), (b"two\nx", True), (b"three", False)]


async def test_a_message_that_looks_like_our_own_marks_deceives_nobody(repository: GitWorld) -> None:
    hash_ = commit(repository, "Begin\n\n\x1e\x1f:100644 100644 a b M\tfaked\n3\t1\tfaked", a="1")
    found = await read_one(repository, hash_)
    assert [one.path for one in found.files] == ["a"]


async def test_a_forced_push_takes_away_what_no_branch_reaches_any_more(farm: Farm, repository: GitWorld) -> None:
    repository.git("checkout", "--quiet", "-b", "main")
    kept = [commit(repository, f"Commit {n}", a=str(n)) for n in range(3)]
    lost = commit(repository, "Regretted", a="secret")
    source = await farm.add("git", **repository.options)
    await farm.work()
    assert set(await farm.documents()) == {f"commit::{one}::mill" for one in [*kept, lost]}
    repository.git("reset", "--quiet", "--hard", "HEAD~1")
    new = commit(repository, "Better", a="better")
    await farm.poll(source)
    await farm.compare(source)
    assert set(await farm.documents()) == {f"commit::{one}::mill" for one in [*kept, new]}


async def test_a_repository_that_cannot_be_cloned_is_tried_after_5_15_30_and_60_minutes_and_then_5_again(
    farm: Farm, tmp_path: Path
) -> None:
    source = await farm.add("git", url=str(tmp_path / "nowhere"))
    assert name_workspace(source) == "CLONING"
    await farm.work()
    failed = await farm.look(source)
    assert name_workspace(failed) == "CLONE_FAILED"
    assert "no such repository" in str(failed.error)
    assert [choose_pause(n, GIT.backoff) // timedelta(minutes=1) for n in range(1, 7)] == [5, 15, 30, 60, 5, 15]
    world = GitWorld(tmp_path / "nowhere")
    await world.put("one")
    await farm.poll(source)  # a person retries: the pauses begin anew
    assert name_workspace(await farm.look(source)) == "READY"
    assert (await farm.look(source)).failures == 0


@pytest.mark.parametrize(
    "url", ["ext::sh -c touch% /tmp/pwned", "--upload-pack=touch /tmp/x", "https://user:secret@host/x", "fd::17", "x"]
)
def test_an_address_that_would_run_a_program_or_tell_a_secret_is_refused(url: str) -> None:
    with pytest.raises(ValidationError):
        GitOptions(url=url)


async def test_hooks_and_settings_of_a_repository_are_not_run(farm: Farm, repository: GitWorld, tmp_path: Path) -> None:
    """Neither those that lie in it nor those that somebody put into our clone."""
    await repository.put("one")
    source = await farm.add("git", **repository.options)
    await farm.work()
    trap = tmp_path / "trap"
    clone = farm.settings.data / "sources" / str(source.id) / "repository"
    for hooks in (repository.folder / ".git" / "hooks", clone / "hooks"):
        hooks.mkdir(exist_ok=True)
        for name in ("post-checkout", "reference-transaction", "post-update", "pre-receive", "update"):
            (hooks / name).write_text(f"#!/bin/sh\ntouch {trap}\n")
            (hooks / name).chmod(0o755)
    with (clone / "config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch {trap}"\n[diff]\n\texternal = "touch {trap}"\n')
    await repository.put("two")
    await farm.poll(source)
    assert len(await farm.documents()) == 2
    assert not trap.exists()


async def test_a_commit_becomes_a_graph_without_any_llm(repository: GitWorld) -> None:
    first = commit(repository, "First", a="1", b="2")
    second = commit(repository, "Mend PROJ-7 and #12", a="3", b=None)
    raw = (await read_one(repository, second)).to_bytes()
    found = describe_commit(Fetched("one", second, {"project": "mill", "branch": "main"}, raw))
    about = {"type": "markdown", "title": found.title, "meta": dict(found.metadata)}
    (graph,) = extract_passages([TextPassage("Mend PROJ-7 and #12", context=about)])
    edges = {f"{one.source} {one.type} {one.target}" for one in graph.relations}
    key = f"commit::{second}::mill"
    assert {
        f"person::anna AUTHORED {key}",
        f"{key} HAS_PARENT commit::{first}::mill",
        f"{key} ON_BRANCH branch::mill/main",
        f"{key} MODIFIES file::mill/a",
        f"{key} DELETES file::mill/b",
        f"{key} MENTIONS id::PROJ-7",
        f"{key} MENTIONS issue::mill#12",
    } <= edges
    assert b"```diff" in (found.content or b"")


def test_issue_keys_are_told_from_other_numbers() -> None:
    assert find_keys("Fix ABC-1, abc-2, #3, &#39; and a/b#4; UTF-8", "mill") == ["ABC-1", "UTF-8", "mill#3"]


async def test_the_history_of_this_very_repository_can_be_read() -> None:
    if not (HOUSE / ".git").exists():
        pytest.skip("this copy of Gristmill has no history")
    git = Git(HOUSE)
    hashes = (await git.run("rev-list", "--max-count=60", "HEAD")).decode().split()
    found = await read_commits(git, hashes)
    assert [one.hash for one in found] == hashes
    for one in found:
        described = describe_commit(Fetched("self", one.hash, {"project": "gristmill"}, one.to_bytes()))
        assert described.title
        assert orjson.dumps(dict(described.metadata))


async def test_a_token_goes_to_its_own_address_alone_and_follows_no_redirect(tmp_path: Path) -> None:
    git = Git(tmp_path, make_header("git", "t0ken"), "https://git.example.org/mill.git", "/keys/anna's key")

    async def ask(*words: str) -> str:
        return (await git.run("config", *words)).decode().strip()

    inside = ("--get-urlmatch", "http.extraHeader", "https://git.example.org/mill.git/info/refs")
    assert (await ask(*inside)).startswith("Authorization: Basic ")
    for elsewhere in ("https://evil.example/mill.git", "https://git.example.org/other.git"):
        with pytest.raises(Transient):  # git ends with 1 where there is no such setting
            await ask("--get-urlmatch", "http.extraHeader", elsewhere)
    assert await ask("http.followRedirects") == "false"
    assert shlex.split(await ask("core.sshCommand"))[-1] == "/keys/anna's key"


def test_a_token_is_not_sent_over_an_open_line() -> None:
    with pytest.raises(ValueError, match="in clear"):
        GitOptions.model_validate({"url": "http://git.example.org/mill.git", "token": "env:X"})
    GitOptions.model_validate({"url": "http://127.0.0.1:3000/mill.git", "token": "env:X"})
    GitOptions.model_validate({"url": "http://git.example.org/mill.git"})


async def read_branches(farm: Farm, source: Source) -> dict[str, tuple[str, int]]:
    """What the page of each commit says of its branches, by its subject, and how often it was read."""
    rows = await farm.rows(
        "SELECT i.title, i.version, i.note FROM source_item i WHERE source = %(id)s AND NOT leaving", id=source.id
    )
    return {row.title: (", ".join(list_branches(row.note)), row.version) for row in rows}


async def test_a_commit_has_all_branches_that_reach_it_also_those_that_reach_it_later(
    farm: Farm, repository: GitWorld
) -> None:
    commit(repository, "first", a="1")
    repository.git("checkout", "--quiet", "-b", "feature")
    commit(repository, "work", b="1")
    repository.git("checkout", "--quiet", "main")
    source = await farm.add("git", **repository.options)
    await farm.work()
    assert await read_branches(farm, source) == {"first": ("main", 1), "work": ("feature", 1)}
    repository.git("branch", "review", "feature")
    await farm.poll(source)
    assert await read_branches(farm, source) == {"first": ("main", 1), "work": ("feature, review", 2)}
    repository.git("branch", "-D", "review")
    repository.git("merge", "--quiet", "--no-ff", "-m", "merge", "feature")
    repository.git("branch", "later")
    await farm.poll(source)
    merged = {"first": ("main", 1), "merge": ("main", 1), "work": ("main, feature", 3)}
    assert await read_branches(farm, source) == merged
    await farm.compare(source)
    await farm.poll(source)
    assert await read_branches(farm, source) == merged
    assert (await farm.look(source)).error is None


async def test_a_commit_is_drawn_with_all_its_branches(repository: GitWorld) -> None:
    found = await read_one(repository, commit(repository, "first", a="1"))
    note = {"project": "mill", "branch": "main", "branches": ["main", "feature"]}
    described = describe_commit(Fetched("one", found.hash, note, found.to_bytes()))
    about = {"type": "markdown", "title": described.title, "meta": dict(described.metadata)}
    (graph,) = extract_passages([TextPassage("first", context=about)])
    branches = {one.target for one in graph.relations if one.type == "ON_BRANCH"}
    assert branches == {"branch::mill/main", "branch::mill/feature"}
    assert "on main, feature of mill" in (described.content or b"").decode()
