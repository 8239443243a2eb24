"""Rules of the house that no linter knows: doors, opening sentences, statements that fit, documented settings."""

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from gristmill.db import Database
from gristmill.db.sql import NAME
from gristmill.durations import format_duration
from gristmill.settings import Settings, Slice
from statements import SQL, is_copy, prepare_as, read_statements

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "gristmill"
PYTHON = sorted(SRC.rglob("*.py"))
SCHEMA = sorted(SRC.glob("*/schema/*.sql"))
ROOMS = {path.parent.name for path in SRC.glob("*/__init__.py")}


def within(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


# --- tests


def test_files_of_tests_that_are_in_no_package_have_names_of_their_own() -> None:
    """pytest imports them by their names alone: of two with the same name, it would not collect the second."""
    loose = [path.name for path in (ROOT / "tests").rglob("test_*.py") if not (path.parent / "__init__.py").exists()]
    assert sorted(loose) == sorted(set(loose))


# --- doors


def test_the_contract_about_the_driver_is_for_all_rooms_but_db_and_queue() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (bound,) = [set(one["source_modules"]) for one in contracts if one["name"] == "Only db and queue know the driver"]
    files = {path.stem for path in SRC.glob("*.py") if not path.stem.startswith("__")}
    assert bound == {f"gristmill.{name}" for name in (ROOMS | files) - {"db", "queue"}}


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(path: Path) -> Iterator[str]:
    """Every module that a file imports, by its full name."""
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{within(path)} imports relatively"
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def test_a_room_is_entered_through_its_door() -> None:
    """`from gristmill.queue import send`, never `gristmill.queue.store`; only app.py may look inside."""
    others = [path for path in PYTHON if path != SRC / "app.py"]
    assert len(others) > 800
    assert [f"{within(path)}: {module}" for path in others for module in find_break_ins(path)] == []


def find_break_ins(path: Path) -> Iterator[str]:
    """The modules behind the doors of other rooms that a file imports."""
    own = path.relative_to(SRC).parts[0]
    for module in imported(path):
        package, _, rest = module.partition(".")
        room, _, inside = rest.partition(".")
        if package == "gristmill" and room in ROOMS and inside and room != own:
            yield module


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_a_door_says_what_is_behind_it(room: str) -> None:
    tree = ast.parse((SRC / room / "__init__.py").read_text(encoding="utf-8"))
    names = [node for node in tree.body if isinstance(node, ast.Assign) and _is_all(node)]
    assert len(names) == 1, f"gristmill/{room}/__init__.py needs one __all__"


@pytest.mark.parametrize("folder", sorted(path.parent for path in (SRC / "models").glob("*/__init__.py")), ids=within)
def test_a_sub_room_of_models_has_a_door_as_well(folder: Path) -> None:
    """The door of models shows everything that the door of a sub-room shows: other rooms need no second one."""
    tree = ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))
    (names,) = [ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and _is_all(node)]
    outer = ast.parse((SRC / "models" / "__init__.py").read_text(encoding="utf-8"))
    (others,) = [ast.literal_eval(node.value) for node in outer.body if isinstance(node, ast.Assign) and _is_all(node)]
    assert set(names) <= set(others)


def _is_all(node: ast.Assign) -> bool:
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)


# --- names


# The client is a library of its own: it calls the answers of the API what the API calls them.
ROOMS_WITH_WORDS_OF_OTHERS = {"client"}


def test_a_public_class_has_a_name_of_its_own() -> None:
    """One word has one meaning in the whole house. Private classes stay in their file, and may be called alike."""
    defined: dict[str, list[str]] = {}
    for path in PYTHON:
        if path.relative_to(SRC).parts[0] in ROOMS_WITH_WORDS_OF_OTHERS:
            continue
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined.setdefault(node.name, []).append(within(path))
    assert len(defined) > 1_000
    assert {name: paths for name, paths in defined.items() if len(paths) > 1} == {}


# --- files


def test_what_is_left_to_others_is_abstract() -> None:
    """A method that raises NotImplementedError is found missing when it runs, an abstract one before."""
    raised = [(path, node) for path in PYTHON for node in ast.walk(parse(path)) if isinstance(node, ast.Raise)]
    assert len(raised) > 500
    lazy = [(path, node) for path, node in raised if node.exc and "NotImplementedError" in ast.unparse(node.exc)]
    assert [f"{within(path)}:{node.lineno}" for path, node in lazy] == []


