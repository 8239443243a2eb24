"""`gristmill add`, `documents` and `document`: what people see of their files, whatever those are called."""

import io
import os
import shutil
import sys
from pathlib import Path

import pytest
from desk import within

sys.path.insert(0, str(Path(__file__).parents[1] / "knowledge"))

from shelf import chunked, placed, searchable

from gristmill.cli.background import open_worker_log
from gristmill.db import Tx
from gristmill.documents import WholeText, load_documents, take_in
from gristmill.documents.notebook import NOTHING
from gristmill.documents.reading import Part
from gristmill.documents.take_in import add_parts
from gristmill.documents.urgency import BATCH, FEW, ORDINARY, Urgency
from gristmill.ids import DocumentId


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    return inbox


def test_a_file_whose_name_is_not_utf8_is_taken_in_like_its_neighbours(cli, folder):
    (folder / "after.md").write_text("# After\n")
    Path(os.fsdecode(os.fsencode(folder) + b"/bef\xffre.md")).write_text("# Before\n")
    added = cli("add", folder, "--json").json
    assert [(one["name"], one["status"]) for one in added] == [("after.md", "added"), ("bef�re.md", "added")]
    assert [one["status"] for one in cli("add", folder, "--json").json] == ["unchanged", "unchanged"]


def test_a_name_is_shown_as_it_is_and_does_nothing_to_the_terminal(cli, folder):
    (folder / "[red]plan.md").write_text("# Plan\n")
    (folder / "\x1b[2Jwiped\n.md").write_text("# Wiped\n")
    shown = cli("add", folder).out
    assert "[red]plan.md" in shown
    assert "[2Jwiped .md" in shown
    assert "\x1b" not in shown


def test_a_pipe_is_refused_and_does_not_stop_what_comes_after_it(cli, folder):
    os.mkfifo(folder / "pipe")
    (folder / "plan.md").write_text("# Plan\n")
    said = cli("add", folder / "pipe", folder / "plan.md", "--json")
    assert said.code == 1
    assert [(one["status"], one["reason"]) for one in said.json] == [
        ("refused", "it is neither a file nor a folder"),
        ("added", None),
    ]


@pytest.mark.parametrize(
    "words",
    [
        "add .",
        "watch .",
        "up .",
        "up . --once",
        "documents",
        "search mill",
        "graph show mill",
        "graph path a b",
        "graph find mill",
        "graph export x.graphml",
        "graph stats",
    ],
)
def test_a_project_without_its_client_is_a_mistake_of_the_command_line_everywhere(speak, words):
    said = speak(*words.split(), "--project", "mill")
    assert (said.code, "needs its client" in said.err) == (2, True)


@pytest.mark.parametrize("words", ["add .", "search mill", "graph stats"])
def test_the_empty_name_of_a_variable_that_is_not_set_makes_nothing_everybodys(speak, words):
    said = speak(*words.split(), "--client", "")
    assert (said.code, "The name is empty" in said.err) == (2, True)
    said = speak(*words.split(), "--client", "Global")
    assert (said.code, "GLOBAL is everybody's" in said.err) == (2, True)


@pytest.mark.parametrize("command", ["add", "watch", "up", "up --once"])
def test_the_empty_name_of_a_variable_that_is_not_set_is_not_the_folder_where_one_stands(cli, command):
    said = cli(*command.split(), "")
    assert said.code == 1
    assert said.err.startswith("An empty name is no file or folder" if command == "add" else "There is no")


def test_retrying_what_has_not_failed_is_answered_in_words_of_the_document(cli, folder):
    (folder / "plan.md").write_text("# Plan\n")
    cli("add", folder)
    assert cli("document", "retry", 1).out == "Document 1 stays as it is: nothing of it has failed.\n"
    said = cli("document", "retry", 1, "--phase", "ocr")
    assert (said.code, said.out) == (1, "Document 1 stays as it is: nothing of its phase ocr has failed.\n")


