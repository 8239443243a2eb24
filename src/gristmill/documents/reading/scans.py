"""Pages that are pictures: their text is recognised."""

from PIL import Image

from gristmill.documents.reading.results import PageText
from gristmill.models import ocr


def recognised(picture: Image.Image) -> PageText:
    found = ocr.recognise(picture)
    return PageText(found.text, "blank" if found.engine == "none" else "ocr")
