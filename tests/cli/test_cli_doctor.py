"""`gristmill doctor`: the whole on a real database; the judgements are tested in the rooms that make them."""

import psycopg

from mill import Convert, Extract


def verdicts(said):
    return {check["name"]: check["verdict"] for check in said.json["checks"]}


def test_a_healthy_database_passes(cli):
    said = cli("doctor", "--json")
    assert said.code == 0
    assert said.json["healthy"] is True
    assert set(verdicts(said)) == {
        "settings",
        "database",
        "extension",
        "migrations",
        "workers",
        "breakers",
        "dead letters",
        "clocks",
        "disk",
        "transactions",
        "extraction",
        "credit",
        "language model",
    }
    assert verdicts(said)["migrations"] == verdicts(said)["clocks"] == "ok"
    assert "answers in" in cli("doctor").out


def test_what_nobody_serves_open_breakers_and_dead_letters_are_warned_of(cli, url, sent, ground, monkeypatch):
    monkeypatch.setenv("GRISTMILL_QUEUE_DEAD_ALERT", "1")
    sent(Convert(1))
    ground()
    sent(Extract(1))
    cli("queue", "set", "demo-extract", "--breaker", "30%")
    with psycopg.connect(url) as connection:
        connection.execute(
            "UPDATE queue SET breaker_state = 'open', breaker_since = clock() WHERE name = 'demo-extract'"
        )
    said = cli("doctor", "--json")
    assert said.code == 0  # nothing fails, somebody should look
    assert [verdicts(said)[name] for name in ("workers", "breakers", "dead letters")] == ["warn"] * 3
    assert "gristmill worker --queues demo-extract" in cli("doctor").out


def test_a_schema_that_is_missing_or_newer_is_seen_and_left_alone(speak, empty_url, cli, url, monkeypatch):
    with psycopg.connect(url) as connection:
        connection.execute(
            "INSERT INTO gristmill_migration (room, number, name, checksum) VALUES ('queue', 9999, '9999_later', '')"
        )
    said = cli("doctor", "--json")
    assert (said.code, verdicts(said)["migrations"]) == (1, "fail")
    with psycopg.connect(url) as connection:
        connection.execute("DELETE FROM gristmill_migration WHERE number = 9999")
        connection.execute("UPDATE gristmill_migration SET checksum = 'other' WHERE room = 'queue'")
    said = cli("doctor", "--json")
    assert (said.code, verdicts(said)["migrations"]) == (1, "fail")
    assert "of another Gristmill (queue/0001_" in " ".join(cli("db", "status").out.split())
    monkeypatch.setenv("GRISTMILL_DATABASE_URL", empty_url)
    assert verdicts(speak("doctor", "--json"))["migrations"] == "warn"
    with psycopg.connect(empty_url) as connection:
        assert connection.execute("SELECT to_regclass('task')").fetchone() == (None,)


def test_an_unreachable_database_or_a_wrong_setting_fails(speak, monkeypatch):
    monkeypatch.setenv("GRISTMILL_DATABASE_URL", "postgresql://127.0.0.1:1/nowhere")
    said = speak("doctor", "--json")
    assert (said.code, said.json["healthy"], verdicts(said)) == (1, False, {"settings": "ok", "database": "fail"})
    assert "gristmill doctor" not in said.out
    monkeypatch.setenv("GRISTMILL_QUEUE_BATCH", "many")
    said = speak("doctor", "--json")
    assert (said.code, verdicts(said)) == (1, {"settings": "fail"})


def test_a_data_folder_that_cannot_be_used_is_told_without_advice_for_another_server(speak, monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.delenv("GRISTMILL_DATABASE_URL", raising=False)
    monkeypatch.setenv("GRISTMILL_DATA", str(tmp_path / "file"))
    said = speak("doctor", "--json")
    assert (said.code, verdicts(said)) == (1, {"settings": "ok", "database": "fail"})
    assert "choose another with GRISTMILL_DATA" in said.out
    assert "GRISTMILL_DATABASE_URL" not in said.out