def test_what_was_cancelled_says_so_and_how_to_go_on(cli, folder, url):
    (folder / "plan.md").write_text("# Plan\n")
    cli("add", folder)
    cli("group", "cancel", within(url, lambda tx: tx.value("SELECT task FROM document")))
    goes_on = "gristmill document reindex 1 makes it anew"
    said = cli("document", "retry", 1)
    assert (said.code, said.out) == (1, f"Document 1 was cancelled: {goes_on}.\n")
    (one,) = cli("add", folder, "--json").json
    assert (one["status"], one["reason"]) == ("cancelled", f"document 1 was cancelled: {goes_on}")
    assert cli("add", folder, "--wait", "--json").code == 1


def test_a_path_that_is_too_long_is_refused_and_the_others_are_taken_in(cli, folder):
    deep = folder
    for _ in range(10):
        deep = deep / ("m" * 230)
        deep.mkdir()
    (deep / "deep.md").write_text("# Deep\n")
    (folder / "zenith.md").write_text("# Zenith\n")
    said = cli("add", folder, "--json")
    reason = "its path is too long: move it to a folder that is less deep"
    assert said.code == 1
    assert [(one["name"], one["status"], one["reason"]) for one in said.json] == [
        ("deep.md", "refused", reason),
        ("zenith.md", "added", None),
    ]


def test_of_very_many_parts_the_first_are_shown_and_the_others_counted(cli, folder, url):
    (folder / "box.mbox").write_text("From a@example.com Tue Mar  3 10:00:00 2026\nSubject: 1\n\nDear Ben,\n")
    cli("add", folder)
    copies = (
        "INSERT INTO document (scope, urn, version, hash, container, name, task, opening, pages, completed_at)"
        " SELECT scope, urn || '#' || n, 1, hash, id, 'part-' || n, task, 0, 1, CASE WHEN n < 1500 THEN clock() END"
        " FROM document, generate_series(1, 1500) AS n"
    )
    within(url, lambda tx: tx.execute(copies))
    said = cli("document", "show", 1)
    assert len(said.out.splitlines()) < 100
    assert "part-1500" in said.out, "what is not done is shown before the others"
    assert "… and 1,440 more parts: --json" in said.out
    assert len(cli("document", "show", 1, "--json").json["parts"]) == 1500


async def _attached(tx: Tx) -> None:
    """A plan that came with a letter."""
    letter, plan = await placed(tx, name="letter.eml"), await placed(tx, name="plan.md", title="The plan")
    within_it = "UPDATE document SET container = %(letter)s, task = id WHERE id = %(plan)s"  # a note of it has no task
    await tx.execute(within_it, letter=letter, plan=plan)
    for chunk in await chunked(tx, plan, "New millstones come in May."):
        await searchable(tx, chunk)


def test_what_lies_in_a_mail_says_in_which_wherever_it_is_listed(cli, url):
    within(url, _attached)
    assert "plan.md in letter.eml " in cli("documents").out
    assert "letter.eml in" not in cli("documents").out
    assert [one["part_of"] for one in cli("documents", "--json").json] == ["letter.eml", None]
    assert "plan.md  in letter.eml  document 2  page 1" in cli("search", "millstones", "--alpha", "0").out
    (hit,) = cli("search", "millstones", "--alpha", "0", "--json").json["hits"]
    assert hit["part_of"] == "letter.eml"


def test_a_part_that_failed_is_shown_with_the_reason(cli, folder, url):
    (folder / "plan.pdf").write_text("%PDF-1.7")
    cli("add", folder)
    why = "The attachment is empty, or too damaged to be unpacked."

    async def add(tx):
        (document,) = (await load_documents(tx, [DocumentId(1)])).values()
        await add_parts(tx, [(document, Part("log.txt", b"", "attachment=1", why), ORDINARY)])
        died = (
            "UPDATE task SET outcome = 'failed', wait = NULL, finished_at = clock(), died_at = clock(), error = %(why)s"
            " WHERE id = (SELECT opening FROM document WHERE id = 2)"
        )
        await tx.execute(died, why=why)

    within(url, add)
    assert why in " ".join(cli("document", "show", 1).out.split())
    assert [part["error"] for part in cli("document", "show", 1, "--json").json["parts"]] == [why]


