"""The examples tell one story, and can be written anew byte for byte."""

import importlib.util
from pathlib import Path
from types import ModuleType

from gristmill.documents.reading import Limits, inspect, read

EXAMPLES = Path(__file__).parents[2] / "examples"


def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_inbox", EXAMPLES / "make_inbox.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_inbox_is_what_its_script_writes() -> None:
    """Pictures depend on the version of Pillow's codecs; all else is compared."""
    written = maker().files()
    assert sorted(written) == sorted(path.name for path in (EXAMPLES / "inbox").iterdir())
    for name, data in written.items():
        if not name.endswith((".jpg", ".tiff")):
            assert (EXAMPLES / "inbox" / name).read_bytes() == data, name


def test_every_file_of_the_inbox_can_be_read() -> None:
    said: dict[str, str] = {}
    for path in sorted((EXAMPLES / "inbox").iterdir()):
        found = inspect(str(path), path.name, Limits())
        pages = [read(str(path), found.type, number, Limits()) for number in range(1, found.pages + 1)]
        said[path.name] = "\n".join(page.text for page in pages)
    assert "INV-2026-058" in said["letter-harrow-trust.tiff"]
    assert "88-20417" in said["receipt-photo.jpg"]
    assert "### 3. Price and payment" in said["contract-HT-2026-014.pdf"]
    assert "Results\n\nWith lithium grease the play grew by 210\nmicrometres" in said["paper-slow-bearings.pdf"]
    assert "Corvane Bearings" in said["wiki-aldermoor-mill.html"] + said["meeting-2026-05-26.md"]