def test_a_file_opens_with_one_sentence() -> None:
    wrong = {within(path): find_fault(ast.get_docstring(parse(path)) or "") for path in PYTHON}
    assert {path: fault for path, fault in wrong.items() if fault} == {}


def find_fault(docstring: str) -> str:
    """Why a file does not open with one sentence; empty if it does."""
    first = docstring.split("\n\n")[0].replace("\n", " ")
    if not first:
        return "it has no docstring"
    if first[-1] not in ".:" or not (first[0].isupper() or first[0] in "`%"):
        return f"“{first}” is no sentence"
    return "" if "\n\n" in docstring or "\n" not in docstring else "it opens with more than one line"


@pytest.mark.parametrize("path", [*SQL, *SCHEMA], ids=within)
def test_a_file_of_statements_opens_with_one_sentence(path: Path) -> None:
    assert re.match(r"-- [A-Z`][^\n]+\.\n", path.read_text(encoding="utf-8"))


# --- statements


async def test_every_named_statement_fits_the_schema(db: Database) -> None:
    prepared = 0
    async with await db.connect("test") as connection:
        for place, text in read_statements():
            if is_copy(text):
                table, columns = re.findall(r"COPY (\w+) \(([^)]+)\) FROM STDIN", text)[0]
                await connection.execute(f"SELECT {columns} FROM {table} LIMIT 0".encode())
                continue
            try:
                await connection.execute(prepare_as("one", text))
            except Exception as error:
                raise AssertionError(f"{place}: {error}") from error
            await connection.execute("DEALLOCATE one")
            prepared += 1
    assert prepared > 50


@pytest.mark.parametrize("path", SQL, ids=within)
def test_every_named_statement_is_used_beside_its_file(path: Path) -> None:
    names = NAME.findall(path.read_text(encoding="utf-8"))
    code = "".join(one.read_text(encoding="utf-8") for one in path.parent.glob("*.py"))
    assert [name for name in names if f'["{name}"]' not in code] == []


# --- tables

CREATED = re.compile(r"^CREATE TABLE (\w+)", re.MULTILINE)
WRITTEN = re.compile(r"\b(?:INSERT INTO|UPDATE|DELETE FROM|MERGE INTO|COPY|TRUNCATE)\s+(?:ONLY\s+)?(\w+)")
COMMENT = re.compile(r"--[^\n]*")
WRITTEN_BY_OTHERS: dict[tuple[str, str], str] = {}  # (table, room): the reason why it may


def test_one_room_writes_a_table() -> None:
    """The room that made it; other rooms call its functions."""
    files = (*SQL, *SCHEMA)
    texts = {path: COMMENT.sub("", path.read_text(encoding="utf-8")) for path in files}
    rooms = {path: path.relative_to(SRC).parts[0] for path in files}
    owners = {table: rooms[path] for path, text in texts.items() for table in CREATED.findall(text)}
    writers = {
        (table, rooms[path]) for path, text in texts.items() for table in WRITTEN.findall(text) if table in owners
    }
    assert len(owners) > 30
    assert {table for table, _ in writers} >= {"task", "document", "page", "chunk", "scope"}
    assert {one for one in writers if owners[one[0]] != one[1]} == set(WRITTEN_BY_OTHERS)


# --- settings


@pytest.mark.parametrize(
    "name", [name for name, field in Settings.model_fields.items() if isinstance(field.default, Slice)]
)
def test_the_settings_of_a_room_are_in_the_file_of_its_name(name: str) -> None:
    assert type(Settings.model_fields[name].default).__module__ == f"gristmill.settings.{name}"


