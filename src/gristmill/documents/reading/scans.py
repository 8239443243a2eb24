"""Pages that are pictures: their text is recognised."""

from PIL import Image

from gristmill.documents.reading.results import PageText
from gristmill.models import ocr


def recognised(picture: Image.Image) -> PageText:
    return PageText(ocr.recognise(picture).text, "ocr")