def test_waiting_for_nothing_new_ends_at_once_with_one_json_document(cli, folder, url):
    (folder / "plan.md").write_text("# Plan\n")
    cli("add", folder)
    within(url, lambda tx: tx.execute("UPDATE document SET completed_at = clock()"))
    said = cli("add", folder, "--wait", "--json")
    assert (said.code, said.json["documents"]) == (0, [])
    assert [one["status"] for one in said.json["added"]] == ["unchanged"]


def test_whoever_waits_waits_also_for_what_was_added_before_and_is_not_done(cli, folder, monkeypatch):
    monkeypatch.setattr("gristmill.documents.following.SERVED_WITHIN", 0.0)  # nobody works here
    (folder / "plan.md").write_text("# Plan\n")
    cli("add", folder)
    said = cli("add", folder, "--wait")
    assert (said.code, "Nobody works on these documents" in said.err) == (1, True)


def test_what_a_person_waits_for_is_in_the_foreground_and_the_rest_of_a_whole_folder_a_batch(cli, folder, monkeypatch):
    monkeypatch.setattr("gristmill.documents.following.SERVED_WITHIN", 0.0)  # nobody works here
    (folder / "00.md").write_text("# Known\n")
    cli("add", folder)
    for n in range(1, FEW + 2):
        (folder / f"{n:02}.md").write_text(f"# Plan {n}\n")
    cli("add", folder, "--wait")
    opened = cli("task", "list", "--kind", "documents.open", "--limit", 100, "--json").json
    by_age = [Urgency(one["foreground"], one["priority"]) for one in sorted(opened, key=lambda one: one["id"])]
    assert by_age == [ORDINARY] + [Urgency(foreground=True)] * FEW + [BATCH]  # what was known does not count


def test_nothing_in_a_folder_is_passed_over_without_a_word(cli, folder):
    (folder / "kept.md").write_text("# Kept\n")
    (folder / ".hidden.md").write_text("# Hidden\n")
    os.mkfifo(folder / "pipe")
    (folder / "nowhere").symlink_to(folder / "gone")
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "above").symlink_to(folder, target_is_directory=True)
    (folder.parent / "secret.md").write_text("# Secret\n")
    (folder / "lure.md").symlink_to(folder.parent / "secret.md")
    said = cli("add", folder, "--json")
    assert (said.code, {one["name"]: one["reason"] for one in said.json}) == (
        1,
        {
            "kept.md": None,
            "pipe": "it is neither a file nor a folder",
            "nowhere": "it cannot be read (No such file or directory)",
            "circle": "it cannot be read (Too many levels of symbolic links)",
            "above": "it is a link to a folder, which is not followed: add that folder itself",
            "lure.md": "it is a link to a file, which is not followed: add that file itself",
        },
    )
    (named,) = cli("add", folder / "lure.md", "--json").json
    assert (named["name"], named["status"]) == ("secret.md", "added")
    assert [one["name"] for one in cli("add", f"{folder}/[ck]*", "--json").json] == ["circle", "kept.md"]
    assert cli("add", folder / "nowhere").err.startswith("There is no file or folder ")
    assert cli("add", folder / "circle").err.endswith(" cannot be read: Too many levels of symbolic links.\n")


def test_a_folder_that_cannot_be_looked_into_is_told(cli, folder, monkeypatch):
    monkeypatch.chdir(folder)
    for _ in range(25):  # deeper than the system lets anybody name
        os.mkdir("d" * 200)
        monkeypatch.chdir("d" * 200)
    said = cli("add", folder, "--json")
    shutil.rmtree(folder)  # not left to those who clean up by name
    assert [one["reason"] for one in said.json] == ["it cannot be read (File name too long)"]


