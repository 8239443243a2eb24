"""Finds where a person says no: what is named there is named to be left alone, and is nobody's permission.

Doubt is given generously: a denial covers its whole sentence, and a sentence ends only where another one surely begins.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from gristmill.agents.ask.words import split_words
from gristmill.knowledge import fold

# folded: without case and accents
NOT = split_words(
    """not no never none nobody noone nothing nowhere neither nor cannot cant wont dont doesnt didnt isnt arent wasnt
    werent shouldnt mustnt avoid forbid forbids forbidden prohibited beware refuse refuses refused ignore
    nein nicht nichts nie niemals niemand niemandem niemanden nirgends weder verboten untersagt vermeide vermeiden
    kein keine keinen keinem keiner keines
    ne pas jamais aucun aucune rien interdit ni nunca ningun ninguna ninguno nada nadie tampoco jamas prohibido
    non nessun nessuno nessuna niente neanche vietato nao nem nenhum nenhuma proibido niet geen nooit niemand
    nie nigdy zaden zadna zadne zadny nikdy nikdo nikomu nikam nema nemaji nemuze nemuzes neni nejsou
    nesmi nesmis nesmite nechci nelze nemoj nemojte nemojmo nije nisu nikad nikada nikome nista nikamo
    zakazano zakazane zabranjeno"""
)
WITHOUT = split_words(
    """without except unlike instead ohne ausser statt anstatt sans sauf sin excepto salvo senza tranne eccetto sem
    exceto zonder behalve bez krome misto osim umjesto"""
)
# neposílejte, nepiš, nešalji: Slavic verbs that say no by their first letters
SLAVIC_VERB = re.compile(r"ne\w{2,}(?:[aeu]j|[aeu]?jte|[iuíš]te|š|[lj]ji|ji|[aeiě]t|íš|ujte)", re.IGNORECASE)
DENIES_NOTHING = re.compile(
    r"\W+(?:only|just|merely|else|other|nur|sonst|anders|andere[nmrs]?|seulement|\d)", re.IGNORECASE
)
# a choice that lets nothing happen, or a plain no, at the beginning of what somebody says
REFUSAL = re.compile(
    r"\s*(?:no|nope|nein|ne|nie|non|não|nee|nesouhlasím|refused?|leave(?: it out)?|stay|stop)\s*(?:[:,.;!–—-]|\n|$)",
    re.IGNORECASE,
)
WORD = re.compile(r"(?<![\w@/=.\\-])[^\W\d_]+(?:['’][^\W\d_]+)*(?![\w@/=\\]|[:.-]\S)")
# what is no word of the sentence: a command in backticks, an address of the web
MATERIAL = re.compile(r"`+[^`\n]+`+|https?://\S*[^\s.,;:!?…)\]\"'”’»]", re.IGNORECASE)
IN_QUOTES = re.compile(r"\"[^\"\n]+\"|“[^”\n]+”|„[^“\n]+“")
PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
ITEM = r"[ \t]*(?:[-*+•–]|\d{1,2}[.)])[ \t]+"
# A sentence ends surely where a capital, a number, a quote or the item of a list follows its sign.
END = re.compile(rf"[.!?…]+[\"'”’»)\]]*\s+(?=[\"'“„«(]?[A-ZÀ-ÖØ-ÞĀ-Ž0-9]|{ITEM})|\n(?={ITEM})")
ABBREVIATED = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|ing|mgr|st|no|nr|vs|etc|bzw|ca|resp|např|tzv|npr|tj|evtl|ggf|inkl|usw|sr|sra|mme)"
    r"|\b[^\W\d_]|\.[^\W\d_])\.\s*$",
    re.IGNORECASE,
)
SHORT = 4  # words of a line behind “never:” that names something, and says nothing more


class Denial(NamedTuple):
    """A sentence that denies, and the part of it from its first denying word on."""

    sentence: str
    tail: str


def find_denials(text: str) -> Iterator[Denial]:
    """The sentences of a text in which somebody says no."""
    goes_on = False  # “never write to:”, and a list follows
    for paragraph in PARAGRAPH.split(text):
        is_refusal = REFUSAL.match(paragraph) is not None
        is_first = True
        for sentence in _split_sentences(paragraph):
            is_item = re.match(ITEM, sentence) is not None
            is_named = goes_on and (is_item or not is_first or len(sentence.split()) <= SHORT)
            place = 0 if is_refusal or is_named else _find_denying_word(sentence)
            if place is not None:
                word = WORD.match(sentence, place)
                is_after = word is not None and fold(word[0]) in WITHOUT
                yield Denial(sentence[place:] if is_after else sentence, sentence[place:])
            goes_on = place is not None and (sentence.rstrip().endswith(":") or (is_named and is_item))
            is_first = False


def _split_sentences(paragraph: str) -> Iterator[str]:
    hidden = _hide(IN_QUOTES, _hide(MATERIAL, paragraph))
    begin = 0
    for end in END.finditer(hidden):
        if not ABBREVIATED.search(hidden, begin, end.end()):
            yield paragraph[begin : end.end()]
            begin = end.end()
    if paragraph[begin:].strip():
        yield paragraph[begin:]


def _find_denying_word(sentence: str) -> int | None:
    """Where the first word stands that denies the sentence, or else the first one that denies what follows it."""
    plain = _hide(MATERIAL, sentence)
    words = list(WORD.finditer(plain))
    for known in (_denies, _leaves_out):
        found = next((one.start() for one in words if known(one) and not DENIES_NOTHING.match(plain, one.end())), None)
        if found is not None:
            return found
    return None


def _denies(word: re.Match[str]) -> bool:
    plain = fold(word[0].replace("’", "'"))
    return (
        plain.replace("'", "") in NOT
        or plain.endswith("n't")
        or plain.startswith("n'")
        or bool(SLAVIC_VERB.fullmatch(word[0]))
    )


def _leaves_out(word: re.Match[str]) -> bool:
    return fold(word[0]) in WITHOUT


def _hide(pattern: re.Pattern[str], text: str) -> str:
    return pattern.sub(lambda found: "\x00" * len(found[0]), text)
