"""Reads a question: its language, its names and telling words; a follow-up is completed from the conversation."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.agents.ask.words import ASKING, PRONOUNS, Name, Term, find_names, read_terms, split_words
from gristmill.knowledge import fold, language_of

LONGEST = 8_000  # characters of a question
FEW = 3  # telling words: a question with so few may be about what was said before
LOOKED_BACK = 3  # questions before this one that may say what it is about
RESUMES = re.compile(
    r"^\W*(?:and|or|but|so|then|also|what about|how about|what else|und|oder|aber|was ist mit|et|ou|mais|y|o|pero|a co"
    r"|a|i|ali|ale)\b",
    re.IGNORECASE,
)
# Words of short questions; the first ones are the surest.
SPOKEN = {
    "en": split_words("what which who when where why how the of is are was does did do and in for to much many"),
    "de": split_words(
        "was wer wann wo warum wie welche welcher welches der die das ist sind hat wurde und im von viel"
    ),
    "fr": split_words("qui que quand pourquoi comment combien quel quelle le la les est sont des du une dans et"),
    "es": split_words("quien cuando donde cuanto cual cuales el los las es son fue del una por en y"),
    "it": split_words("chi cosa quando dove perche quanto quale il gli sono della una nel che e"),
    "cs": split_words("kdo co kdy kde proc jak kolik jaky jaka ktery ktera je jsou byl byla se na v a pro"),
    "hr": split_words("tko sto kada gdje zasto kako koliko koji koja je su bio bila se na u za i"),
    "pl": split_words("kto co kiedy gdzie dlaczego jak ile jaki ktory jest sa byl byla sie na w i"),
    "nl": split_words("wat wie wanneer waar waarom hoe hoeveel welke welk de het een zijn van voor te en wordt werd"),
    "pt": split_words("quem quando onde quanto quantos qual quais os sao foi uma por um nao"),
    "sv": split_words("vad vem nar var varfor hur vilken vilket vilka ar och att det ett som av manga"),
    "da": split_words("hvad hvem hvornar hvor hvorfor hvordan hvilken hvilket og det et som af mange"),
}
# Scripts of one language, or mostly of one. Kana are looked for before the signs that Chinese has, too.
SCRIPTS = {
    "ja": re.compile("[\u3040-\u30ff]"),
    "ko": re.compile("[\uac00-\ud7af]"),
    "zh": re.compile("[\u4e00-\u9fff]"),
    "el": re.compile("[\u0370-\u03ff]"),
    "he": re.compile("[\u0590-\u05ff]"),
    "hi": re.compile("[\u0900-\u097f]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "fa": re.compile("[\u067e\u0686\u0698\u06af\u06cc]"),
    "ar": re.compile("[\u0600-\u06ff]"),
    "uk": re.compile("[\u0454\u0456\u0457\u0491]"),
    "bg": re.compile(r"\b(?:какво|кога|къде|защо|коя|кои|колко)\b", re.IGNORECASE),
    "ru": re.compile("[\u0430-\u044f]", re.IGNORECASE),
}
HALF = 0.5  # the share of letters that must be of a script
CLOSE = {"sr": "hr", "bs": "hr", "nb": "no", "nn": "no"}  # one is taken for the other


@dataclass(frozen=True)
class AskedQuestion:
    """A question as it is searched and answered."""

    text: str  # as it was written
    complete: str  # with what the conversation says of it
    language: str  # in doubt English, whose words are the commonest here …
    is_language_known: bool  # … but an answer is in the language of the question, whatever it is
    names: tuple[Name, ...]  # in the complete text
    terms: tuple[Term, ...]  # its telling words, names and values included

    @property
    def is_follow_up(self) -> bool:
        return self.complete != self.text


def read_question(text: str, before: Sequence[str] = (), language: str | None = None) -> AskedQuestion:
    """The question; `before` are the questions before it, the last one last, `language` that of the conversation."""
    plain = " ".join(text.split())[:LONGEST]
    known = recognise_language(plain) or language
    spoken = known or "en"
    complete = complete_question(plain, before, spoken)
    names, terms = find_names(complete, spoken), find_telling(complete, spoken)
    return AskedQuestion(plain, complete, spoken, known is not None, names, terms)


def find_telling(text: str, language: str | None) -> tuple[Term, ...]:
    """The words of a question that say what it is about."""
    return tuple(one for one in read_terms(text, language) if fold(one.text) not in ASKING)


def recognise_language(text: str) -> str | None:
    """The language of a text, or of a short one by its commonest words; None if it is not clear."""
    if found := recognise_script(text):
        return found
    words = [fold(word) for word in re.findall(r"[^\W\d_]+", text)]
    counts = {code: sum(word in known for word in words) for code, known in SPOKEN.items()}
    best = max(counts, key=lambda code: counts[code])
    rivals = [code for code, count in counts.items() if count == counts[best]]
    if counts[best] and len(rivals) == 1:
        return best
    found = language_of(text)
    return CLOSE.get(found, found) if found else None


def recognise_script(text: str) -> str | None:
    """The language of a text that is mostly written in other letters than the Latin ones."""
    letters = [char for char in text if char.isalpha()]
    foreign = [char for char in letters if char > "\u036f" and not "\u1e00" <= char <= "\u1eff"]
    if len(foreign) <= HALF * len(letters):
        return None
    found = next((code for code, script in SCRIPTS.items() if script.search(text)), None)
    return language_of(text) or found if found == "ru" else found  # six languages are written in these letters


def complete_question(text: str, before: Sequence[str], language: str) -> str:
    """A question that does not say by itself what it is about, with the names of those before it.

    It has no name of its own and begins like the rest of a sentence, has a pronoun, or has hardly a telling word.
    """
    if not before or not _leans_back(text, language):
        return text
    known = {fold(one.text) for one in find_telling(text, language)}
    for last in [*reversed(before)][:LOOKED_BACK]:
        names = [name.text for name in find_names(last, language)]
        words = [one.text for one in find_telling(last, language)]
        # a question of one word asks the same of the same thing; any other asks something else of it
        wanted = names if names and len(known) > 1 else [*names, *words]
        added = [one for one in dict.fromkeys(wanted) if fold(one) not in known and fold(one) not in fold(text)]
        added = [one for one in added if not any(one != other and one in other.split() for other in added)]
        if added:
            return f"{text} ({', '.join(added)})"
    return text


def _leans_back(text: str, language: str) -> bool:
    words = {fold(word) for word in re.findall(r"[^\W\d_]+", text)}
    if find_names(text, language):
        return bool(RESUMES.match(text)) and len(find_telling(text, language)) <= FEW - 1
    return bool(words & PRONOUNS) or bool(RESUMES.match(text)) or len(find_telling(text, language)) < FEW
