"""Reads the text in pictures of pages: with Tesseract where it is installed, with PP-OCR everywhere."""

from gristmill.models.ocr.engines import has_tesseract, reader
from gristmill.models.ocr.recognition import Recognised, recognise

__all__ = ["Recognised", "has_tesseract", "reader", "recognise"]
