"""Links that are never fetched, whoever sent them: to open one would do something, tell somebody, or fool us."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, unquote_plus

from confusable_homoglyphs import confusables as untyped

from gristmill.sources.fetch.location import Location
from gristmill.sources.link.model import FoundLink
from gristmill.sources.link.words import load_words

confusables: Any = untyped  # it has no types
LONGEST = 2_000  # characters of an address
WORD = re.compile(r"[^\W_]+")
CASE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")  # between the words of confirmEmail
JWT = re.compile(r"\beyJ[\w-]{5,}\.eyJ[\w-]{5,}\.[\w-]*")
YEAR = re.compile(r"(19|20)\d\d")
LETTERS = str.maketrans({"ß": "ss", "ł": "l", "đ": "d", "ø": "o", "æ": "ae", "ı": "i"})
# a part of a path with more words than this is a title, such as how-to-cancel-a-contract
MOST_WORDS = 3

UNSUBSCRIBE = load_words("unsubscribe")
LOGIN = load_words("login")
ACTION = load_words("action")
TRACKING_WORDS = load_words("tracking")
TRACKING_HOSTS = load_words("trackers")
TRACKING_PREFIXES = (
    "click.",
    "clicks.",
    "track.",
    "tracking.",
    "trk.",
    "email.",
    "mailer.",
    "go.pardot.",
    "links.e.",
    "ablink.",
)
TOKENS = load_words("tokens")
SECRETS = load_words("secrets")
READERS = load_words("readers")
COMMANDS = load_words("commands")
SEARCHES = load_words("searches")
PLAIN_BESIDE = load_words("plain_beside")
PLAIN = load_words("plain")
SHELVES = load_words("shelves")
OPENERS = load_words("openers")
URGES = load_words("urges")
DOING = UNSUBSCRIBE | LOGIN | ACTION
EXECUTABLE = tuple(load_words("programs"))


def fold_text(text: str) -> str:
    """Without accents: désabonner is desabonner."""
    plain = unicodedata.normalize("NFKD", text.translate(LETTERS))
    return "".join(char for char in plain if not unicodedata.combining(char))


def split_words(text: str) -> list[str]:
    """The words of a name or a part of a path, which may be joined: confirmEmail, confirm-email, confirm_email."""
    return [word.lower() for word in WORD.findall(CASE.sub(" ", fold_text(text).replace("PayPal", "Paypal")))]


def join_words(words: Sequence[str]) -> set[str]:
    """The words, and each two that stand side by side: sign-in, opt_out."""
    return {*words, *map("".join, pairwise(words))}


@dataclass(frozen=True)
class _Parts:
    """An address, taken apart."""

    path: Sequence[str]
    pairs: Sequence[tuple[str, str]]  # parameters of the query, and of parts of the path (;token=…)

    @property
    def names(self) -> set[str]:
        return {name.lower() for name, _ in self.pairs}

    def is_shelved(self, at: int) -> bool:
        """Whether a part of the path stands below a folder of pages to be read."""
        return any(YEAR.fullmatch(part) or SHELVES.intersection(split_words(part)) for part in self.path[:at])

    def is_title(self, at: int) -> bool:
        """Whether a part is the title of a page: how-to-cancel-a-contract. It stands at the end, and orders nothing."""
        words, shelved = split_words(self.path[at]), self.is_shelved(at)
        least = MOST_WORDS if shelved else MOST_WORDS + 1
        if len(words) < least or any(self.path[at + 1 :]) or not self.names <= PLAIN or is_order(words):
            return False
        if any(_is_random(word) for word in words):
            return False
        return words[0] in OPENERS or (shelved and (len(words) > MOST_WORDS or words[0] not in DOING | TRACKING_WORDS))


def _is_random(word: str) -> bool:
    return len(word) >= 6 and any(char.isdigit() for char in word) and not word.isdigit()


def is_order(words: Sequence[str]) -> bool:
    """Whether words tell their reader to do something: confirm-your-email, click-here-to-unsubscribe."""
    told = any(one in DOING and other in URGES for one, other in pairwise(words))
    return told or ("click" in words and "here" in words)


def _take_apart(location: Location) -> _Parts:
    path, _, query = location.target.partition("?")
    parts = [part.split(";") for part in path.split("/")]
    pairs = [*re.split("[&;]", query), *(pair for part in parts for pair in part[1:])]
    named = [(unquote_plus(name), unquote_plus(value)) for name, _, value in (one.partition("=") for one in pairs)]
    return _Parts([unquote(part[0]) for part in parts], [one for one in named if one[0]])


def find_unsafe_pattern(location: Location, found: FoundLink | None = None) -> str | None:
    """Why a link must never be fetched, in one sentence; None if nothing speaks against it."""
    return next(_list_reasons(location, found), None)


def find_doubtful_pattern(location: Location) -> str | None:
    """Why a link might do something when it is opened: a person decides, even where its domain is allowed."""
    return next(_list_doubts(_take_apart(location)), None)


def _list_reasons(location: Location, found: FoundLink | None) -> Iterator[str]:
    path = unquote(location.target.partition("?")[0])
    parts = _take_apart(location)
    if len(location.url) > LONGEST:
        yield f"Its address is longer than {LONGEST} characters."
    if reason := find_spoof(location.host):
        yield reason
    if token := _find_secret(parts) or JWT.search(unquote(location.target)):
        named = f"parameter {token[:40]}" if isinstance(token, str) else "token"
        yield f"Its {named} proves who opens it, or does something."
    if path.lower().endswith(EXECUTABLE):
        yield "It leads to a program."
    words = {*_list_path_words(parts), *parts.names, *_list_commands(parts)}
    yield from _judge_words(words)
    if _is_tracker(location.host) or words & TRACKING_WORDS:
        yield "It only counts who opens it, and leads somewhere else."
    if found is not None:
        yield from _judge_label(location, found)


def _find_secret(parts: _Parts) -> str | None:
    """The name of a parameter that is a secret, or of a part of the path behind which one stands (/token/abc)."""
    for name, _ in parts.pairs:
        if name.lower() in TOKENS | READERS or join_words(split_words(name)) & SECRETS:
            return name
    for at, (part, behind) in enumerate(pairwise(parts.path)):
        if part.lower() in SECRETS and behind and not parts.is_shelved(at):
            return part
    return None


def _list_path_words(parts: _Parts) -> Iterator[str]:
    for at, part in enumerate(parts.path):
        if parts.is_title(at):
            continue
        for words in (WORD.findall(fold_text(part).lower()), split_words(part)):
            if len(words) <= MOST_WORDS or is_order(words):
                yield from join_words(words)


def _list_commands(parts: _Parts) -> Iterator[str]:
    """What parameters want to be done: action=unsubscribe."""
    for name, value in parts.pairs:
        words = split_words(value)
        if name.lower() in COMMANDS and len(words) <= MOST_WORDS:
            yield from join_words(words) & DOING


def _list_doubts(parts: _Parts) -> Iterator[str]:
    for at, part in enumerate(parts.path):
        words = split_words(part)
        if len(words) > MOST_WORDS and not parts.is_title(at) and (word := min(join_words(words) & DOING, default="")):
            yield f"To open it may do something (“{word}”): a person decides."
    for name, value in parts.pairs:
        words = split_words(name)
        if join_words(words) & (DOING | TOKENS) and not PLAIN_BESIDE.intersection(words):
            yield f"Its parameter {name[:40]} may do something: a person decides."
        said = split_words(value)
        told = name.lower() not in SEARCHES and len(said) <= MOST_WORDS
        if told and (word := min(join_words(said) & DOING, default="")):
            yield f"Its parameter {name[:40]} may do something (“{word}”): a person decides."


def _judge_words(words: set[str]) -> Iterator[str]:
    if word := min(words & UNSUBSCRIBE, default=None):
        yield f"It ends a subscription (“{word}”)."
    if word := min(words & LOGIN, default=None):
        yield f"It is about signing in (“{word}”)."
    if word := min(words & ACTION, default=None):
        yield f"To open it does something (“{word}”)."


def _is_tracker(host: str) -> bool:
    return host.startswith(TRACKING_PREFIXES) or any(host == one or host.endswith(f".{one}") for one in TRACKING_HOSTS)


def _judge_label(location: Location, found: FoundLink) -> Iterator[str]:
    """What people read before they click: the label, or the words right before a bare address."""
    said = found.label or found.leading
    spoken = WORD.findall(fold_text(said).lower())
    if found.label or len(spoken) <= 2 * MOST_WORDS:
        yield from (reason.replace("(“", "(it says “") for reason in _judge_words(set(spoken) - {"order", "register"}))
    shown = re.search(r"(?:https?://)?((?:[\w-]+\.)+[a-z]{2,24})(?:[/:?#]|$)", found.label.lower())
    if shown and not is_same_site(shown[1], location.host):
        yield f"Its text shows {shown[1][:80]}, but it leads to {location.host}."


def is_same_site(shown: str, host: str) -> bool:
    """Whether two names are one, or one lies within the other."""
    one, other = shown.removeprefix("www."), host.removeprefix("www.")
    try:
        one = one.encode("idna").decode()
    except UnicodeError:
        return False
    return one == other or one.endswith(f".{other}") or other.endswith(f".{one}")


def find_spoof(host: str) -> str | None:
    """Whether a name is written with letters of one script that look like letters of another."""
    *labels, top = host.split(".")
    for label in labels:
        shown = _decode_label(label)
        if shown == label:
            continue
        if confusables.is_mixed_script(shown):
            return f"Its name “{shown}” mixes letters of several scripts."
        if not top.startswith("xn--") and _looks_latin(shown):  # below .рф, Cyrillic names are usual
            return f"Its name “{shown}” looks like another one, in Latin letters."
    return None


def _decode_label(label: str) -> str:
    if not label.startswith("xn--"):
        return label
    try:
        return label[4:].encode().decode("punycode")
    except UnicodeError:
        return label


def _looks_latin(label: str) -> bool:
    """Whether every letter could be taken for a Latin one, and none is."""
    letters = {char for char in label if char.isalpha()}
    if not letters or any(char.isascii() for char in letters):
        return False
    alike: list[dict[str, str]] = confusables.is_confusable(label, greedy=True, preferred_aliases=["latin"]) or []
    return letters <= {one["character"] for one in alike}
