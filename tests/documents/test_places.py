"""Where words stand on the picture of a page: matched by letters, whatever reading has made of them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from documents.files import pdf, put, saved, scan
from gristmill.documents.reading import Limits, PlacedSpan, find_in_words, find_places, read
from gristmill.documents.reading.drawing import draw
from gristmill.documents.reading.places import match_letters, pack_words, unpack_words
from gristmill.models import PicturePlace, TextBox

LIMITS = Limits()


@pytest.mark.parametrize(
    ("text", "drawn", "matched"),
    [
        ("# Mill", "Mill", [2, 3, 4, 5]),
        ("Vertrag", "Ver-trag", [0, 1, 2, None, 3, 4, 5, 6]),
        ("file", "ﬁle", [0, 2, 3]),
        ("é", "e\u0301", [0, None]),
        ("abc", "aXbc", [0, None, 1, 2]),
        ("abXcdef", "abcdef", [0, 1, 3, 4, 5, 6]),
        ("abc", "", []),
        ("", "abc", [None, None, None]),
    ],
)
def test_drawn_letters_are_found_in_the_text_that_was_made_of_them(
    text: str, drawn: str, matched: list[int | None]
) -> None:
    assert match_letters(text, drawn) == matched


@given(st.text(max_size=200), st.text(max_size=200))
def test_whatever_is_drawn_offsets_lie_in_the_text_and_rise(text: str, drawn: str) -> None:
    offsets = [one for one in match_letters(text, drawn) if one is not None]
    assert offsets == sorted(offsets)
    assert all(0 <= one < len(text) for one in offsets)


@given(st.text(max_size=100))
def test_a_text_finds_itself(text: str) -> None:
    for at, found in enumerate(match_letters(text, text)):
        assert found in (None, at)
        assert found is not None or not text[at].isascii() or not text[at].isalnum()


def box(text: str, top: float) -> TextBox:
    return TextBox(0, top, 100, top + 10, text, PicturePlace(0.1, top / 100, 0.9, top / 100 + 0.1))


def test_packed_words_are_found_again_by_their_place_in_the_text() -> None:
    words = pack_words("The flour\nmill", [box("The flour", 10), box("mill", 30), box("· · ·", 50)])
    assert [(one.start, one.stop) for one in unpack_words(words)] == [(0, 9), (10, 14)]
    (found,) = find_in_words(words, [(4, 9)])
    assert found[:2] == (4, 9)
    assert found[2:] == pytest.approx((0.1 + 0.8 * 4 / 9, 0.1, 0.9, 0.2), abs=1e-3)
    assert [one[:2] for one in find_in_words(words, [(6, 12)])] == [(6, 9), (10, 12)]
    assert find_in_words(b"", [(0, 5)]) == []


LETTER = "# Invoice 17\n\nThe mill of Anna Berg grinds flour all night.\n\nSecond paragraph ends with Nordwind."


def ink_within(path: str, place: PlacedSpan, width: int = 1000) -> float:
    """The share of dark pixels of the drawn page that lie in this rectangle."""
    picture = Image.open(put(Path(path).parent, "drawn.webp", draw(path, "pdf", 1, width, LIMITS).data)).convert("L")
    dark = picture.point(lambda grey: 255 if grey < 128 else 0)
    sides = [place.left * picture.width, place.top * picture.height, place.right * picture.width]
    part = dark.crop((*map(int, sides), int(place.bottom * picture.height) + 1))
    return sum(part.histogram()[128:]) / max(1, sum(dark.histogram()[128:]))


def test_words_of_a_pdf_stand_where_its_picture_shows_them(tmp_path: Path) -> None:
    path = put(tmp_path, "a.pdf", pdf([LETTER]))
    text = read(path, "pdf", 1, LIMITS).text
    start = text.index("Invoice 17")
    (title,) = find_places(path, 1, text, [(start, start + 10)])
    start = text.index("Nordwind")
    (last,) = find_places(path, 1, text, [(start, start + 8)])
    assert title.bottom < last.top
    assert 0.05 < ink_within(path, title) < 0.5
    assert 0.02 < ink_within(path, last) < 0.3
    (whole,) = find_places(path, 1, text, [(start - 22, start + 8)])
    assert whole.left < last.left < whole.right == last.right


def test_a_part_that_goes_over_several_lines_has_a_rectangle_for_each(tmp_path: Path) -> None:
    path = put(tmp_path, "a.pdf", pdf(["The mill grinds flour all night long. " * 6]))
    text = read(path, "pdf", 1, LIMITS).text
    found = find_places(path, 1, text, [(0, len(text))])
    assert len(found) == len(text.splitlines())
    assert [one.top for one in found] == sorted(one.top for one in found)


def test_recognised_words_are_kept_with_their_places(tmp_path: Path) -> None:
    for path, type_ in (
        (put(tmp_path, "a.png", saved(scan("Invoice INV-2026-031", "Harrow Trust"), "PNG")), "image"),
        (put(tmp_path, "b.pdf", pdf([scan("Invoice INV-2026-031", "Harrow Trust")])), "pdf"),
    ):
        page = read(path, type_, 1, LIMITS)
        start = page.text.index("Trust")
        (trust,) = find_in_words(page.words, [(start, start + 5)])
        (invoice,) = find_in_words(page.words, [(0, 7)])
        assert invoice.bottom <= trust.top
        assert invoice.left < trust.left < trust.right


@pytest.mark.parametrize("turned", [90, 180, 270])
def test_places_are_those_of_the_picture_as_it_is_however_it_lies(tmp_path: Path, turned: int) -> None:
    upright = scan("Invoice INV-2026-031 of the mill", "Harrow Trust pays forty sacks")
    page = read(put(tmp_path, "a.png", saved(upright.rotate(turned, expand=True), "PNG")), "image", 1, LIMITS)
    start = page.text.index("Harrow")
    (second,) = find_in_words(page.words, [(start, len(page.text))])
    (first,) = find_in_words(page.words, [(0, start - 1)])
    if turned == 90:  # counter-clockwise: the first line is on the left
        assert first.right <= second.left
    elif turned == 180:
        assert second.bottom <= first.top
    else:
        assert second.right <= first.left


@pytest.mark.parametrize("width", [240, 1100])
def test_a_page_is_drawn_as_wide_as_it_is_asked_for(tmp_path: Path, width: int) -> None:
    drawn = draw(put(tmp_path, "a.pdf", pdf([LETTER])), "pdf", 1, width, LIMITS)
    assert abs(drawn.width - width) <= 1
    assert drawn.data[:4] == b"RIFF"
    small = draw(put(tmp_path, "a.png", saved(scan("Invoice"), "PNG")), "image", 1, 5_000, LIMITS)
    assert (small.width, small.height) == scan("Invoice").size  # nothing is enlarged
