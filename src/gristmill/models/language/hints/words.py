"""Cuts a text into words, numbers and signs, each with its place, and tells in which of four languages it is."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

TOKEN = re.compile(r"\d+|[^\W\d_]+(?:['’][^\W\d_]+)*|[^\s\w]|_+")
MISREAD = re.compile(r"(?<=[^\W\d_])[01](?=[^\W\d_]{2})")  # a scanner's p1ease and t0tal
LONGEST = 60  # characters of a word; a longer one is no word
MOST_WORDS = 40_000  # of one text: an item beyond that is a book, and what it asks stands at its beginning
SAMPLE = 600  # words by which the language is told


class Word(NamedTuple):
    """A word, number or sign; `low` is without capitals and accents, so that `Pátku`, `pátku` and `patku` are one."""

    start: int
    stop: int
    low: str
    is_number: bool


def _make_folds() -> dict[int, str]:
    """Every Latin letter with an accent → the letter without it. One letter stays one letter."""
    folds = {ord("đ"): "d", ord("ł"): "l", ord("ø"): "o", ord("’"): "'"}
    for code in range(0xC0, 0x250):
        plain = unicodedata.normalize("NFD", chr(code))[0]
        if plain != chr(code) and plain.isalpha():
            folds[code] = plain
    return folds


FOLDS = _make_folds()
UMLAUTS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})


@lru_cache(maxsize=50_000)
def fold(word: str) -> str:
    """The word without capitals and accents."""
    return unicodedata.normalize("NFC", word).lower().translate(FOLDS)


def spell(text: str) -> frozenset[str]:
    """The words of a list as `Word.low` has them; German umlauts may be written as two letters."""
    words = text.split()
    return frozenset({fold(one) for one in words} | {fold(one.translate(UMLAUTS)) for one in words})


def spell_table(lists: Mapping[int, str]) -> dict[str, int]:
    """Word → number, of a list of words for each number."""
    return {word: number for number, words in lists.items() for word in spell(words)}


class Words:
    """The words of the parts of a text that are read, in order; the rest of the text has none."""

    __slots__ = ("_starts", "_words", "text")

    def __init__(self, text: str, spans: Iterable[tuple[int, int]]) -> None:
        self.text = text
        self._words = _cut(text, spans)
        self._starts: list[int] | None = None

    def __len__(self) -> int:
        return len(self._words)

    def __getitem__(self, place: int) -> Word:
        return self._words[place]

    def low(self, place: int) -> str:
        """The word at a place, folded; empty outside the text."""
        return self._words[place].low if 0 <= place < len(self._words) else ""

    def lows(self, place: int, count: int) -> tuple[str, ...]:
        if place >= 0 and place + count <= len(self._words):
            return tuple([one.low for one in self._words[place : place + count]])
        return tuple([self.low(one) for one in range(place, place + count)])

    def number(self, place: int, digits: int = 4) -> int | None:
        """The number at a place, if it is one of so many digits."""
        if 0 <= place < len(self._words):
            word = self._words[place]
            if word.is_number and len(word.low) <= digits:
                return int(word.low)
        return None

    def read_word(self, place: int) -> str:
        """The word at a place as the text writes it; empty outside the text."""
        if not 0 <= place < len(self._words):
            return ""
        return self.text[self._words[place].start : self._words[place].stop]

    def is_capital(self, place: int) -> bool:
        return self.read_word(place)[:1].isupper()

    def is_close(self, place: int) -> bool:
        """Whether nothing stands between a word and the next one."""
        return 0 <= place < len(self._words) - 1 and self._words[place].stop == self._words[place + 1].start

    def gap(self, place: int) -> str:
        """The blanks between a word and the next one; a paragraph's end if there is none."""
        if not 0 <= place < len(self._words) - 1:
            return "\n\n"
        return self.text[self._words[place].stop : min(self._words[place + 1].start, self._words[place].stop + 9)]

    def find(self, offset: int) -> int:
        """The place of the first word that begins at this character or behind it."""
        if self._starts is None:
            self._starts = [one.start for one in self._words]
        return bisect_left(self._starts, offset)


def _cut(text: str, spans: Iterable[tuple[int, int]]) -> list[Word]:
    words: list[Word] = []
    text = MISREAD.sub(lambda digit: "l" if digit[0] == "1" else "o", text)  # places stay the same
    for start, stop in spans:
        for match in TOKEN.finditer(text, start, stop):
            written = match[0]
            if len(words) >= MOST_WORDS:
                return words
            number = written[0].isdecimal() and written.isascii()
            low = written if number else fold(written) if len(written) <= LONGEST else "\0"
            words.append(Word(match.start(), match.end(), low, number))
    return words


# --- languages

COMMON = {
    "en": spell(
        """the and of is are was were to for with that this have has had will not you your we our from by about which
        be been it its they please thanks thank dear regards hi hello can could would should i my me if any let know
        attached invoice meeting there what when how an on at as but or just all here"""
    ),
    "de": spell(
        """der die das und ist sind war nicht mit für von zu zum zur den dem des ein eine einen einem einer auf bei im
        am wir sie ihr ihre ihren uns unser unsere ich du dich dir haben hat wird werden kann können könnten bitte
        danke sehr geehrte geehrter hallo liebe lieber grüße gruß grüßen freundlichen mfg noch auch aber oder wenn als
        wie was bis nach über rechnung zahlbar fällig innerhalb tage tagen uhr januar februar märz mai juni juli
        oktober dezember montag dienstag mittwoch donnerstag freitag samstag"""
    ),
    "cs": spell(
        """je jsou byl byla bylo být se na že který která které jak ale nebo pro při od po ze ve už také jen ještě
        prosím děkuji děkujeme díky dobrý den zdravím pozdravem ahoj jsem jsme jste máte mám můžete můžeš bude budou
        pokud tento tato toto vám vás náš vaše naše dne faktura faktury částka splatnosti splatnost dní dnů kč až si
        by bychom této těchto něco prosíme pane paní zaslat potřebuji potřebujeme a v s k ledna února března dubna
        května června července srpna září října prosince pondělí úterý středu čtvrtek pátek neděli"""
    ),
    "hr": spell(
        """je su bio bila bilo biti se na da koji koja koje kako ali ili za pri od po iz već također samo još molim
        molimo hvala poštovani poštovana poštovanje pozdrav lijep srdačan sam smo ste imate imam možete možeš bit će
        ako ovaj ova ovo vam vas naš vaš vaša naša račun računa iznos plaćanja dana eur kn rok roku i u s što kad gdje
        li ne biste bismo dospijeća treba trebamo javite pošaljite lp siječnja veljače ožujka travnja svibnja lipnja
        srpnja kolovoza rujna listopada studenoga prosinca ponedjeljak utorak srijedu četvrtak petak nedjelju"""
    ),
}
LETTERS = {"en": "", "de": "äöüßÄÖÜ", "cs": "ěřůĚŘŮťďňý", "hr": "ćđĆĐ"}
SURE = 2  # common words of a language more than of any other


def find_language(words: Words) -> str:
    """The language whose common words the text has most of; empty if no language has clearly more than the others."""
    sample = [words[place] for place in range(min(len(words), SAMPLE))]
    if not sample:
        return ""
    lows = [one.low for one in sample if not one.is_number]
    text = words.text[sample[0].start : sample[-1].stop]
    counts = {
        language: sum(low in common for low in lows) + 2 * min(sum(text.count(one) for one in LETTERS[language]), 5)
        for language, common in COMMON.items()
    }
    best, second = sorted(counts, key=lambda one: -counts[one])[:2]
    return best if counts[best] >= SURE and counts[best] > counts[second] else ""
