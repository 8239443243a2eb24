"""Which OCR engines are installed: what they read depends on it. Asked without loading any of them."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

FOLDERS = ("/usr/share/tesseract-ocr/*/tessdata", "/usr/share/tessdata", "/usr/local/share/tessdata")
VERSION = "2"  # of how they are used


@cache
def describe_engines() -> str:
    """All that the text of a picture depends on, besides the picture."""
    return f"{VERSION}, rapidocr {_find_version('rapidocr')}, tesserocr {_find_version('tesserocr')} {list_languages()}"


def has_tesseract() -> bool:
    """Whether both the library and English data for it are there."""
    return bool(_find_version("tesserocr") and find_tessdata())


@cache
def find_tessdata() -> Path | None:
    found = (folder for pattern in FOLDERS for folder in sorted(Path("/").glob(pattern[1:]), reverse=True))
    return next((folder for folder in found if (folder / "eng.traineddata").exists()), None)


def list_languages() -> str:
    """Those that Tesseract has data for, as it wants them."""
    folder = find_tessdata()
    files = folder.glob("*.traineddata") if folder else ()
    return "+".join(sorted(file.stem for file in files if file.stem != "osd"))


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
