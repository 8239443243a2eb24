"""Which words of a sentence it denies, and which words are the opposite of others."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from gristmill.agents.ask.words import is_plain, split_words, stem
from gristmill.knowledge import fold

TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[.,;:!?()–—]")
# folded: without case and accents
NEGATIONS = split_words(
    """not no never none nobody nothing neither nor without cannot cant wont dont doesnt didnt isnt arent wasnt werent
    hasnt havent hadnt wouldnt shouldnt couldnt mustnt
    nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder
    ne pas jamais aucun aucune rien sans personne nunca ningun ninguna ninguno nada nadie sin tampoco non mai nessun
    nessuno nessuna niente senza nao nem sem niet geen nooit nie nigdy zaden zadna zadne zadny nikdy nikdo nic bez neni
    nejsou nema nemaji nebyl nebyla nebylo nebyly nije nisu nema nikad bez"""
)
LIMITS = split_words("only just merely nur bloss seulement solo jen pouze samo")  # not only: this denies nothing
BREAKS = split_words(
    """but however although though while whereas yet instead because since when after before until
    aber sondern obwohl wahrend doch weil mais cependant pourtant pero sino aunque ale avsak ac ali nego vec"""
)
HEDGES = split_words(
    """perhaps maybe possibly probably presumably potentially allegedly reportedly supposedly apparently might may could
    vielleicht moglicherweise wahrscheinlich vermutlich angeblich konnte peut-etre probablement quizas tal
    mozna pravdepodobne udajne mozda vjerojatno"""
)
SLAVIC = ("cs", "sk", "pl", "hr", "sl", "sr", "bs")
PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non")
OPPOSITES = split_words(
    """increase/decrease rise/fall rose/fell raise/lower grow/shrink more/less more/fewer higher/lower
    accept/reject approve/reject agree/disagree agree/refuse win/lose won/lost open/close start/end
    begin/end begin/stop allow/forbid allow/prohibit permit/forbid include/exclude true/false success/failure
    pass/fail first/last early/late earlier/later buy/sell bought/sold import/export enable/disable add/remove
    present/absent alive/dead male/female hot/cold older/younger larger/smaller largest/smallest longer/shorter
    north/south east/west positive/negative upregulate/downregulate activate/inhibit promote/inhibit
    gain/loss profit/loss credit/debit safe/dangerous public/private internal/external minimum/maximum
    arrive/leave strong/weak"""
)
OPPOSITE_STEMS = {
    (stem(one, "en"), stem(other, "en"))
    for pair in OPPOSITES
    for one, other in (pair.split("/"), reversed(pair.split("/")))
}


@lru_cache(maxsize=4_096)
def read_polarity(text: str, language: str | None) -> Mapping[str, frozenset[bool]]:
    """The telling words of a sentence, each with True where the sentence denies it and False where it does not."""
    found: dict[str, frozenset[bool]] = {}
    for term, is_denied in _walk(text, language):
        found[term] = found.get(term, frozenset()) | {is_denied}
    return found


def _walk(text: str, language: str | None) -> Iterator[tuple[str, bool]]:
    tokens = [match[0] for match in TOKEN.finditer(text)]
    is_denied = False
    for n, token in enumerate(tokens):
        plain = fold(token)
        following = fold(tokens[n + 1]) if n + 1 < len(tokens) else ""
        if not plain[0].isalnum() or plain in BREAKS:
            is_denied = False
        elif _is_negation(plain) and following not in LIMITS and not following.isdigit():
            is_denied = True
        elif not is_plain(token, language):
            yield stem(token, language), is_denied


def _is_negation(word: str) -> bool:
    return word in NEGATIONS or word.endswith(("n't", "n’t")) or word in ("n'a", "n’a", "n'est", "n’est")


def is_hedged(text: str) -> bool:
    """Whether a sentence only says that something may be so."""
    words = [match[0] for match in TOKEN.finditer(text)]
    # May is a month, and “may” before a number is one that somebody did not capitalise
    return any(
        fold(word) in HEDGES and not (word == "May" or (n + 1 < len(words) and words[n + 1].isdigit()))
        for n, word in enumerate(words)
    )


def are_opposite(one: str, other: str, language: str | None) -> bool:
    """Whether two stems deny each other: increase and decrease, complete and incomplete, podepsal and nepodepsal."""
    if (one, other) in OPPOSITE_STEMS:
        return True
    short, long = sorted((one, other), key=len)
    if len(short) < 4 or short == long:
        return False
    prefixes = ("ne", "nie") if language in SLAVIC else PREFIXES
    return any(long == prefix + short for prefix in prefixes)