def test_a_list_says_that_it_is_not_all_and_why_it_is_empty(cli, folder):
    assert "There are no documents" in cli("documents").out
    for n in range(3):
        (folder / f"{n}.md").write_text(f"# {n}\n")
    cli("add", folder)
    assert cli("documents", "--limit", 2).err == "… and older ones: --before 2, or a higher --limit.\n"
    assert cli("documents", "--limit", 3).err == ""
    assert cli("documents", "--before", 0, "--json").json == []
    assert cli("documents", "--client", "acme").out.startswith("No document is like that")


@pytest.mark.parametrize(
    "words",
    [
        "documents",
        "search plan --alpha 0",
        "graph find plan",
        "graph show plan",
        "graph path a b",
        "graph stats",
        "graph export g.graphml",
    ],
)
def test_a_client_or_project_that_has_nothing_is_told_from_one_in_which_nothing_is_found(cli, folder, words):
    (folder / "plan.md").write_text("# Plan\n")
    cli("add", folder, "--client", "acme", "--project", "mill")
    lack = "Nothing belongs to {}: gristmill documents lists what there is, and whose it is.\n"
    assert lack.format("acmee") in cli(*words.split(), "--client", "acmee").err
    assert lack.format("acme/mil") in cli(*words.split(), "--client", "acme", "--project", "mil").err
    for known in (("--client", "acme"), ("--client", "acme", "--project", "mill"), ()):
        assert "Nothing belongs" not in cli(*words.split(), *known).err


def test_programs_are_told_in_their_own_way_that_a_client_has_nothing(cli):
    assert cli("documents", "--client", "acme", "--json").json == []
    found = cli("search", "plan", "--alpha", "0", "--client", "acme", "--json").json
    assert (found["note"].startswith("Nothing belongs to acme"), found["hits"]) == (True, [])


@pytest.mark.parametrize("query", ["", "  "])
def test_a_search_for_nothing_is_a_mistake_in_use(cli, query):
    said = cli("search", query)
    assert (said.code, said.err) == (2, "Say what to look for, for example gristmill search invoice.\n")


def test_a_type_that_no_document_has_is_answered_with_those_there_are(cli, folder, url):
    for name in ("plan.md", "photo.jpg"):
        (folder / name).write_text("# Plan\n")
    cli("add", folder)
    cli("add", folder / "plan.md", "--client", "rival")
    kinds = "CASE id WHEN 1 THEN 'image' WHEN 2 THEN 'markdown' ELSE 'mail' END"
    within(url, lambda tx: tx.execute(f"UPDATE document SET type = {kinds}"))
    said = cli("search", "plan", "--type", "jpg")
    assert (said.code, said.err) == (1, "No document is of the type “jpg”: there are image, mail, markdown.\n")
    said = cli("search", "plan", "--type", "jpg", "--client", "GLOBAL")
    assert (said.code, said.err) == (1, "No document is of the type “jpg”: there are image, markdown.\n")


SAVE_PAGE = "INSERT INTO page SELECT 1, %(n)s, scope, 'text', %(text)s, '' FROM document WHERE id = 1"


def write_pages(url: str, *texts: str) -> None:
    """The first document has these pages."""

    async def write(tx: Tx) -> None:
        await tx.execute("UPDATE document SET pages = %(n)s WHERE id = 1", n=len(texts))
        for number, text in enumerate(texts, 1):
            await tx.execute(SAVE_PAGE, n=number, text=text)

    within(url, write)


