"""Closed doors: a name comes from its module, and nothing else is imported."""

import gc
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gristmill.doors import load_for_good

SRC = Path(__file__).parents[1] / "src"
HOUSE = {
    "gristmill/__init__.py": "",
    "gristmill/barn/__init__.py": """
        from gristmill.barn import tools
        from gristmill.barn.cow import Cow
        from gristmill.barn.hen import lay as lay_egg
        from gristmill.barn.loft import Hay
        from gristmill.barn.milk import milk
        __all__ = ["Cow", "Hay", "count", "lay_egg", "milk", "tools"]
        def count(): return 3
        """,
    "gristmill/barn/cow.py": "class Cow: pass",
    "gristmill/barn/hen.py": "def lay(): return 'egg'",
    "gristmill/barn/tools.py": "FORK = 1",
    "gristmill/barn/milk.py": "def milk(): return 'milk'",
    "gristmill/barn/broken.py": "import gristmill.nowhere",
    "gristmill/barn/loft/__init__.py": "from gristmill.barn.loft.hay import Hay",
    "gristmill/barn/loft/hay.py": "from gristmill.barn.cow import Cow\nclass Hay(Cow): pass",
    "gristmill/barn/loft/note.txt": "dry",
}


@pytest.fixture
def house(tmp_path: Path) -> Path:
    for name, text in HOUSE.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    (tmp_path / "gristmill" / "doors.py").write_bytes((SRC / "gristmill" / "doors.py").read_bytes())
    return tmp_path


def imported_by(house: Path, code: str) -> list[str]:
    """The modules of the barn that this code imports, and what it prints."""
    program = f"""
import sys
sys.path.insert(0, {str(house)!r})
from gristmill.doors import keep_doors_closed
keep_doors_closed()
{textwrap.dedent(code)}
print(*sorted(name.removeprefix("gristmill.barn.") for name in sys.modules if name.startswith("gristmill.barn.")))
"""
    ended = subprocess.run([sys.executable, "-I", "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.split()


def test_a_module_behind_a_door_is_imported_without_it(house: Path) -> None:
    assert imported_by(house, "import gristmill.barn.hen") == ["hen"]


def test_a_name_brings_the_module_that_has_it_and_no_other(house: Path) -> None:
    assert imported_by(house, "from gristmill.barn import Cow") == ["cow"]
    assert imported_by(house, "from gristmill.barn import lay_egg; print(lay_egg())") == ["egg", "hen"]


def test_a_name_is_fetched_through_two_doors(house: Path) -> None:
    assert imported_by(house, "from gristmill.barn import Hay; print(Hay.__name__)") == [
        "Hay",
        "cow",
        "loft",
        "loft.hay",
    ]


def test_a_module_that_the_door_shows_is_a_name_like_others(house: Path) -> None:
    assert imported_by(house, "from gristmill.barn import tools; print(tools.FORK)") == ["1", "tools"]


def test_a_name_that_the_door_makes_itself_opens_it(house: Path) -> None:
    found = imported_by(house, "from gristmill.barn import count; print(count())")
    assert found == ["3", "cow", "hen", "loft", "loft.hay", "milk", "tools"]


def test_a_name_that_is_also_that_of_a_module_is_what_the_door_shows(house: Path) -> None:
    assert (
        imported_by(house, "import gristmill.barn.milk\nfrom gristmill.barn import milk; print(milk())") == ["milk"] * 2
    )
    assert (
        imported_by(house, "from gristmill.barn import milk\nimport gristmill.barn.milk; print(milk())") == ["milk"] * 2
    )


def test_a_name_that_is_not_there_is_missed_as_always(house: Path) -> None:
    code = """
    try:
        from gristmill.barn import pig
    except ImportError as error:
        print("ImportError" if "pig" in str(error) else error)
    """
    assert "ImportError" in imported_by(house, code)


def test_a_module_that_cannot_be_imported_says_why(house: Path) -> None:
    code = """
    try:
        from gristmill.barn import broken
    except ModuleNotFoundError as error:
        print(error.name)
    """
    assert "gristmill.nowhere" in imported_by(house, code)


def test_files_beside_a_closed_door_are_found(house: Path) -> None:
    code = """
    from importlib.resources import files
    print(files("gristmill.barn.loft").joinpath("note.txt").read_text())
    """
    assert imported_by(house, code) == ["dry", "loft"]


def test_our_own_doors_show_the_same_names_closed_and_open() -> None:
    """Every name of every door, as somebody gets it who asks a closed one first."""
    program = f"""
import importlib, pkgutil, sys
sys.path.insert(0, {str(SRC)!r})
from gristmill.doors import keep_doors_closed
keep_doors_closed()
import gristmill
checked = 0
for room in [one.name for one in pkgutil.iter_modules(gristmill.__path__) if one.ispkg]:
    door = importlib.import_module("gristmill." + room)
    names = sys.modules["ast"].parse(open(door.__file__).read()).body
    shown = [eval(compile(sys.modules["ast"].Expression(one.value), "", "eval")) for one in names
             if type(one).__name__ == "Assign" and one.targets[0].id == "__all__"][0]
    fetched = {{name: getattr(door, name) for name in shown}}
    door._open()
    assert all(getattr(door, name) is value for name, value in fetched.items()), room
    checked += len(fetched)
print(checked)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert int(ended.stdout) > 300


# each takes 20 ms to half a second to load; the first task or call that needs one loads it
WORKER = "import gristmill.app"
SERVER = """from gristmill.app import ROOMS
from gristmill.web.application import build_surface
build_surface(tuple(room.name for room in ROOMS))"""


@pytest.mark.parametrize(
    ("process", "rare"),
    [
        (WORKER, ("aiohttp", "icalendar", "markdown_it", "numpy", "onnxruntime", "fastapi")),
        (SERVER, ("mcp", "icalendar", "markdown_it", "numpy", "onnxruntime")),
    ],
    ids=["worker", "server"],
)
def test_what_few_need_is_not_loaded_with_all_rooms(process: str, rare: tuple[str, ...]) -> None:
    program = f"""
import sys
from gristmill.doors import keep_doors_closed
keep_doors_closed()
{process}
print(*(name for name in {rare} if name in sys.modules))
"""
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert loaded.split() == []


def test_the_collector_never_looks_through_what_was_loaded_for_good(house: Path) -> None:
    code = """
    import gc
    from gristmill.doors import load_for_good
    with load_for_good():
        print("off" if not gc.isenabled() else "on")
        from gristmill.barn import Cow
        with load_for_good():
            pass
        print("off" if not gc.isenabled() else "on")
    print("on" if gc.isenabled() else "off", gc.get_freeze_count() > 1000)
    """
    assert imported_by(house, code) == ["off", "off", "on", "True", "cow"]


def test_where_doors_are_open_the_collector_only_pauses() -> None:
    """A test, or a program of somebody else, has objects of its own."""
    before = gc.get_freeze_count()
    with load_for_good():
        assert not gc.isenabled()
    assert (gc.isenabled(), gc.get_freeze_count()) == (True, before)
