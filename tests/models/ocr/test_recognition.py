"""Reading pictures with the real models: scans, photos, pages on their side, and blank ones."""

import socket
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from gristmill.errors import Permanent
from gristmill.models.ocr import engines, pictures, recognition, tesseract

LETTER = [
    "Mill Street 12, Brno, 3 May 2026",
    "Dear Sir or Madam,",
    "your order of forty sacks of flour arrives",
    "on Thursday. The invoice 2026-0417 over",
    "EUR 1,250.00 is due within 14 days.",
]
PAPER = (740, 740)  # pixels


@pytest.fixture
def rapid() -> ModuleType:
    """Imported by the first test that needs it: it takes a second, and every process of a run collects these tests."""
    return import_module("gristmill.models.ocr.rapid")


@cache
def letter() -> Image.Image:
    """A letter on square paper: the model enlarges the shorter side to a fixed size, so a long page takes longer."""
    page = Image.new("L", PAPER, 255)
    draw = ImageDraw.Draw(page)
    for row, text in enumerate(LETTER):
        draw.text((60, 60 + 60 * row), text, 0, font=ImageFont.load_default(30))
    return page


def words(text: str) -> set[str]:
    return set(text.replace(",", " ").replace(".", " ").split())


def share(text: str) -> float:
    wanted = words(" ".join(LETTER))
    return len(wanted & words(text)) / len(wanted)


def test_a_clean_page_is_read_whole_and_in_order() -> None:
    found = recognition.recognise_text(letter(), engine="rapidocr")
    assert share(found.text) == 1
    assert found.text.index("Dear") < found.text.index("invoice") < found.text.index("due")
    assert (found.engine, found.confidence > 0.9) == ("rapidocr", True)


def test_letters_of_other_languages_are_read() -> None:
    try:
        font = ImageFont.truetype("DejaVuSans.ttf", 30)
    except OSError:
        pytest.skip("DejaVuSans.ttf is not installed, and Pillow's own font has no ř")
    page = Image.new("L", PAPER, 255)
    ImageDraw.Draw(page).text((60, 60), "Příliš žlutý kůň, Größe und Maß", 0, font=font)
    assert recognition.recognise_text(page, engine="rapidocr").text == "Příliš žlutý kůň, Größe und Maß"


@pytest.mark.parametrize("turned", [90, 180, 270])
def test_a_page_is_read_whichever_way_up_it_is(turned: int) -> None:
    found = recognition.recognise_text(letter().rotate(turned, expand=True), engine="rapidocr").text
    assert share(found) > 0.9
    assert found.index("Dear") < found.index("invoice") < found.index("due")


def test_a_skewed_and_shaded_photo_with_noise_is_read() -> None:
    skewed = letter().rotate(6, expand=True, fillcolor=255).filter(ImageFilter.GaussianBlur(0.7))
    light = np.asarray(skewed, np.float32)
    shade = np.linspace(0.35, 1.0, light.shape[1], dtype=np.float32)[None, :]
    noise = np.random.default_rng(1).normal(0, 6, light.shape)
    photo = Image.fromarray(np.clip(light * shade + noise, 0, 255).astype(np.uint8))
    found = recognition.recognise_text(photo, engine="rapidocr").text
    assert share(found) > 0.85
    assert found.index("Dear") < found.index("sacks") < found.index("due")


@pytest.mark.parametrize("tone", [170, 190, 210, 230, 245])
def test_faint_letters_are_read(tone: int) -> None:
    """As on a receipt that the sun has bleached."""
    page = Image.new("L", PAPER, 255)
    for row, text in enumerate(LETTER):
        ImageDraw.Draw(page).text((60, 60 + 60 * row), text, tone, font=ImageFont.load_default(30))
    assert share(recognition.recognise_text(page).text) > 0.9


def test_faint_letters_on_noisy_paper_are_read() -> None:
    light = 245 - (255 - np.asarray(letter(), np.float32)) * (25 / 255)
    noisy = light + np.random.default_rng(1).normal(0, 6, light.shape)
    assert share(recognition.recognise_text(Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8))).text) > 0.8


@pytest.mark.parametrize(
    "hidden",
    [letter().filter(ImageFilter.GaussianBlur(6)), letter().filter(ImageFilter.GaussianBlur(10)), "coarse"],
    ids=["blurred", "more blurred", "coarse"],
)
def test_what_may_be_text_is_shown_to_an_engine(hidden: Image.Image | str) -> None:
    noise = np.random.default_rng(3).normal(128, 60, (740, 740))
    page = Image.fromarray(np.clip(noise, 0, 255).astype(np.uint8)) if isinstance(hidden, str) else hidden
    assert not pictures.is_blank(pictures.make_pixels(page))


