"""`gristmill import` and `gristmill records`: tables go in, reports and tables come out."""

import asyncio
import json
from pathlib import Path

import pytest
from desk import Cli

from gristmill.app import handlers
from gristmill.cli import imports
from gristmill.cli.session import Session
from gristmill.db import Database
from gristmill.queue import Worker
from gristmill.records import Import, LoadingImport, load_report
from gristmill.settings import load

REVIEWS = 'task_id,text,rating\nr1,"The flour was damp",1\nr2,Quick delivery,5\nr3,,3\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "data"))
    path = tmp_path / "reviews.csv"
    path.write_text(REVIEWS)
    return path


def work(url: str) -> None:
    """Load what was imported."""

    async def run() -> None:
        settings = load()
        async with Database(url) as db, handlers(db, settings) as bound:
            await Worker(db, bound, settings.queue, queues=["ingestion"], until_idle=True).run()

    asyncio.run(run())


def test_a_dry_run_shows_how_a_table_is_read_and_keeps_nothing(cli: Cli, file: Path) -> None:
    said = cli("import", file, "--project", "reviews", "--client", "acme", "--dry-run")
    assert said.code == 0
    assert "CSV in UTF-8, comma, with a header; text: text; id: task_id" in said.out
    assert "row 4 is invalid: its text is empty" in said.out
    assert "The flour was damp" in said.out
    assert "There are no imports" in cli("records", "ls").out


def test_a_table_is_imported_listed_shown_written_out_and_removed(cli: Cli, url: str, file: Path) -> None:
    started = cli("import", file, "--project", "reviews", "--client", "acme", "--no-embed", "--json").json
    assert started["plan"]["text"] == ["text"]
    work(url)
    report = cli("records", "show", "--import", started["import"], "--json").json
    assert report["counts"] == {"loaded": 2, "updated": 0, "duplicate": 0, "filtered": 0, "invalid": 1}
    assert "acme/reviews" in cli("records", "ls").out
    said = cli("search", "flour", "--client", "acme", "--project", "reviews", "--where", "stars=1", "--alpha", "0")
    assert said.err.strip().endswith("No record has a column “stars”: there are rating, task_id, text.")
    (first, _) = cli("records", "ls", "--import", started["import"], "--json").json
    assert "The flour was damp" in cli("records", "show", first["id"]).out
    exported = cli("records", "export", "out.jsonl", "--project", "reviews", "--client", "acme")
    assert exported.out.startswith("out.jsonl: ")
    assert json.loads(Path("out.jsonl").read_text().splitlines()[0])["text"] == "The flour was damp"
    cli("records", "rejected", started["import"], "mend.csv")
    assert "its text is empty" in Path("mend.csv").read_text()
    assert cli("records", "embed", "--project", "reviews", "--client", "acme").out == "2 records will be embedded.\n"
    assert "Removed 1 record" in cli("records", "rm", first["id"], "--yes").out
    assert "Removed 1 record" in cli("records", "rm", "--project", "reviews", "--client", "acme", "--yes").out
    assert "There are no imports" in cli("records", "ls").out


def test_whoever_waits_for_a_worker_that_does_not_run_is_told_so(
    cli: Cli, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def look_once(at: Session, started: LoadingImport, *, quiet: bool) -> Import:
        async with at.db.transaction() as tx:
            return await load_report(tx, started.document)

    monkeypatch.setattr(imports, "_follow", look_once)
    said = cli("import", file, "--project", "reviews", "--no-embed", "--wait")
    assert "No worker is running" in said.err
    assert "waiting" in said.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("import", "nowhere.csv", "--project", "p"), "There is no file or folder nowhere.csv."),
        (
            ("import", "bad.csv", "--project", "p"),
            "bad.csv cannot be imported. The file is empty: there are no rows in it.",
        ),
        (("records", "show", "--import", "99"), "There is no import 99: gristmill records ls lists them."),
        (("records", "show", "99"), "There is no record 99: gristmill records ls lists them."),
        (("records", "rm", "99", "--yes"), "There is no such record: gristmill records ls lists them."),
        (("records", "export"), "Say which: --project, or --import."),
        (("search", "flour", "--where", "rating"), "“rating” names no column: write --where rating=1."),
    ],
)
def test_a_mistake_is_answered_with_a_sentence(cli: Cli, file: Path, words: tuple[str, ...], sentence: str) -> None:
    Path("bad.csv").write_text("")
    said = cli(*words)
    assert said.code in (1, 2)
    assert said.err.strip() == sentence


def test_an_unknown_column_is_answered_with_those_that_there_are(cli: Cli, file: Path) -> None:
    said = cli("import", file, "--project", "reviews", "--text", "opinion")
    assert "There is no column “opinion”: there are task_id, text, rating." in said.err