def test_the_text_of_a_document_is_printed_whole_or_by_page(cli, folder, url):
    (folder / "plan.md").write_text("# Plan\n")
    cli("add", folder)
    assert "Nothing of it was read yet" in cli("document", "text", 1).err
    write_pages(url, "# Plan", "Dig a \x1b[2Jditch.")
    assert cli("document", "text", 1).out == "--- page 1 ---\n# Plan\n--- page 2 ---\nDig a [2Jditch.\n"
    assert cli("document", "text", 1, "--page", 1).out == "# Plan\n"
    found = cli("document", "text", 1, "--json").json
    assert found == {
        "document": 1,
        "pages": [{"page": 1, "text": "# Plan"}, {"page": 2, "text": "Dig a \x1b[2Jditch."}],
    }
    assert cli("document", "text", 1, "--page", 3).err == "There is no page 3: document 1 has 2 pages.\n"
    assert cli("document", "text", 9).err == "There is no document 9: gristmill documents lists them.\n"


def test_several_documents_are_named_before_they_are_removed(cli, folder, monkeypatch):
    for name in ("plan.md", "offer.md", "note.md"):
        (folder / name).write_text(f"# {name}\n")
    cli("add", folder)
    said = cli("document", "rm", 1, 3)
    assert (said.code, said.err) == (
        2,
        "This removes 2 documents (1 note.md, 3 plan.md) for good: say --yes.\n",
    )
    monkeypatch.setattr("sys.stdin", Terminal("n\n"))
    assert cli("document", "rm", 1, 3).code == 1
    assert len(cli("documents", "--json").json) == 3
    assert cli("document", "rm", 1, 3, "--yes", "--json").json["documents"] == 2
    assert cli("document", "rm", 2, "--json").json["documents"] == 1  # one, and nothing lies in it


class Terminal(io.StringIO):
    """A terminal where somebody has typed this."""

    def isatty(self) -> bool:
        return True


def test_a_mail_with_parts_is_named_with_their_number(cli, folder, url):
    (folder / "mail.eml").write_text("From: a@example.org\n\nHello.\n")
    cli("add", folder)

    async def attach(tx: Tx) -> None:
        (mail,) = (await load_documents(tx, [DocumentId(1)])).values()
        await add_parts(tx, [(mail, Part("plan.md", b"# Plan", "attachment=1"), ORDINARY)])

    within(url, attach)
    said = cli("document", "rm", 1)
    assert said.err == "This removes 1 document (1 mail.eml) with 1 part for good: say --yes.\n"


def test_a_note_that_was_made_of_a_document_is_no_part_of_it(cli, folder, url):
    (folder / "plan.md").write_text("# Plan\n")
    cli("add", folder)

    async def note(tx: Tx) -> None:
        whole = WholeText("atom:plan", "Plan", "Dig a ditch.", NOTHING, container=DocumentId(1))
        assert (await take_in(tx, whole)).document == 2

    within(url, note)
    assert [one["id"] for one in cli("documents", "--json").json] == [1]
    assert cli("documents", "--status", "completed", "--json").json == []
    assert cli("document", "show", 1, "--json").json["parts"] == []
    said = cli("document", "rm", 1, "--json")
    assert (said.code, said.json["documents"]) == (0, 1)  # nobody is asked, and the note is not counted …
    assert cli("document", "show", 2).code == 1  # … but goes, too


def test_a_second_up_leaves_what_the_first_one_logged(tmp_path, monkeypatch):
    monkeypatch.setattr("gristmill.cli.background.MOST_LOGGED", 10)
    for said in (b"first\n", b"second\n", b"third\n"):
        with open_worker_log(tmp_path) as log:
            log.write(said)
    assert (tmp_path / "worker.log.1").read_bytes() == b"first\nsecond\n"
    assert (tmp_path / "worker.log").read_bytes() == b"third\n"


def test_the_mill_does_not_grind_its_own_data_folder(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "in" / "data"))
    (tmp_path / "in" / "data" / "spool").mkdir(parents=True)
    (tmp_path / "in" / "data" / "spool" / "blob.txt").write_text("ours")
    (tmp_path / "in" / "note.txt").write_text("theirs")
    said = cli("add", tmp_path / "in", "--json")
    assert [one["name"] for one in said.json] == ["note.txt"]
    assert "is left out (1 of the files)" in said.err