def blank(kind: str) -> Image.Image:
    rng = np.random.default_rng(2)
    paper = np.full((1600, 1100), 250.0)
    if kind == "noise":
        paper += rng.normal(0, 4, paper.shape)
        paper[rng.integers(0, 1600, 40), rng.integers(0, 1100, 40)] = 20  # dust
    if kind == "grain":
        paper += rng.normal(0, 10, paper.shape)
    if "shadow" in kind:
        paper *= np.linspace(0.3, 1, 1100)[None, :]
    if kind == "noisy shadow":
        paper += rng.normal(0, 6, paper.shape)
    return Image.fromarray(np.clip(paper, 0, 255).astype(np.uint8))


@pytest.mark.parametrize("kind", ["clean", "noise", "grain", "shadow", "noisy shadow"])
def test_a_blank_page_is_empty_and_no_model_is_asked(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(page: Any) -> Any:
        raise AssertionError("a model was asked")

    monkeypatch.setattr("gristmill.models.ocr.rapid.read_page", refuse)
    assert recognition.recognise_text(blank(kind)) == recognition.RecognisedText("", "none", 1.0)


@pytest.mark.parametrize("inverted", [False, True])
def test_a_page_with_nothing_but_its_number_is_not_blank(inverted: bool) -> None:
    page = Image.new("L", (1654, 2339), 0 if inverted else 255)
    ImageDraw.Draw(page).text((810, 2200), "37", 255 if inverted else 0, font=ImageFont.load_default(32))
    assert not pictures.is_blank(pictures.make_pixels(page))


def test_a_huge_picture_is_made_smaller_before_it_is_read() -> None:
    assert pictures.make_pixels(Image.new("1", (30_000, 9_000), 1)).shape == (600, 2000, 3)
    assert pictures.make_pixels(Image.new("L", (1, 9_000), 0)).shape == (2000, 1, 3)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F"])
def test_every_kind_of_picture_can_be_read(mode: str) -> None:
    made = Image.new(mode, (80, 40))
    assert pictures.make_pixels(made).shape == (40, 80, 3)


def test_what_is_transparent_is_paper() -> None:
    page = Image.new("RGBA", PAPER, (0, 0, 0, 0))
    page.paste((0, 0, 0, 255), (0, 0), Image.eval(letter(), lambda level: 255 - level))
    assert share(recognition.recognise_text(page, engine="rapidocr").text) == 1


def test_nothing_is_fetched(rapid: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine would download a file that it misses."""

    def refuse(*_: Any) -> Any:
        raise AssertionError("a connection was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    rapid._load_engine.cache_clear()
    assert "invoice" in recognition.recognise_text(letter(), engine="rapidocr").text


def test_one_thread_per_process(rapid: Any) -> None:
    session = rapid._load_engine()._load_det_model().session.session
    assert session.get_session_options().intra_op_num_threads == 1
    assert cv2.getNumThreads() == 1


# --- Tesseract, where it is installed

installed = pytest.mark.skipif(not engines.has_tesseract(), reason="tesserocr or its English data are not installed")


@installed
def test_tesseract_reads_clean_pages_even_when_skewed_and_shaded() -> None:
    skewed = np.asarray(letter().rotate(4, expand=True, fillcolor=255), np.float32)
    shade = np.linspace(0.6, 1.0, skewed.shape[1], dtype=np.float32)[None, :]
    for page in (letter(), Image.fromarray((skewed * shade).astype(np.uint8))):
        found = recognition.recognise_text(page)
        assert (found.engine, share(found.text) > 0.9) == ("tesseract", True)


@installed
def test_a_page_of_which_tesseract_lost_words_is_read_by_the_other_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if its confidence in the few words that it did read is high."""
    real = tesseract._read_words
    monkeypatch.setattr(tesseract, "_read_words", lambda sized: [(line, 99.0) for line, _ in real(sized)[:8]])
    found = recognition.recognise_text(letter())
    assert (found.engine, share(found.text)) == ("rapidocr", 1)


@installed
def test_a_page_on_its_side_is_not_left_to_tesseract() -> None:
    found = recognition.recognise_text(letter().rotate(90, expand=True))
    assert (found.engine, share(found.text) > 0.9) == ("rapidocr", True)


def test_asking_for_tesseract_where_there_is_none_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "has_tesseract", lambda: False)
    assert recognition.recognise_text(letter()).engine == "rapidocr"
    with pytest.raises(Permanent, match=r"pip install gristmill\[tesseract\]"):
        recognition.recognise_text(letter(), engine="tesseract")
