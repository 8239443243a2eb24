"""Pages that are pictures: their text is recognised."""

from PIL import Image

from gristmill.documents.reading import tidy
from gristmill.documents.reading.places import pack_words
from gristmill.documents.reading.results import PageText
from gristmill.models import recognise_text


def recognise_page(picture: Image.Image) -> PageText:
    found = recognise_text(picture)
    text = tidy.page(found.text)  # as it is kept: the places of its words are counted in it
    return PageText(text, "blank" if found.engine == "none" else "ocr", pack_words(text, found.boxes))
