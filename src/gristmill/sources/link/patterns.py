"""Links that are never fetched, whoever sent them: to open one would do something, tell somebody, or fool us."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl, unquote

from confusable_homoglyphs import confusables as untyped

from gristmill.sources.fetch.location import Location
from gristmill.sources.link.model import FoundLink
from gristmill.sources.link.words import load_words

confusables: Any = untyped  # it has no types
LONGEST = 2_000  # characters of an address
WORD = re.compile(r"[^\W_]+")
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
EXECUTABLE = tuple(load_words("programs"))


def find_unsafe_pattern(location: Location, found: FoundLink | None = None) -> str | None:
    """Why a link must never be fetched, in one sentence; None if nothing speaks against it."""
    return next(_list_reasons(location, found), None)


def _list_reasons(location: Location, found: FoundLink | None) -> Iterator[str]:
    path = unquote(location.target.partition("?")[0])
    names = {name.lower() for name, _ in parse_qsl(location.target.partition("?")[2], keep_blank_values=True)}
    if len(location.url) > LONGEST:
        yield f"Its address is longer than {LONGEST} characters."
    if reason := find_spoof(location.host):
        yield reason
    if token := min(names & TOKENS, default=None):
        yield f"Its parameter {token} proves who opens it, or does something."
    if path.lower().endswith(EXECUTABLE):
        yield "It leads to a program."
    words = {*_list_path_words(path), *names}
    yield from _judge_words(words)
    if _is_tracker(location.host) or words & TRACKING_WORDS:
        yield "It only counts who opens it, and leads somewhere else."
    if found is not None:
        yield from _judge_label(location, found)


def _list_path_words(path: str) -> Iterator[str]:
    for part in path.lower().split("/"):
        words = WORD.findall(part)
        if len(words) <= MOST_WORDS:
            yield from words
            yield from map("".join, pairwise(words))  # sign-in, opt_out


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
    spoken = WORD.findall(said.lower())
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
        if not top.startswith("xn--") and _looks_latin(shown):  # an own top-level domain belongs to its script
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
