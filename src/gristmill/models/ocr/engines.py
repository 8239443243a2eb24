"""Which OCR engines are installed: what they read depends on it. Asked without loading any of them."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

FOLDERS = ("/usr/share/tesseract-ocr/*/tessdata", "/usr/share/tessdata", "/usr/local/share/tessdata")
VERSION = "2"  # of how they are used


@cache
def reader() -> str:
    """All that the text of a picture depends on, besides the picture."""
    return f"{VERSION}, rapidocr {_version('rapidocr')}, tesserocr {_version('tesserocr')} {languages()}"


def has_tesseract() -> bool:
    """Whether both the library and English data for it are there."""
    return bool(_version("tesserocr") and tessdata())


@cache
def tessdata() -> Path | None:
    found = (folder for pattern in FOLDERS for folder in sorted(Path("/").glob(pattern[1:]), reverse=True))
    return next((folder for folder in found if (folder / "eng.traineddata").exists()), None)


def languages() -> str:
    """Those that Tesseract has data for, as it wants them."""
    folder = tessdata()
    files = folder.glob("*.traineddata") if folder else ()
    return "+".join(sorted(file.stem for file in files if file.stem != "osd"))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
