"""The tools of agents on real things: files, git, commands, mails, pages and documents."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from pathlib import Path

import pytest
from desk_work import answer, questions, states
from workbench import Workbench, run_git

from gristmill.agents.runs import WaitingForUser
from gristmill.agents.showing import list_facts
from gristmill.agents.tools import TOOLS, git_push
from gristmill.agents.workspaces import read_text, write_text
from gristmill.errors import Refused
from gristmill.scopes import Scope
from gristmill.sources import RepositoryLocked

NEW = "def add(a, b):\n    return a + b\n"


# --- files that are traps, or were left


async def test_a_pipe_where_a_draft_would_be_lets_no_worker_hang(bench: Workbench) -> None:
    await bench.begin("Mend main.py.")
    files = await bench.context.files()
    os.mkfifo(bench.folder / ".main.py.gristmill")
    async with asyncio.timeout(30):
        await files.write("main.py", NEW)
    assert (bench.folder / "main.py").read_text() == NEW
    (bench.folder / "parts").mkdir()
    with pytest.raises(Refused):
        await files.write("parts", "a file in place of a folder")
    assert [one.name for one in bench.folder.glob(".*.gristmill")] == [".main.py.gristmill"], "no draft is left"


async def test_what_a_killed_worker_left_of_a_file_is_neither_listed_nor_committed(bench: Workbench) -> None:
    await bench.begin("Mend main.py.")
    files = await bench.context.files()
    (bench.folder / ".main.py.0123456789abcdef.gristmill").write_text("half")
    await files.write("main.py", NEW)
    assert not any("gristmill" in one for one in await files.list_files())
    await bench.call("git_branch", "1#0", branch="agent/mend")
    await bench.call("git_commit", "1#1", message="Mend")
    assert run_git(bench.folder, "show", "--name-only", "--format=").split() == ["main.py"]


# --- git that was killed


async def test_a_lock_of_a_git_that_was_killed_goes_with_the_next_worker(bench: Workbench) -> None:
    await bench.begin("Mend main.py.")
    await bench.call("write_file", "1#0", path="main.py", text=NEW)
    await bench.call("git_branch", "1#1", branch="agent/mend")
    lock = bench.folder / ".git" / "index.lock"
    lock.touch()
    with pytest.raises(RepositoryLocked, match="git add found a lock of another git"):
        await bench.call("git_commit", "1#2", message="Mend")
    await bench.again()
    with running_git(bench.folder):
        with pytest.raises(RepositoryLocked):
            await bench.call("git_commit", "1#2", message="Mend")
        assert lock.exists(), "a git that lives needs it"
    await bench.again()
    assert not (await bench.call("git_commit", "1#2", message="Mend")).is_error
    assert await states(bench.db, bench.run) == ["done", "done", "done"]
    assert run_git(bench.folder, "log", "--format=%s", "-1").strip() == "Mend"


@contextmanager
def running_git(folder: Path) -> Iterator[None]:
    """A git that waits in a folder."""
    with subprocess.Popen(["git", "cat-file", "--batch"], cwd=folder, stdin=subprocess.PIPE):
        yield


@pytest.mark.parametrize("other", ["contents", "rights", "removed", "parent"])
async def test_an_approved_commit_is_the_one_that_was_looked_at(bench: Workbench, other: str) -> None:
    await bench.allow(max_files=0)
    await bench.begin("Mend main.py.")
    files = await bench.context.files()
    await files.write("main.py", NEW)
    run_git(bench.folder, "switch", "--quiet", "--create", "agent/mend")
    with pytest.raises(WaitingForUser):
        await bench.call("git_commit", message="Mend")
    await answer(bench.db, bench.run, "approve")
    match other:
        case "contents":
            await files.write("main.py", NEW + "import evil\n")
        case "rights":
            (bench.folder / "main.py").chmod(0o755)
        case "removed":
            (bench.folder / "main.py").unlink()
        case _:
            run_git(bench.folder, "commit", "--quiet", "--allow-empty", "-m", "Between")
    before = run_git(bench.folder, "rev-parse", "HEAD")
    result = await bench.call("git_commit", message="Mend")
    assert result.is_error
    assert "commit anew" in result.text
    assert run_git(bench.folder, "rev-parse", "HEAD") == before


async def test_agents_side_by_side_do_not_write_with_git_at_once(bench: Workbench) -> None:
    await bench.begin("Mend main.py.")
    await bench.call("git_branch", "0#0", branch="agent/mend")
    files = await bench.context.files()
    for n in range(4):
        await files.write(f"part{n}.py", f"n = {n}\n")

    async def commit(n: int) -> bool:
        return (await bench.call("git_commit", f"{n}#1", message=f"Part {n}", paths=[f"part{n}.py"])).is_error

    refused = await asyncio.gather(*(commit(n) for n in range(1, 4)), commit(0))
    assert not all(refused)
    assert set(await states(bench.db, bench.run)) <= {"done", "failed"}, "none is broken off by a lock of another"
    assert run_git(bench.folder, "fsck") == ""


async def test_a_complaint_of_git_names_its_command(bench: Workbench) -> None:
    await bench.begin("Look.")
    files = await bench.context.files()
    with pytest.raises(Refused, match="git rev-parse failed"):
        await files.ask_git("rev-parse", "--verify", "nothing")


# --- the registry


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_a_tool_tells_a_model_what_it_does_and_takes(tool) -> None:
    schema = tool.arguments.model_json_schema()
    assert tool.sentence.endswith(".")
    assert schema["additionalProperties"] is False
    for name, field in schema["properties"].items():
        assert field.get("description"), name
    assert set(tool.targets) <= set(schema["properties"])


def test_every_tool_that_changes_something_says_it_in_a_sentence_for_a_person() -> None:
    silent = [tool.name for tool in TOOLS.values() if tool.is_watched and tool.summarise.__name__ == "say_nothing"]
    assert silent == []


def test_every_tool_is_a_file_of_its_name() -> None:
    folder = Path(__file__).parents[2] / "src/gristmill/agents/tools"
    files = {path.stem for path in folder.glob("*.py") if "\nTOOL = Tool(" in path.read_text()}
    assert files == set(TOOLS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [("{", "no JSON object"), ({"path": "x", "more": 1}, "more"), ({}, "path"), ({"path": 7}, "path")],
)
async def test_wrong_arguments_are_told_to_the_model(bench: Workbench, arguments, said: str) -> None:
    await bench.begin("Look at it.")
    result = await bench.box.call("read_file", arguments, "1#0")
    assert result.is_error
    assert said in result.text
    assert (await bench.box.call("dance", {}, "1#0")).text.startswith("There is no tool “dance”")


# --- files


async def test_files_are_listed_read_found_written_and_patched(bench: Workbench) -> None:
    await bench.begin("Mend main.py.")
    assert (await bench.call("list_files", pattern="*.py")).text == "main.py"
    assert "return a - b" in (await bench.call("read_file", path="main.py")).text
    assert (await bench.call("search_files", pattern="a - b", is_literal=True)).text == "main.py:2:    return a - b"
    assert (await bench.call("search_files", pattern="nowhere")).text == "Nothing was found."
    patched = await bench.call("patch_file", "1#0", path="main.py", old="a - b", new="a + b")
    assert "+    return a + b" in patched.text
    await bench.call("write_file", "1#1", path="docs/new.md", text="new\n")
    assert (bench.folder / "main.py").read_text() == NEW
    assert (bench.folder / "docs/new.md").read_text() == "new\n"
    assert await states(bench.db, bench.run) == ["done", "done"]


async def test_a_script_that_is_written_stays_one(bench: Workbench) -> None:
    await bench.begin("Change run.sh.")
    await bench.call("write_file", path="run.sh", text="#!/bin/sh\necho milled\n")
    assert (bench.folder / "run.sh").stat().st_mode & 0o111


async def test_words_that_do_not_stand_there_exactly_once_are_not_replaced(bench: Workbench) -> None:
    await bench.begin("Mend main.py.")
    missing = await bench.call("patch_file", "1#0", path="main.py", old="nowhere", new="x")
    twice = await bench.call("patch_file", "1#0", path="main.py", old="a", new="x")
    assert "do not stand" in missing.text
    assert "times" in twice.text
    assert await states(bench.db, bench.run) == []


@pytest.mark.parametrize(
    "path", ["../x", "/etc/passwd", ".git/config", "a/../../x", ".GIT/hooks/x", "a\\b", "", "x\n", "docs/.git/config"]
)
async def test_no_path_leads_out_of_the_workspace_or_into_git(bench: Workbench, path: str) -> None:
    await bench.begin(f"Write {path}")
    assert (await bench.call("read_file", path=path)).is_error
    assert (await bench.call("write_file", path=path, text="x")).is_error
    assert await states(bench.db, bench.run) == []


def test_links_are_followed_nowhere(tmp_path: Path) -> None:
    outside, inside = tmp_path / "outside", tmp_path / "inside"
    outside.mkdir()
    inside.mkdir()
    (outside / "secret").write_text("secret")
    (inside / "folder").symlink_to(outside)
    (inside / "file").symlink_to(outside / "secret")
    for path in ("folder/secret", "file"):
        with pytest.raises(Refused, match="links are not followed"):
            read_text(inside, path)
    with pytest.raises(Refused):
        write_text(inside, "folder/new", "x")
    write_text(inside, "file", "mine")
    assert (outside / "secret").read_text() == "secret"
    assert list(outside.iterdir()) == [outside / "secret"]


async def test_a_file_that_the_policy_forbids_is_not_written(bench: Workbench) -> None:
    await bench.begin("Write .env")
    result = await bench.call("write_file", path=".env", text="KEY=1")
    assert result.is_error
    assert "forbids" in result.text
    assert not (bench.folder / ".env").exists()


# --- git


async def test_a_change_is_committed_on_a_branch_and_pushed_when_a_person_agrees(bench: Workbench) -> None:
    await bench.begin("Mend main.py on the branch agent/mend and push it.")
    assert "agent/mend" in (await bench.call("git_branch", "1#0", branch="agent/mend")).text
    await bench.call("write_file", "1#1", path="main.py", text=NEW)
    assert " M main.py" in (await bench.call("git_status")).text
    assert "+    return a + b" in (await bench.call("git_diff")).text
    committed = await bench.call("git_commit", "1#2", message="Add instead of subtracting")
    assert "Add instead of subtracting" in (await bench.call("git_log", count=1)).text
    with pytest.raises(WaitingForUser):
        await bench.call("git_push", "1#3", branch="agent/mend")
    (question,) = await questions(bench.db, bench.run)
    assert question.details["prepared"]["data"]["commit"] == committed.data["commit"]
    assert "agent/mend" not in bench.upstream("branch")
    await answer(bench.db, bench.run, "approve")
    await bench.again()
    await bench.call("git_push", "1#3", branch="agent/mend")
    assert bench.upstream("rev-parse", "agent/mend").strip() == committed.data["commit"]
    assert bench.upstream("show", "agent/mend:main.py") == NEW


async def test_whoever_is_asked_about_a_push_sees_every_difference_that_leaves(bench: Workbench) -> None:
    """Also one whose commit is called something else, and one that a later commit takes back."""
    await bench.begin("Mend main.py on the branch agent/mend and push it.")
    await bench.call("git_branch", "1#0", branch="agent/mend")
    await bench.call("write_file", "1#1", path="notes.md", text="The code of the safe is 4711.\n")
    await bench.call("git_commit", "1#2", message="Tidy whitespace\n\nSee also the attic.")
    await bench.call("write_file", "1#3", path="notes.md", text="Nothing to see.\n")
    await bench.call("git_commit", "1#4", message="Tidy more")
    with pytest.raises(WaitingForUser):
        await bench.call("git_push", "1#5", branch="agent/mend")
    (question,) = await questions(bench.db, bench.run)
    shown = "\n".join(list_facts(question))
    for words in ("Tidy whitespace", "See also the attic.", "+The code of the safe is 4711.", "Tidy more", "notes.md"):
        assert words in shown
    assert "Begin" not in shown  # the repository has it
    assert question.details["prepared"]["data"]["files"] == ["notes.md"]
    assert "left_out" not in question.details["prepared"]["data"]


async def test_what_a_person_is_not_shown_of_a_push_is_counted(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, most in (("MOST_COMMITS", 1), ("MOST_FILES", 1), ("LONGEST_DIFF", 10)):
        monkeypatch.setattr(git_push, name, most)
    await bench.begin("Mend main.py on the branch agent/mend and push it.")
    await bench.call("git_branch", "1#0", branch="agent/mend")
    for n, name in enumerate(("a.md", "b.md", "c.md")):
        await bench.call("write_file", f"1#{2 * n + 1}", path=name, text=f"{name}\n")
        await bench.call("git_commit", f"1#{2 * n + 2}", message=f"Add {name}")
    with pytest.raises(WaitingForUser):
        await bench.call("git_push", "1#9", branch="agent/mend")
    (question,) = await questions(bench.db, bench.run)
    left_out = question.details["prepared"]["data"]["left_out"]
    assert left_out.startswith("Not shown: 2 commits and 2 files and ")
    assert "left_out: Not shown" in "\n".join(list_facts(question))


async def test_what_is_pushed_is_what_was_approved_whatever_was_committed_since(bench: Workbench) -> None:
    await bench.begin("Push agent/mend.")
    await bench.call("git_branch", "1#0", branch="agent/mend")
    await bench.call("write_file", "1#1", path="main.py", text=NEW)
    first = await bench.call("git_commit", "1#2", message="First")
    with pytest.raises(WaitingForUser):
        await bench.call("git_push", "1#3", branch="agent/mend")
    await bench.call("write_file", "1#4", path="main.py", text="import os\n")
    await bench.call("git_commit", "1#5", message="Second")
    await answer(bench.db, bench.run, "approve")
    await bench.call("git_push", "1#3", branch="agent/mend")
    assert bench.upstream("rev-parse", "agent/mend").strip() == first.data["commit"]


async def test_branches_that_the_policy_does_not_name_are_not_written(bench: Workbench) -> None:
    await bench.begin("Commit to main and push main.")
    assert "does not let agents write the branch main" in (await bench.call("git_branch", "1#0", branch="main")).text
    await bench.call("write_file", "1#1", path="main.py", text=NEW)
    assert (await bench.call("git_commit", "1#2", message="On main")).is_error
    await bench.allow(auto_push=True)
    assert (await bench.call("git_push", "1#3", branch="main")).is_error
    assert bench.upstream("log", "--format=%s", "main") == "Begin\n"


async def test_a_branch_that_may_be_pushed_by_itself_is_pushed(bench: Workbench) -> None:
    await bench.allow(auto_push=True)
    await bench.begin("Mend it.")
    await bench.call("git_branch", "1#0", branch="agent/mend")
    await bench.call("write_file", "1#1", path="main.py", text=NEW)
    await bench.call("git_commit", "1#2", message="Mend")
    assert not (await bench.call("git_push", "1#3", branch="agent/mend")).is_error
    assert "agent/mend" in bench.upstream("branch")


async def test_a_commit_that_was_made_before_a_kill_is_not_made_again(bench: Workbench) -> None:
    await bench.begin("Mend it.")
    await bench.call("git_branch", "1#0", branch="agent/mend")
    await bench.call("write_file", "1#1", path="main.py", text=NEW)
    first = await bench.call("git_commit", "1#2", message="Mend")
    async with bench.db.transaction() as tx:  # as if the worker had been killed before it settled
        await tx.execute(
            "UPDATE agent_effect SET state = 'executing', result = NULL, settled_at = NULL WHERE key = '1#2'"
        )
    await bench.again()
    again = await bench.call("git_commit", "1#2", message="Mend")
    assert again.data == first.data
    assert (await bench.call("git_log")).text.count("Mend") == 1


async def test_a_push_to_a_branch_that_went_elsewhere_fails_and_one_that_went_on_is_done(bench: Workbench) -> None:
    await bench.allow(auto_push=True)
    await bench.begin("Mend it.")
    await bench.call("git_branch", "1#0", branch="agent/mend")
    await bench.call("write_file", "1#1", path="main.py", text=NEW)
    await bench.call("git_commit", "1#2", message="Mend")
    await bench.call("git_push", "1#3", branch="agent/mend")
    other = bench.repository.parent / "other"
    run_git(bench.repository.parent, "clone", "--quiet", "--branch", "agent/mend", str(bench.repository), str(other))
    (other / "more.py").write_text("x = 1\n")
    run_git(other, "add", ".")
    run_git(other, "commit", "--quiet", "-m", "More")
    run_git(other, "push", "--quiet")
    assert not (await bench.call("git_push", "1#4", branch="agent/mend")).is_error
    await bench.call("write_file", "1#5", path="main.py", text="import os\n")
    await bench.call("git_commit", "1#6", message="Apart")
    assert "does not take it" in (await bench.call("git_push", "1#7", branch="agent/mend")).text


async def test_a_repository_within_the_workspace_runs_nothing_of_its_own(bench: Workbench) -> None:
    """Its settings name programs that git would start: a hook, a monitor of files, a filter."""
    await bench.begin("Look at it.")
    await bench.call("list_files")
    inner, trace = bench.folder / "inner", bench.folder.parent / "trace"
    inner.mkdir()
    run_git(inner, "init", "--quiet")
    (inner / "file").write_text("x")
    run_git(inner, "add", ".")
    run_git(inner, "commit", "--quiet", "-m", "Inner")
    with (inner / ".git/config").open("a") as config:
        config.write(f'[core]\n\tfsmonitor = "touch {trace}; false"\n')
    await bench.call("git_branch", "1#0", branch="agent/x")
    await bench.call("write_file", "1#1", path="main.py", text=NEW)
    for tool in ("git_status", "git_diff", "list_files"):
        await bench.call(tool)
    await bench.call("git_commit", "1#2", message="Mend")
    assert not trace.exists()
    assert run_git(bench.folder, "show", "--name-only", "--format=").split() == ["main.py"]


async def test_without_a_repository_a_run_has_an_empty_workspace(bench: Workbench) -> None:
    async with bench.db.transaction() as tx:
        await tx.execute("DELETE FROM source")
    await bench.begin("Write notes.md")
    await bench.call("git_branch", "1#0", branch="agent/x")
    await bench.call("write_file", "1#1", path="notes.md", text="x\n")
    assert not (await bench.call("git_commit", "1#2", message="Notes")).is_error
    assert "nowhere to push to" in (await bench.call("git_push", "1#3", branch="agent/x")).text


# --- documents, mails, pages


async def test_a_document_and_a_draft_are_kept_and_found(bench: Workbench) -> None:
    await bench.begin("Write it down.")
    kept = await bench.call("write_document", "1#0", title="Millstones", text="The millstone weighs 700 kg.")
    await bench.call("draft_mail", "1#1", to=["eve@evil.example"], subject="Stones", text="They weigh 700 kg.")
    assert bench.mail.mails == []
    found = await bench.call("search_knowledge", query="millstone weighs")
    assert "700 kg" in found.text
    read = await bench.call("read_document", document=kept.data["document"])
    assert "The millstone weighs 700 kg." in read.text
    await bench.begin("Read it.", scope=Scope("beta"))
    assert "There is no document" in (await bench.call("read_document", document=kept.data["document"])).text


async def test_a_mail_is_sent_once_after_approval_with_an_id_made_of_its_key(bench: Workbench) -> None:
    await bench.begin("Send the figures to anna@acme.example.")
    mail = {"to": ["anna@acme.example"], "subject": "Figures", "text": "42"}
    with pytest.raises(WaitingForUser):
        await bench.call("send_mail", **mail)
    (question,) = await questions(bench.db, bench.run)
    assert question.details["origins"][0]["sentence"] == "a person said it"
    assert bench.mail.mails == []
    await answer(bench.db, bench.run, "approve")
    for _ in range(2):
        await bench.again()
        sent = await bench.call("send_mail", **mail)
    (mail_sent,) = bench.mail.mails
    assert message_from_bytes(mail_sent)["Message-ID"] == sent.data["message_id"]
    assert bench.mail.recipients == ["TO:<anna@acme.example>"]


@pytest.mark.parametrize(
    ("refusal", "end"),
    [({"RCPT": "550 nobody"}, "failed"), ({"MAIL": "451 later"}, "approved"), ({"END": "554 no"}, "failed")],
)
async def test_a_mail_that_the_server_refuses_was_not_sent(bench: Workbench, refusal: dict[str, str], end: str) -> None:
    await bench.allow(recipients=("anna@acme.example",))
    await bench.begin("Send it.")
    bench.mail.refuse = refusal
    mail = {"to": ["anna@acme.example"], "subject": "Figures", "text": "42"}
    if end == "approved":
        with pytest.raises(Exception, match="451"):
            await bench.call("send_mail", **mail)
    else:
        assert (await bench.call("send_mail", **mail)).is_error
    assert await states(bench.db, bench.run) == [end]


@pytest.mark.parametrize("goodbye", ["421 closing", "500 what?", "no reply at all"])
async def test_a_mail_that_was_taken_is_sent_however_the_server_says_goodbye(bench: Workbench, goodbye: str) -> None:
    await bench.allow(recipients=("anna@acme.example",))
    await bench.begin("Send it.")
    bench.mail.refuse = {"QUIT": goodbye}
    for _ in range(2):
        sent = await bench.call("send_mail", to=["anna@acme.example"], subject="Figures", text="42")
        assert not sent.is_error
        await bench.again()
    assert await states(bench.db, bench.run) == ["done"]
    assert len(bench.mail.mails) == 1


@pytest.mark.parametrize(
    "second",
    [
        {"to": ["anna@acme.example"], "subject": "Figures", "text": "42 "},
        {"to": ["Anna@acme.example"], "subject": "Figures", "text": "43"},
        {"to": ["bob@acme.example"], "cc": ["anna@acme.example"], "subject": "Other", "text": "44"},
    ],
)
async def test_a_second_mail_to_somebody_for_the_same_work_is_asked_about(bench: Workbench, second: dict) -> None:
    await bench.allow(recipients=("*@acme.example",))
    await bench.begin("Send the figures.")
    calls = bench.box.at("goal 1.1")
    await calls.call("send_mail", {"to": ["anna@acme.example"], "subject": "Figures", "text": "42"})
    await bench.box.at("goal 1.2").call("send_mail", {"to": ["anna@acme.example"], "subject": "Other", "text": "43"})
    await calls.call("send_mail", {"to": ["carl@acme.example"], "subject": "Figures", "text": "42"})
    assert len(bench.mail.mails) == 3
    with pytest.raises(WaitingForUser):
        await calls.call("send_mail", second)
    assert len(bench.mail.mails) == 3
    (question,) = await questions(bench.db, bench.run)
    assert question.details["reasons"] == [
        "The same tool has reached the same target before, for the same piece of work."
    ]


async def test_what_a_person_approved_is_done_although_its_tool_is_not_offered_any_more(bench: Workbench) -> None:
    await bench.begin("Send it.")
    mail = {"to": ["anna@acme.example"], "subject": "Figures", "text": "42"}
    with pytest.raises(WaitingForUser):
        await bench.box.at("goal 1.1").call("send_mail", mail)
    await bench.answer_all()
    await bench.again()
    calls = bench.box.select(["read_file"]).at("goal 1.1")
    (sent,) = await calls.resume()
    assert not sent.result.is_error
    assert await states(bench.db, bench.run) == ["done"]
    assert "There is no tool" in (await calls.call("send_mail", mail)).text, "new calls have what is offered"


@pytest.mark.parametrize("place", ["d1", "d1~general", "d1.1", "d1.2~email"])
async def test_the_agents_and_parts_of_a_delegation_are_the_same_work(bench: Workbench, place: str) -> None:
    await bench.allow(recipients=("anna@acme.example",))
    await bench.begin("Send the figures.")
    mail = {"to": ["anna@acme.example"], "subject": "Figures", "text": "42"}
    await bench.box.at("delegation d1.1").call("send_mail", mail)
    await bench.box.at("delegation d12").call("send_mail", mail)
    assert len(bench.mail.mails) == 2
    calls = bench.box.at(f"delegation {place}")
    await calls.resume()
    with pytest.raises(WaitingForUser):
        await calls.call("send_mail", {**mail, "text": "43"})
    assert len(bench.mail.mails) == 2


@pytest.mark.parametrize(
    "to", ["anna@acme.example\nBcc: eve@evil.example", "Anna <anna@acme.example>", "a@b@c", "a", "änna@acme.example"]
)
async def test_a_recipient_is_a_bare_address(bench: Workbench, to: str) -> None:
    await bench.begin("Send it.")
    assert (await bench.call("send_mail", to=[to], subject="x", text="y")).is_error
    assert (await bench.call("send_mail", to=["a@b.example"], subject="x\nBcc: e@evil.example", text="y")).is_error


async def test_a_page_that_a_person_named_is_fetched_as_text(bench: Workbench) -> None:
    bench.web.serve("/stones", "<html><body><article><p>The millstone weighs 700 kg.</p></article></body></html>")
    url = bench.web.at("/stones")
    await bench.begin(f"Read {url}")
    assert "700 kg" in (await bench.call("fetch_page", url=url)).text
    with pytest.raises(WaitingForUser):
        await bench.call("fetch_page", "1#1", url=bench.web.at("/other"))
    assert bench.web.paths == ["/stones"]


async def test_a_page_that_leads_to_another_host_is_not_followed(bench: Workbench) -> None:
    bench.web.redirect("/a", f"http://evil.example:{bench.web.port}/steal")
    url = bench.web.at("/a")
    await bench.begin(f"Read {url}")
    assert "leads to another host" in (await bench.call("fetch_page", url=url)).text
    assert bench.web.paths == ["/a"]
