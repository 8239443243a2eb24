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
# Verbs that deny what they govern, and what must follow for it: “refused to sign”, not “the offer was refused by Anna”.
DENIALS = {
    **dict.fromkeys(
        split_words("fail fails failed failing refuse refuses refused refusing decline declines declined"), "to"
    ),
    **dict.fromkeys(split_words("unable"), "to"),
    **dict.fromkeys(split_words("deny denies denied denying"), "that having being ever"),
    **dict.fromkeys(split_words("false untrue wrong falsch unwahr faux falso nepravda netacno"), "that dass que ze da"),
    **dict.fromkeys(split_words("weigert weigerte weigerten"), "sich"),
    **dict.fromkeys(split_words("refuse refusa refusent refuserent"), "de d'"),
    **dict.fromkeys(split_words("odmitl odmitla odmitli odmita"), "se"),
    **dict.fromkeys(split_words("odbio odbila odbili odbija"), "da"),
}
AFTER_THE_VERB = ("de", "nl")  # “lieferte die Ware nicht”: there a negation denies its whole clause
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
    clause: list[tuple[str, bool]] = []
    is_denied = False
    for n, token in enumerate(tokens):
        plain = fold(token)
        following = fold(tokens[n + 1]) if n + 1 < len(tokens) else ""
        if not plain[0].isalnum() or plain in BREAKS:
            yield from clause
            clause, is_denied = [], False
        elif _denies(plain, following):
            is_denied = True
            if language in AFTER_THE_VERB:
                clause = [(term, True) for term, _ in clause]
        elif not is_plain(token, language):
            clause.append((stem(token, language), is_denied))
    yield from clause


def _denies(word: str, following: str) -> bool:
    if word in DENIALS:
        return following in DENIALS[word].split() or (word.startswith("den") and following.endswith("ing"))
    return _is_negation(word) and following not in LIMITS and not following.isdigit()


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


# How much of something a sentence speaks of. “A few” are some, “few” are hardly any.
SHARES = {
    "all": split_words(
        """all every each always everybody everyone alle aller allen jeder jede jedes immer tous toutes chaque toujours
        todos todas cada siempre vsichni vsechny vsechna kazdy kazda vzdy svi sve svaki svaka uvijek"""
    ),
    "some": split_words(
        """some several sometimes occasionally einige manche manchmal certains certaines parfois algunos algunas
        nekteri nektere nekdy neki neke ponekad"""
    ),
    "few": split_words(
        """few rarely seldom hardly scarcely barely wenige wenigen selten kaum peu rarement pocos pocas raramente malo
        zridka sotva malobrojni rijetko jedva"""
    ),
}
BOUNDS = {
    "at least": re.compile(
        r"\b(?:at least|no (?:less|fewer) than|mindestens|wenigstens|au moins|al menos|alespon|najmanje)\b"
    ),
    "at most": re.compile(r"\b(?:at most|no more than|up to|hochstens|maximal|au plus|como maximo|nejvyse|najvise)\b"),
}
CONDITION = re.compile(
    r"\b(?:if|unless|provided that|wenn|falls|sofern|pokud|jestlize|kdyby|ukoliko)\b(?P<clause>[^,;.!?]*)",
    re.IGNORECASE,
)


@lru_cache(maxsize=4_096)
def read_shares(text: str) -> frozenset[str]:
    """How much of something a sentence speaks of: all, some, few; at least, at most."""
    words = [fold(match[0]) for match in TOKEN.finditer(text)]
    found = {
        "some" if share == "few" and words[n - 1 : n] in (["a"], ["quite"], ["ein"], ["un"]) else share
        for n, word in enumerate(words)
        for share, known in SHARES.items()
        if word in known
    }
    plain = " ".join(words)
    return frozenset(found | {name for name, pattern in BOUNDS.items() if pattern.search(plain)})


def find_other_share(claim: str, text: str) -> str:
    """The share that a text speaks of and a claim does not, where both cannot be meant; empty if there is none."""
    ours, theirs = read_shares(claim), read_shares(text)
    amounts, limits = ours & SHARES.keys(), ours & BOUNDS.keys()
    if amounts and (other := theirs & SHARES.keys()) and not amounts & other:
        return min(other)
    if limits and (other := theirs & BOUNDS.keys()) and not limits & other:
        return min(other)
    return "few" if "few" in theirs and not amounts else ""


def find_conditions(text: str) -> list[str]:
    """What a sentence only supposes: the words behind each “if”."""
    return [match["clause"] for match in CONDITION.finditer(fold_text(text))]


def fold_text(text: str) -> str:
    """A text with its words folded, one by one."""
    return TOKEN.sub(lambda match: fold(match[0]), text)


def are_opposite(one: str, other: str, language: str | None) -> bool:
    """Whether two stems deny each other: increase and decrease, complete and incomplete, podepsal and nepodepsal."""
    if (one, other) in OPPOSITE_STEMS:
        return True
    short, long = sorted((one, other), key=len)
    if len(short) < 4 or short == long:
        return False
    prefixes = ("ne", "nie") if language in SLAVIC else PREFIXES
    return any(long == prefix + short for prefix in prefixes)
