"""Sees through disguises: spellings, encodings and look-alikes in which a text can carry a value past a reader."""

import base64
import html
import re
import unicodedata
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import suppress
from threading import Lock
from typing import Any
from urllib.parse import unquote

from confusable_homoglyphs import confusables as untyped

confusables: Any = untyped  # it has no types
BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
MOST_BLOCKS = 200
MOST_KEPT = 4_000_000  # characters of texts and their views: a process serves many clients, and texts may be long


class Views:
    """Texts that were looked at lately, with what was seen; the oldest go when they become too many characters."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._kept: OrderedDict[str, str] = OrderedDict()
        self.size = 0  # characters

    def look_at(self, text: str) -> str:
        with self._lock:
            if text in self._kept:
                self._kept.move_to_end(text)
                return self._kept[text]
        view = see_through(text)
        with self._lock:
            self._keep(text, view)
        return view

    def _keep(self, text: str, view: str) -> None:
        if text in self._kept or len(text) + len(view) > self._most:
            return
        self._kept[text] = view
        self.size += len(text) + len(view)
        while self.size > self._most:
            self.size -= sum(map(len, self._kept.popitem(last=False)))


_VIEWS = Views(MOST_KEPT)
look_at = _VIEWS.look_at


def see_through(text: str) -> str:
    """A text as somebody could mean it: unescaped, decoded, with look-alikes made equal and spaces left out as well."""
    plain = re.sub(r"=\r?\n", "", text)  # a line of a mail that goes on
    views = [plain, html.unescape(plain), *_unquote_often(plain), _undo_disguises(plain), *_decode_blocks(plain)]
    folded = [fold(one) for one in dict.fromkeys(views)]
    without_spaces = [re.sub(r"\s+", "", one) for one in folded]
    reversed_words = fold(plain)[::-1]
    return "\n".join(dict.fromkeys([*folded, *without_spaces, reversed_words]))


def _unquote_often(text: str) -> Iterator[str]:
    for _ in range(3):
        decoded = unquote(text)
        if decoded == text:
            return
        yield decoded
        text = decoded


def _undo_disguises(text: str) -> str:
    """`eve [at] evil [dot] example`, as people hide addresses from robots."""
    text = " ".join(text.split())
    text = re.sub(r" ?[\[({<]? ?\bat\b ?[\])}>]? ?", "@", text, flags=re.IGNORECASE)
    return re.sub(r" ?[\[({<]? ?\b(?:dot|punkt|tecka|tečka|točka)\b ?[\])}>]? ?", ".", text, flags=re.IGNORECASE)


def _decode_blocks(text: str) -> Iterator[str]:
    """What stands in it as Base64 or in hexadecimal digits."""
    for found in list(BASE64.finditer(text))[:MOST_BLOCKS]:
        block = found[0]
        padded = block.rstrip("=").translate(str.maketrans("-_", "+/"))
        with suppress(ValueError):
            yield base64.b64decode(padded + "=" * (-len(padded) % 4)).decode("utf-8")
        with suppress(ValueError):
            yield bytes.fromhex(block).decode("utf-8")


def fold(text: str) -> str:
    """The skeleton of a text: small letters, look-alikes made equal, nothing invisible."""
    text = unicodedata.normalize("NFKC", _decode_punycode(text))
    return unicodedata.normalize("NFKD", text).translate(_SKELETON).casefold()


class _Skeleton(dict[int, str]):
    """For each character the one that it is taken for; nothing for what is not seen, accents included."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        is_seen = character in "\n\t" or unicodedata.category(character) not in ("Cf", "Cc", "Mn")
        self[code] = _find_latin(character) if is_seen else ""
        return self[code]


_SKELETON = _Skeleton()


def _decode_punycode(text: str) -> str:
    return re.sub(r"\bxn--[a-z0-9-]+", lambda found: _decode_label(found[0]), text, flags=re.IGNORECASE)


def _decode_label(label: str) -> str:
    try:
        return label[4:].encode("ascii").decode("punycode")
    except UnicodeError:
        return label


def _find_latin(character: str) -> str:
    """The letter or digit of ASCII that a character is taken for."""
    if character.isascii():
        return character
    alike: list[dict[str, str]] = confusables.confusables_data.get(character) or []
    plain = [one["c"] for one in alike if one["c"].isascii() and one["c"].isalnum()]
    return min(plain, key=len) if plain else character