def leaves(model: type[BaseModel], prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from leaves(kind, (*prefix, name))
        else:
            yield (*prefix, name), field


def default(path: tuple[str, ...], field: FieldInfo) -> str:
    if path == ("data",):
        return "the system's place for data, or the user's"  # it depends on who asks
    value: Any = field.default
    if isinstance(value, timedelta):
        return f"`{format_duration(value)}`"
    if isinstance(value, tuple | dict):
        return f"`{json.dumps(plain(value))}`"
    return "none" if value is None else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def plain(value: Any) -> Any:
    """A structured default as it would be written in the environment."""
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return value.model_dump(mode="json", exclude_unset=True) if isinstance(value, BaseModel) else value


def documented(path: tuple[str, ...], field: FieldInfo) -> str:
    """The line of docs/settings.md that a setting should have."""
    variable = "GRISTMILL_" + "_".join(path).upper()
    return f"| `{'.'.join(path)}` | `{variable}` | {default(path, field)} | {field.description} |"


@pytest.mark.parametrize(
    ("path", "field"), list(leaves(Settings)), ids=lambda one: ".".join(one) if isinstance(one, tuple) else ""
)
def test_every_setting_is_documented_as_it_is(path: tuple[str, ...], field: FieldInfo) -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert documented(path, field) in page.splitlines()


def test_the_page_documents_no_setting_that_does_not_exist() -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    known = {".".join(path) for path, _ in leaves(Settings)}
    assert set(re.findall(r"^\| `([a-z0-9_.]+)` \| `GRISTMILL", page, re.MULTILINE)) == known


def test_the_example_on_the_page_is_valid(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert set(tomllib.loads(example)) == set(Settings.model_fields)
    (tmp_path / "gristmill.toml").write_text(example, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    settings = Settings()
    assert settings.queue.heartbeat == timedelta(seconds=20)
    assert settings.log.json_lines


LARGE = ("max_payload", "body_limit", "holdback_limit")
HUGE = ("memory", "spool", "images", "max_pixels")
BACKENDS = '[{"name": "x", "url": "http://127.0.0.1:1"}]'
STRUCTURED = {
    "gpu_backends": BACKENDS,
    "cpu_backends": BACKENDS,
    "orchestrator_models": '["m"]',
    "background_models": '["m"]',
    "models": '{"m": {"num_ctx": 777}}',
    "priorities": '{"m": "P2"}',
    "keys": '[{"name": "n", "key": "k"}]',
    "networks": '[{"network": "127.0.0.0/8", "max_priority": "P3"}]',
    "anonymous_max_priority": "P2",
    "origins": '["https://*.example.org"]',
    "hosts": '["*.example.org"]',
    "admin_key": "k",
    "key": "k",
    "callback_key": "k",
    "allowed_hosts": '["wiki.example.org:8080", "10.1.0.0/16"]',
    "ports": "[443]",
    "channels": '[{"name": "ops", "kind": "command", "argv": ["true"]}]',
    "types": '["text/plain"]',
    "robots": "false",
    "delays": '{"hzzo.hr": {"min": "5s", "max": "8s"}}',
    "delay_min": "2s",
    "max_redirects": "7",
    "kind": "openai",
    "floor": "0.3",
    "price": "0.3",
    "cron_secret": "k",
    "meaning_share": "0.3",
    "most_gone": "0.3",
    "named": '{"work": {"kind": "eml", "path": "/mails"}}',
    "proxies": '["10.0.0.2"]',
    "readable": '["/opt/compilers"]',
    "smtp": '{"host": "mail.example.org", "sender": "agent@example.org"}',
    "unsupported": "flag",
    "use_delegation_graph": "true",
    "use_specialist_agents": "true",
    "use_dag_execution": "true",
    "use_procedural_memory": "true",
}


@pytest.mark.parametrize(
    ("path", "field"), list(leaves(Settings)), ids=lambda one: ".".join(one) if isinstance(one, tuple) else ""
)
def test_every_setting_can_be_set_from_the_environment(
    path: tuple[str, ...], field: FieldInfo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given = {"level": "debug", "json_lines": "true", "database_url": "postgresql://x/y", "app": "a:b", "data": "/x"}
    given |= {"nice": "7", "row_security": "false"}
    kind = str(field.annotation)
    number = "7777" if path[-1] in LARGE else "77777777" if path[-1] in HUGE else "777"
    switch = str(not field.default).lower() if field.annotation is bool else None
    value = (given | STRUCTURED).get(path[-1]) or switch or ("60s" if "timedelta" in kind else number)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GRISTMILL_" + "_".join(path).upper(), value)
    read: Any = Settings()
    for name in path:
        read = getattr(read, name)
    if path[-1] in STRUCTURED:
        assert read != field.default
        return
    if isinstance(read, bool | timedelta):
        assert read in (value == "true", timedelta(seconds=60))
    else:
        assert str(read) == value
