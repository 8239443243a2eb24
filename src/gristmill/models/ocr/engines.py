"""Tells which OCR engines are installed, without loading any of them."""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

FOLDERS = ("/usr/share/tesseract-ocr/*/tessdata", "/usr/share/tessdata", "/usr/local/share/tessdata")
VERSION = "3"  # of our own code that uses the engines; a new number makes pictures be read again


@cache
def describe_engines() -> str:
    """Everything that the text of a picture depends on, besides the picture: our code, the engines, their languages."""
    return f"{VERSION}, rapidocr {_find_version('rapidocr')}, tesserocr {_find_version('tesserocr')} {list_languages()}"


def has_tesseract() -> bool:
    """Whether both the library and its data for English are installed."""
    return bool(_find_version("tesserocr") and find_tessdata())


@cache
def find_tessdata() -> Path | None:
    """The folder with the data of Tesseract; the newest version, if there are several."""
    found = (folder for pattern in FOLDERS for folder in sorted(Path("/").glob(pattern[1:]), reverse=True))
    return next((folder for folder in found if (folder / "eng.traineddata").exists()), None)


def list_languages() -> str:
    """The languages that Tesseract has data for, in its own notation: `ces+deu+eng`."""
    folder = find_tessdata()
    files = folder.glob("*.traineddata") if folder else ()
    return "+".join(sorted(file.stem for file in files if file.stem != "osd"))


def _find_version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
