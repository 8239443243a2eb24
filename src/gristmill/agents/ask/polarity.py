"""Which words of a sentence it denies, and which words are the opposite of others."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from gristmill.agents.ask.words import is_plain, split_words, stem
from gristmill.knowledge import fold

TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[.,;:!?()–—]")
# For each language, folded: without case and accents. “mai” denies in Italian and is a month in German.
NEGATIONS = {
    "en": split_words(
        """not no never none nobody nothing neither nor without cannot cant wont dont doesnt didnt isnt arent wasnt
        werent hasnt havent hadnt wouldnt shouldnt couldnt mustnt"""
    ),
    "de": split_words("nicht kein keine keinen keinem keiner keines nie niemals niemand nichts ohne weder"),
    "fr": split_words("ne pas jamais aucun aucune rien sans personne non"),
    "es": split_words("no nunca ningun ninguna ninguno nada nadie sin tampoco"),
    "it": split_words("non mai nessun nessuno nessuna niente senza no"),
    "pt": split_words("nao nem sem nunca nada"),
    "nl": split_words("niet geen nooit zonder"),
    "pl": split_words("nie nigdy bez"),
    "cs": split_words(
        """ne zaden zadna zadne zadny nikdy nikdo nic bez neni nejsou nema nemaji nebyl nebyla nebylo nebyly"""
    ),
    "hr": split_words("ne nije nisu nema nikad bez"),
}
ANY_NEGATION = frozenset[str]().union(*NEGATIONS.values())
# Verbs that deny what they govern, and what must follow for it: “refused to sign”, not “the offer was refused by Anna”.
DENIALS = {
    **dict.fromkeys(
        split_words("fail fails failed failing refuse refuses refused refusing decline declines declined"), "to"
    ),
    **dict.fromkeys(split_words("unable"), "to"),
    **dict.fromkeys(split_words("deny denies denied denying"), "having being ever"),
    **dict.fromkeys(split_words("weigert weigerte weigerten"), "sich"),
    **dict.fromkeys(split_words("refuse refusa refusent refuserent"), "de d'"),
    **dict.fromkeys(split_words("odmitl odmitla odmitli odmita"), "se"),
    **dict.fromkeys(split_words("odbio odbila odbili odbija"), "da"),
}
# “Anna disputes that …”, “it rejected the rumour that …”, “the claim that … is a lie”: what is behind “that” is denied.
THAT = split_words("that dass que ze da che")
DISPUTES = split_words(
    """deny denies denied denying dispute disputes disputed disputing refute refutes refuted contest contests contested
    reject rejects rejected doubt doubts doubted disprove disproves disproved disproven debunk debunked dismiss
    dismissed bestreitet bestritt bestreiten bestritten dementiert dementierte leugnet leugnete widerlegt widerlegte
    bezweifelt bezweifelte zuruckgewiesen niait conteste niega desmiente
    popira poprel poprela popreli popreny vyvratil vyvratila vyvratili zpochybnil zpochybnila zpochybnili
    porice poricu porekao porekla osporava osporio osporila osporili opovrgnuo opovrgnula opovrgnuli demantirao
    demantirala demantirali"""
)
FALSEHOODS = split_words(
    """false untrue wrong lie lies myth hoax fabrication unfounded baseless incorrect
    falsch unwahr luge marchen unbegrundet faux mensonge falso mentira nepravda nepravdive lez mytus vymysl
    netacno neistina laz"""
)
ASSERTIONS = split_words(
    """claim claims statement statements rumour rumours rumor rumors allegation allegations assertion assertions
    accusation accusations behauptung behauptungen gerucht geruchte vorwurf aussage tvrzeni obvineni fama povest
    tvrdnja tvrdnju tvrdnje optuzba optuzbu glasina glasine"""
)
CONFIRMED = split_words(
    """true correct right prove proves proved proven confirm confirms confirmed show shows showed shown verified
    supported bestatigt bestatigte bewiesen belegt wahr richtig potvrdil potvrdila potvrzeno prokazal potvrdio dokazao
    tocno"""
)
FAR = 6  # words between a verb that denies and its “that”
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


@lru_cache(maxsize=4_096)
def read_polarity(text: str, language: str | None) -> Mapping[str, frozenset[bool]]:
    """The telling words of a sentence, each with True where the sentence denies it and False where it does not."""
    found: dict[str, frozenset[bool]] = {}
    for word, is_denied in walk_words(text, language):
        term = stem(word, language)
        found[term] = found.get(term, frozenset()) | {is_denied}
    return found


def walk_words(text: str, language: str | None) -> Iterator[tuple[str, bool]]:
    """The telling words of a sentence as they are written, each with whether the sentence denies it."""
    tokens = [match[0] for match in TOKEN.finditer(text)]
    words = [fold(token) for token in tokens]
    disputed = set(_find_disputed(words))
    clause: list[tuple[str, bool]] = []
    is_denied = False
    for n, token in enumerate(tokens):
        following = words[n + 1] if n + 1 < len(words) else ""
        if n in disputed:
            yield from clause
            clause, is_denied = [], True
        elif not words[n][0].isalnum() or words[n] in BREAKS:
            yield from clause
            clause, is_denied = [], False
        elif _denies(words[n], following, language):
            is_denied = True
            if language in AFTER_THE_VERB:
                clause = [(word, True) for word, _ in clause]
        elif not is_plain(token, language):
            clause.append((token, is_denied))
    yield from clause


def _find_disputed(words: Sequence[str]) -> Iterator[int]:
    """The places of each “that” whose clause somebody disputes, or calls false."""
    for n, word in enumerate(words):
        if word not in THAT:
            continue
        before = words[max(0, n - FAR) : n]
        is_asserted = any(one in ASSERTIONS for one in before[-2:])
        is_called_false = is_asserted and any(one in FALSEHOODS for one in words[n + 1 :])
        # “He refuted her and said that …” has its verb too far from “that”
        is_near = is_asserted or any(one in DISPUTES | FALSEHOODS for one in before[-2:])
        if is_called_false or (is_near and any(one in DISPUTES | FALSEHOODS for one in before)):
            yield n


def find_assertion(claim: str, text: str) -> str:
    """The word by which a text only reports that somebody asserts something: the rumour that. The claim may, too."""
    words = [fold(match[0]) for match in TOKEN.finditer(text)]
    ours = {fold(match[0]) for match in TOKEN.finditer(claim)}
    if ours & (ASSERTIONS | DISPUTES | FALSEHOODS) or any(word in CONFIRMED for word in words):
        return ""
    for n, word in enumerate(words):
        if word in THAT and (found := next((one for one in words[max(0, n - 2) : n] if one in ASSERTIONS), "")):
            return found
    return ""


def _denies(word: str, following: str, language: str | None) -> bool:
    if word in DENIALS and (
        following in DENIALS[word].split() or (word.startswith("den") and following.endswith("ing"))
    ):
        return True
    return _is_negation(word, language) and following not in LIMITS and not following.isdigit()


def _is_negation(word: str, language: str | None) -> bool:
    known = NEGATIONS.get(language or "", ANY_NEGATION)
    return word in known or word.endswith(("n't", "n’t")) or word in ("n'a", "n’a", "n'est", "n’est")


def is_hedged(text: str, *, allows: bool = False) -> bool:
    """Whether a sentence only says that something may be so; with `allows`, “may” is a permission."""
    words = [match[0] for match in TOKEN.finditer(text)]
    # May is a month, and “may” before a number is one that somebody did not capitalise
    return any(
        fold(word) in HEDGES
        and not (allows and fold(word) == "may")
        and not (word == "May" or (n + 1 < len(words) and words[n + 1].isdigit()))
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
