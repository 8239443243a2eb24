"""A wrong setting is refused with one sentence: the place to change, and what is allowed."""

from pathlib import Path

import pytest

from gristmill.errors import Refused
from gristmill.settings import load, unknown_names


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    # The test run sets it, and with it `queue` would be a table even where a test makes it none.
    monkeypatch.delenv("GRISTMILL_QUEUE_NICE")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("QUEUE_LEASE", "soon", "is wrong: “soon” is not a duration; write for example 90s"),
        ("QUEUE_LEASE", "40s", "is wrong: a lease must be at least twice as long as a heartbeat"),
        ("QUEUE_STALL", "0s", "is wrong: heartbeat, poll, rescue and stall must be longer than zero"),
        ("QUEUE_KEEP_FOR", "9999999999999d", "is too long for a duration"),
        ("QUEUE_BATCH", "many", "it is “many”, which is not a whole number"),
        ("QUEUE_BATCH", "9999", "it is “9999”, and must be at most 900"),
        ("QUEUE_BATCH", "9" * 99, "999…”"),
        ("QUEUE", "5", "which is not a table"),
        ("DATA", " ", "it is empty: name a folder, or leave it out"),
        ("LOG_LEVEL", "loud", "and must be debug, info, warning or error"),
        ("LOG_JSON_LINES", "perhaps", "which is neither true nor false"),
        ("ROUTER_ANONYMOUS_MAX_PRIORITY", "P9", "and must be P0, P1, P2 or P3"),
        ("ROUTER_GPU_BACKENDS", "abc", "it is not JSON"),
        ("ROUTER_GPU_BACKENDS", "{}", "which is not a list"),
        ("ROUTER_GPU_BACKENDS", '[{"name": "x", "uri": ""}]', "([1].uri) is wrong: there is no such setting"),
        ("FETCH_ALLOWED_HOSTS", '["10.1.0.0/99"]', "“10.1.0.0/99” is no network; write for example 10.1.0.0/16"),
        ("FETCH_ALLOWED_HOSTS", '["http://wiki"]', "is no network"),
        ("FETCH_ALLOWED_HOSTS", '["wiki page"]', "“wiki page” is neither a host nor a network"),
        ("ALARMS_REPEAT", "10s", "repeat must be a minute at least"),
        ("ALARMS_CHANNELS", '[{"name": "x", "kind": "fax"}]', "its kind is “fax”, and must be webhook, email, command"),
        (
            "ALARMS_CHANNELS",
            '[{"name": "x", "kind": "webhook", "url": "https://x.example/secret"}]',
            "env:NAME or file:",
        ),
        ("ALARMS_CHANNELS", '[{"name": "x y", "kind": "command", "argv": ["true"]}]', "is no name for a channel"),
        ("FETCH_DELAYS", '{"x": {"min": "5s", "max": "2s"}}', "a delay goes from a shorter to a longer time"),
        ("ROUTER_NETWORKS", '[{"network": "x", "max_priority": "P1"}]', "which is not a network"),
    ],
)
def test_a_wrong_variable_is_named_with_what_is_allowed(
    name: str, value: str, sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"GRISTMILL_{name}", value)
    with pytest.raises(Refused) as refused:
        load()
    assert str(refused.value).startswith(f"The setting GRISTMILL_{name} ")
    assert sentence in str(refused.value)
    assert not any(word in str(refused.value) for word in ("pydantic", "validation", "\n"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("mill = 1", "mill in gristmill.toml is wrong: there is no such setting"),
        ("[queue]\nlese = 1", "queue.lese in gristmill.toml is wrong: there is no such setting; perhaps queue.lease"),
        ("[queue]\nbatch = 'x'", "queue.batch in gristmill.toml is wrong: it is “x”, which is not a whole number"),
        ("[queue]\nlease = '31s'", "queue.lease in gristmill.toml is wrong: a lease must be"),
        ("queue = 5", "queue in gristmill.toml is wrong: it is “5”, which is not a table"),
        ("queue =", "gristmill.toml cannot be read: Invalid value"),
    ],
)
def test_a_wrong_key_is_named_with_its_file(text: str, sentence: str, here: Path) -> None:
    (here / "gristmill.toml").write_text(text)
    with pytest.raises(Refused) as refused:
        load()
    assert sentence in str(refused.value)


def test_a_folder_called_gristmill_toml_is_refused(here: Path) -> None:
    (here / "gristmill.toml").mkdir()
    with pytest.raises(Refused, match="is not a file"):
        load()


def test_a_file_that_is_no_text_is_told_with_its_path(here: Path) -> None:
    (here / "gristmill.toml").write_bytes(b"\xa6\x00\xff")
    with pytest.raises(Refused) as refused:
        load()
    assert str(refused.value).startswith(f"{(here / 'gristmill.toml').resolve()} is not UTF-8 text")
    assert "codec" not in str(refused.value)


def test_a_secret_that_is_wrong_is_not_shown(here: Path) -> None:
    (here / "gristmill.toml").write_text("[llm]\nkey = ['hush']")
    with pytest.raises(Refused) as refused:
        load()
    assert "hush" not in str(refused.value)


def test_a_variable_that_sets_nothing_is_told_with_the_one_that_may_be_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_QUEUE_LESE", "5min")
    monkeypatch.setenv("GRISTMILL_MOON", "full")
    load()
    told = "\n".join(unknown_names())
    assert "GRISTMILL_QUEUE_LESE is no setting and has no effect; perhaps GRISTMILL_QUEUE_LEASE is meant." in told
    assert "GRISTMILL_MOON is no setting and has no effect. See" in told
