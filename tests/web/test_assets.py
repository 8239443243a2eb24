"""Files of the console are kept by browsers under their version, and htmx is the one that was tested."""

import re
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from gristmill.app import ROOMS
from gristmill.errors import Refused
from gristmill.web import assets
from gristmill.web.application import build_surface

ICON = re.compile(r'<symbol id="([a-z]+)"')
USED = re.compile(r'icon\("([a-z]+)"')


@pytest.fixture
def client() -> TestClient:
    app = FastAPI()
    app.include_router(assets.ROUTES)
    return TestClient(app)


def test_a_file_is_kept_for_a_year_under_its_version(client: TestClient) -> None:
    answer = client.get(assets.link_asset("console.css"))
    assert answer.headers["cache-control"] == assets.FOR_EVER
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    assert b"--" in answer.content


def test_an_old_page_gets_todays_files_and_does_not_keep_them(client: TestClient) -> None:
    assert client.get("/static/000000000000/console.js").headers["cache-control"] == "no-cache"


def test_htmx_is_served_from_its_wheel(client: TestClient) -> None:
    assert 'version:"2.' in client.get(assets.link_asset("htmx.js")).text


def test_another_htmx_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assets, "HTMX", "static/django_htmx/htmx-4.min.js")
    with pytest.raises(Refused, match="not tested"):
        assets.read_htmx()


def test_all_styles_scripts_and_icons_together_weigh_less_than_60_kilobytes_on_the_wire() -> None:
    assert sum(len(file.packed) for file in assets.load_assets().files.values()) < 60_000


def test_scripts_and_templates_hold_nothing_that_the_policy_forbids() -> None:
    folder = Path(assets.__file__).parent
    for path in [*folder.glob("static/*.js"), *folder.rglob("templates/*.html")]:
        text = path.read_text()
        assert not re.search(r"\sstyle=|\son[a-z]+=\"|javascript:|\beval\(|new Function|hx-on", text), path


def test_every_icon_that_a_template_names_is_drawn() -> None:
    folder = Path(assets.__file__).parent
    drawn = set(ICON.findall((assets.FOLDER / "icons.svg").read_text()))
    used = {name for path in folder.rglob("templates/*.html") for name in USED.findall(path.read_text())}
    assert used <= drawn


def test_no_two_pages_of_the_menu_have_the_same_icon() -> None:
    pages = build_surface(tuple(room.name for room in ROOMS)).menu
    assert len({one.icon for one in pages}) == len(pages) > 15
