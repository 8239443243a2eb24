"""How the router is configured: by the environment, by gristmill.toml, and what it says when something is wrong."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from gristmill.errors import Refused
from gristmill.settings import RouterSettings, load

GPUS = [
    {"name": "gpu0", "url": "http://127.0.0.1:11434", "parallel": 2, "vram": "24GB"},
    {"name": "gpu1", "url": "http://127.0.0.1:11444"},
]


EXAMPLE = """
[router]
port = 12000
deadline_p3 = "1h"
orchestrator_models = ["big:30b"]
[[router.gpu_backends]]
name = "g"
url = "http://127.0.0.1:1"
[router.models."big:*"]
num_ctx = 8192
keep_alive = -1
"""


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_backends_come_as_json_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRISTMILL_ROUTER_GPU_BACKENDS", json.dumps(GPUS))
    monkeypatch.setenv("GRISTMILL_ROUTER_RESERVE_IDLE", "90s")
    settings = load().router
    assert [(gpu.name, gpu.vram) for gpu in settings.gpu_backends] == [("gpu0", 24 * 1024**3), ("gpu1", None)]
    assert settings.reserve_idle == timedelta(seconds=90)


def test_backends_come_from_gristmill_toml(tmp_path: Path) -> None:
    (tmp_path / "gristmill.toml").write_text(EXAMPLE)
    settings = load().router
    assert (settings.port, settings.gpu_backends[0].name, settings.models["big:*"].num_ctx) == (12000, "g", 8192)
    assert settings.deadline_p3 == timedelta(hours=1)


def test_without_settings_it_listens_on_loopback_in_front_of_a_local_ollama() -> None:
    settings = RouterSettings()
    assert (settings.host, settings.port) == ("127.0.0.1", 11430)
    assert settings.gpu_backends[0].url == "http://127.0.0.1:11434"
    assert (settings.reserve_for, settings.reserve_idle) == (timedelta(minutes=30), timedelta(minutes=5))
    assert settings.idle_timeout == timedelta(seconds=300)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ([GPUS[0], GPUS[0]], "two backends are called “gpu0”"),
        ([{"name": "x", "url": "127.0.0.1"}], "needs a url"),
        ([{"name": "x", "kind": "embedded"}], "needs gguf"),
    ],
)
def test_a_wrong_backend_is_one_sentence(monkeypatch: pytest.MonkeyPatch, wrong: list[object], sentence: str) -> None:
    monkeypatch.setenv("GRISTMILL_ROUTER_GPU_BACKENDS", json.dumps(wrong))
    with pytest.raises(Refused, match=sentence):
        load()


@pytest.mark.parametrize(
    ("name", "wrong", "sentence"),
    [
        ("ADMIN_KEY", "", "it is empty, which would let everybody in"),
        ("KEYS", '[{"name": "a", "key": " "}]', "it is empty, which would let everybody in"),
        ("KEYS", '[{"name": "a", "key": "k-1"}, {"name": "b", "key": "k-1"}]', "“a” and “b” have the same key"),
    ],
)
def test_a_key_that_cannot_tell_people_apart_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, name: str, wrong: str, sentence: str
) -> None:
    monkeypatch.setenv(f"GRISTMILL_ROUTER_{name}", wrong)
    with pytest.raises(Refused, match=sentence) as refused:
        load()
    assert "k-1" not in str(refused.value)


def test_keys_are_never_shown() -> None:
    settings = RouterSettings.model_validate(
        {"admin_key": "k-1", "keys": [{"name": "a", "key": "k-2"}], "gpu_backends": [{**GPUS[0], "key": "k-3"}]}
    )
    assert not any(key in repr(settings) for key in ("k-1", "k-2", "k-3"))
