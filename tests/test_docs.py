"""Pages that name things of the program: what they name exists."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SRC = ROOT / "src" / "gristmill"
ROOMS = sorted({path.parent.name for path in SRC.glob("*/__init__.py")} | {"rooms", "app"})
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
NAMED = re.compile(rf"`((?:{'|'.join(ROOMS)})(?:\.(?!py\b)[A-Za-z_]+)+)(?:\([^`]*\))?`")


def exists(dotted: str) -> bool:
    """Whether `queue.settle.settle` is a module, or something in one."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["gristmill", *parts[:cut]]))
        except ModuleNotFoundError:
            continue
        for name in parts[cut:]:
            if not hasattr(found, name):
                return False
            found = getattr(found, name)
        return True
    return False


def test_every_function_on_the_page_of_the_house_exists() -> None:
    names = NAMED.findall((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
    assert len(names) > 30
    assert [name for name in names if not exists(name)] == []


def test_the_page_of_the_house_draws_every_room() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert [room for room in ROOMS if not re.search(rf"\b{room}\b", page.partition("## The way")[0])] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_link_to_a_file_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []
