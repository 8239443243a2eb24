"""Pages that are pictures: their text is recognised."""

from PIL import Image

from gristmill.documents.reading.results import PageText
from gristmill.models import recognise_text


def recognise_page(picture: Image.Image) -> PageText:
    found = recognise_text(picture)
    return PageText(found.text, "blank" if found.engine == "none" else "ocr")
