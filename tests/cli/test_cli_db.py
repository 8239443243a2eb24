"""`gristmill db`: on a server of somebody else's, and on one of its own."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gristmill.db import Embedded, without_secret


@pytest.fixture
def data() -> Iterator[Path]:
    """A data folder that a system user may enter; pytest's own are closed to it."""
    folder = Path(tempfile.mkdtemp(prefix="gristmill-cli-"))
    folder.chmod(0o755)
    yield folder / "data"
    Embedded(folder / "data").stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


def test_the_embedded_server_is_started_migrated_asked_and_stopped(speak, data, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATA", str(data))
    monkeypatch.delenv("GRISTMILL_DATABASE_URL", raising=False)
    assert speak("db", "status", "--json").json["embedded"]["running"] is False
    assert speak("db", "start", "--json").json["started"] is True
    assert "already runs" in speak("db", "start").out
    assert "files are pending" in speak("db", "status").out
    assert speak("db", "migrate", "--json").json["applied"][0].endswith("/0001_clock")
    assert speak("db", "migrate").out == "The schema is up to date.\n"
    assert "up to date" in speak("db", "status").out
    assert speak("db", "psql", "--json", "--", "-c", "SELECT 1").json["command"][2:] == ["-c", "SELECT 1"]
    assert speak("db", "stop", "--json").json == {"stopped": True}
    assert speak("db", "stop").out == "PostgreSQL was not running.\n"


def test_a_folder_that_is_not_ours_is_refused(speak, tmp_path, monkeypatch):
    (tmp_path / "precious").touch()
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path))
    monkeypatch.delenv("GRISTMILL_DATABASE_URL", raising=False)
    said = speak("db", "start")
    assert said.code == 1
    assert "not a data folder of Gristmill" in said.err


def test_another_server_is_looked_at_but_not_started(cli):
    status = cli("db", "status", "--json").json
    assert (status["embedded"], status["schema"]["pending"]) == (None, [])
    for command in ("start", "stop"):
        said = cli("db", command)
        assert said.code == 1
        assert "names another server" in said.err


def test_the_url_is_printed_without_its_password_unless_asked(speak, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATABASE_URL", "postgresql://me:secret@db.example.org/mill")
    assert speak("db", "url").out == "user=me dbname=mill host=db.example.org\n"
    assert speak("db", "url", "--secret", "--json").json == {"url": "postgresql://me:secret@db.example.org/mill"}


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:s3cret@host:5432/db",
        "postgresql:///db?user=me&password=s3cret&host=h",
        "host=h password = s3cret dbname=d",
        "host=h password='my s3cret' dbname=d",
    ],
)
def test_passwords_are_kept_apart_however_they_are_written(url):
    shown, secret = without_secret(url)
    assert secret in ("s3cret", "my s3cret")
    assert "s3cret" not in shown


def test_a_url_that_cannot_be_read_is_refused_without_repeating_it(speak, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATABASE_URL", "postgres//me:s3cret@host/db")
    said = speak("queue", "list")
    assert said.code == 1
    assert "s3cret" not in said.out + said.err
    assert "postgresql://user:password@host:5432/name" in said.err
