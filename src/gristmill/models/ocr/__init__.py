"""Reads the text in pictures of pages: with Tesseract where it is installed, with PP-OCR everywhere."""

from gristmill.models.ocr.engines import describe_engines, has_tesseract
from gristmill.models.ocr.layout import PicturePlace, TextBox
from gristmill.models.ocr.recognition import RecognisedText, recognise_text

__all__ = ["PicturePlace", "RecognisedText", "TextBox", "describe_engines", "has_tesseract", "recognise_text"]
