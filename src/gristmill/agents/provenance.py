"""Who said a value that chooses a recipient, a command, an address or a path: a person, a text, or nobody.

Trust is given strictly: a value is a person's if the very same characters stand by themselves in a person's words.
Doubt is given generously: a value comes from a text if it can be made of it, whatever the spelling. A value that stands
where a person says no is trusted by nothing else that was said.
"""

import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import unquote

from gristmill.agents.denials import Denial, find_denials
from gristmill.agents.disguises import fold, look_at
from gristmill.agents.runs import ReadText
from gristmill.documents import split_quoted
from gristmill.errors import Unsafe
from gristmill.sources import read_location

TargetKind = Literal["recipient", "command", "url", "path", "branch", "name", "state"]
Who = Literal["person", "policy", "workspace", "untrusted", "nobody", "denied"]
QUOTED = "a text quoted in the request"
REFUSED = "an answer that refuses something"
PAGE = "the page "  # before the address of a page that was fetched, in the name of its text
# A no covers its whole sentence. Of files and branches only those behind it: “mend main.py, but do not push” is often
# said, and what becomes of both is seen before it leaves the workspace.
AFTER_NO: tuple[TargetKind, ...] = ("path", "branch")
MOST_SOURCES = 5  # that an origin names
SHORTEST_PIECE = 4  # characters of a value that was put together from several texts …
MOST_PIECES = 4  # … of so many pieces
SHORTEST_WORD = 3  # a shorter value is looked for as a word of its own
PIECE = re.compile(r"(?<=[.!?:;])\s+|\n+")  # between the sentences and lines of a free text
SHORTEST_COPIED = 12  # characters of a sentence or a line that may have been taken from somewhere
MOST_COPIED = 300  # sentences and lines of a free text that are looked for
MOST_LOOKED_THROUGH = 1_000_000  # characters of texts in which a value is looked for …
NOT_LOOKED_THROUGH = "texts that are too long to look through"  # … and the value may stand in the others


@dataclass(frozen=True)
class Origin:
    """Who said a value, where it stands, and what it only looks like."""

    who: Who
    sources: tuple[str, ...] = ()  # of what a person said: the address above it, if this one was not named itself
    looks_like: str | None = None  # a value that a person said, in other characters

    @property
    def is_trusted(self) -> bool:
        return self.who in ("person", "policy", "workspace")

    def __str__(self) -> str:
        match self.who:
            case "person" if self.sources:
                said = f"it lies below {join_sources(self.sources)}, which a person named"
            case "person":
                said = "a person said it"
            case "policy":
                said = "the policy names it"
            case "workspace":
                said = "it is in the workspace"
            case "untrusted":
                said = f"it comes from {join_sources(self.sources)}"
            case "nobody":
                said = "nobody said it: the model made it up"
            case "denied":
                said = "a person says no where it stands"
        return f"{said}; it looks like {self.looks_like!r}, but is another" if self.looks_like else said


def join_sources(sources: Sequence[str]) -> str:
    """The first texts by their names, and how many more there are."""
    shown = list(sources[:MOST_SOURCES]) + (
        [f"{len(sources) - MOST_SOURCES} more"] if len(sources) > MOST_SOURCES else []
    )
    return " and ".join(shown)


@dataclass(frozen=True)
class RunWords:
    """Everything that was said to a run: by persons, and by the texts that it read."""

    person: Sequence[str] = ()
    read: list[ReadText] = field(default_factory=list[ReadText])  # more come in while it works
    workspace: frozenset[str] = field(default_factory=frozenset[str])  # files that are there
    denials: Sequence[Denial] = ()  # where persons say no

    def in_workspace(self, files: Iterable[str]) -> "RunWords":
        return replace(self, workspace=frozenset(files))


def listen(
    person: Iterable[str], read: Iterable[ReadText], workspace: Iterable[str] = (), refusals: Iterable[str] = ()
) -> RunWords:
    """What persons said themselves. What they quote was said by somebody else; a refusal names nothing to act on."""
    own, quoted = list[str](), list[ReadText]()
    said_no = list(refusals)
    for text in person:
        parts = split_quoted(text)
        own.append(parts.new)
        if parts.quoted.strip():
            quoted.append(ReadText(QUOTED, parts.quoted))
    refused = [ReadText(REFUSED, one) for one in said_no if one.strip()]
    denials = [denial for text in (*own, *said_no) for denial in find_denials(text)]
    return RunWords(own, [*quoted, *refused, *read], frozenset(workspace), denials)


def find_origin(kind: TargetKind, value: str, words: RunWords) -> Origin:
    """Who said a value; a person's word counts more than a text that says the same, a person's no more than a yes."""
    if any(_is_denied(kind, value, one.tail if kind in AFTER_NO else one.sentence) for one in words.denials):
        return Origin("denied")
    if any(is_said(kind, value, text) for text in words.person):
        return Origin("person")
    if kind == "url" and (above := _find_address_above(value, words)):
        return Origin("person", (above,))
    if kind == "path" and _tidy_path(value) in words.workspace:
        return Origin("workspace")
    alike = _find_double(kind, value, words.person)
    if sources := find_sources(kind, value, words.read):
        return Origin("untrusted", tuple(sources), alike)
    return Origin("nobody", (), alike)


# --- trust: the same characters, by themselves

STOPS = ".,;:!?"
OPENING, CLOSING = "([{<“„‘«'\"`", ")]}>”“’»'\"`"
APART = re.compile(r"[\s<>()\[\]{},;:\"'`“”„‘’«»|]+")  # what cannot be in a mail address
URL = re.compile(r"https?://[^\s<>\"'`“”„‘’«»|]+", re.IGNORECASE)
# “Read everything below https://…”
ALL_BELOW = re.compile(
    r"\b(?:(?:everything|all pages|every page)(?: that (?:is|are|lies?|stands?))? (?:below|under|beneath)"
    r"|(?:alles|alle seiten) (?:unter|unterhalb von)|(?:vše|všechno|všechny stránky) pod"
    r"|sve(?: stranice)? (?:pod|ispod))"
    r"[:\s]+[(\[<\"'`“„«]?$",
    re.IGNORECASE,
)
LONGEST_ALL_BELOW = 60  # characters
COMMAND = re.compile(r"`+([^`\n]+)`+|\"([^\"\n]+)\"|“([^”\n]+)”|„([^“\n]+)“|'([^'\n]+)'")
UNRESERVED = re.compile(r"%(2[dD]|2[eE]|5[fF]|7[eE]|3[0-9]|[46][1-9a-fA-F]|[57][0-9aA])")


def is_said(kind: TargetKind, value: str, text: str) -> bool:
    """Whether a value stands in a text by itself, character by character but for the capitals of names of the net."""
    if kind == "state":
        return _has_words(value, text)
    return _SPELL[kind](value) in {_SPELL[kind](one) for one in _EXTRACT[kind](text)}


def _is_denied(kind: TargetKind, value: str, text: str) -> bool:
    """Whether a value, or an address above it, stands in a text that says no."""
    return is_said(kind, value, text) or (
        kind == "url" and any(_is_below(value, above) for above, _ in _find_addresses_above(text))
    )


def _find_address_above(value: str, words: RunWords) -> str | None:
    """The address that a person named and below which this one lies, if nothing else can be told by fetching it.

    A page can have a link for every letter: whoever chooses among its links tells it something by each choice. So what
    lies below is trusted only while no text from elsewhere was read, and as a link on a page of that address, unless
    the person said that everything below is meant.
    """
    for text in words.person:
        for above, is_all_meant in _find_addresses_above(text):
            if not _is_below(value, above) or not all(_was_read_at(above, one) for one in words.read):
                continue
            if is_all_meant or any(is_said("url", value, one.text) for one in words.read):
                return above
    return None


def _find_addresses_above(text: str) -> Iterator[tuple[str, bool]]:
    """The addresses in a text, and whether it says that everything below is meant."""
    for place, url in _locate_urls(text):
        is_all_meant = ALL_BELOW.search(text, max(0, place - LONGEST_ALL_BELOW), place) is not None
        yield url.rstrip("*"), is_all_meant or url.endswith(("/*", "/**"))


def _was_read_at(above: str, read: ReadText) -> bool:
    """Whether a text is a page of this address, or of one below it."""
    url = read.source.removeprefix(PAGE)
    return url != read.source and (_spell_url(url) == _spell_url(above) or _is_below(url, above))


def _has_words(value: str, text: str) -> bool:
    """Whether words stand in a text in their order, for example “In Progress”; trackers do not mind their capitals."""
    words = r"\s+".join(map(re.escape, lower_ascii(value).split()))
    return bool(words) and re.search(rf"(?<![\w-]){words}(?![\w-])", lower_ascii(text)) is not None


def _find_addresses(text: str) -> Iterator[str]:
    for word in APART.split(text):
        if "@" in word:
            yield word.rstrip(STOPS)


def _find_urls(text: str) -> Iterator[str]:
    for _, url in _locate_urls(text):
        yield url


def _locate_urls(text: str) -> Iterator[tuple[int, str]]:
    for found in URL.finditer(text):
        url = found[0].rstrip(STOPS)
        while url.endswith(")") and url.count(")") > url.count("("):
            url = url[:-1].rstrip(STOPS)
        yield found.start(), url


def _find_words(text: str) -> Iterator[str]:
    for word in text.split():
        yield word
        yield word.lstrip(OPENING).rstrip(STOPS + CLOSING)


def _find_commands(text: str) -> Iterator[str]:
    """What stands in quotes or on a line of its own: the words of a sentence may break off in front of an option."""
    for found in COMMAND.finditer(text):
        yield next(group for group in found.groups() if group is not None)
    for line in text.splitlines():
        yield line
        yield line.strip().removeprefix("$ ")


_EXTRACT: Mapping[TargetKind, Callable[[str], Iterator[str]]] = {
    "recipient": _find_addresses,
    "url": _find_urls,
    "command": _find_commands,
    "path": _find_words,
    "branch": _find_words,
    "name": _find_words,
    "state": _find_words,
}


def _spell_address(value: str) -> str:
    return lower_ascii(value.strip())


def _spell_url(value: str) -> str:
    """One spelling of an address, read as the fetcher reads it; one that the fetcher refuses stays odd."""
    try:
        location = read_location(value.strip())
    except Unsafe:
        return f"odd {value}"
    path, mark, query = location.target.partition("?")
    return location.origin + UNRESERVED.sub(lambda found: unquote(found[0]), path) + mark + query


def _is_below(value: str, said: str) -> bool:
    """Whether an address lies below one that was said, and carries nothing more than a path."""
    wanted, named = _spell_url(value), _spell_url(said)
    if "?" in named or "?" in wanted or not named.startswith(("http://", "https://")):
        return False
    return wanted.startswith(named if named.endswith("/") else named + "/") and ".." not in wanted.split("/")


def _spell_command(value: str) -> str:
    return " ".join(value.split())


def _tidy_path(value: str) -> str:
    path = posixpath.normpath(value.strip())
    return path if not path.startswith("../") else value


def lower_ascii(text: str) -> str:
    """Small letters of ASCII alone: other alphabets have capitals whose small letters are those of ASCII."""
    return re.sub("[A-Z]+", lambda found: found[0].lower(), text)


_SPELL: Mapping[TargetKind, Callable[[str], str]] = {
    "recipient": _spell_address,
    "url": _spell_url,
    "command": _spell_command,
    "path": _tidy_path,
    "branch": str.strip,
    "name": str.strip,
    "state": str.strip,
}


# --- doubt: whatever it can be made of


def find_sources(kind: TargetKind, value: str, read: Sequence[ReadText]) -> list[str]:
    """The texts that a value stands in, in any spelling, or that it can be put together from."""
    wanted = fold(value)
    if not wanted:
        return []
    views = [(one.source, look_at(one.text)) for one in _limit(read)]
    whole = [source for source, view in views if _stands_in(wanted, view)]
    if whole:
        return list(dict.fromkeys(whole))
    made = _put_together(_leave_out_scheme(wanted), views) if kind in ("recipient", "url", "command") else []
    return made or ([NOT_LOOKED_THROUGH] if sum(len(one.text) for one in read) > MOST_LOOKED_THROUGH else [])


def find_copied(value: str, words: RunWords) -> list[str]:
    """The texts that have a sentence or a line of a free text, or all of it; a person's own words are no copy."""
    pieces = dict.fromkeys([value, *(one for one in PIECE.split(value) if len(one.strip()) >= SHORTEST_COPIED)])
    if len(pieces) > MOST_COPIED:
        return [NOT_LOOKED_THROUGH]
    said = [_leave_out_spaces(text) for text in words.person]
    found = list[str]()
    for piece in pieces:
        if not any(_leave_out_spaces(piece) in text for text in said):
            found += find_sources("name", piece, words.read) or find_sources("name", "".join(piece.split()), words.read)
    return list(dict.fromkeys(found))


def _leave_out_spaces(text: str) -> str:
    return re.sub(r"\s+", "", fold(text))


def _limit(read: Sequence[ReadText]) -> list[ReadText]:
    """The latest texts, up to a size; of one that is too long its beginning."""
    left, kept = MOST_LOOKED_THROUGH, list[ReadText]()
    for one in reversed(read):
        kept.append(ReadText(one.source, one.text[:left]))
        left -= len(one.text)
        if left <= 0:
            break
    return kept[::-1]


def _stands_in(wanted: str, view: str) -> bool:
    if len(wanted) >= SHORTEST_WORD:
        return wanted in view
    return re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", view) is not None


def _leave_out_scheme(wanted: str) -> str:
    return re.sub(r"^https?:?/*(www\.)?", "", wanted)


def _put_together(wanted: str, views: Sequence[tuple[str, str]]) -> list[str]:
    """The texts whose pieces make up a value: each piece as long as possible, none shorter than some letters."""
    sources, place = list[str](), 0
    for _ in range(MOST_PIECES):
        found = max(((_measure(wanted[place:], view), source) for source, view in views), default=(0, ""))
        length, source = found
        if length < min(SHORTEST_PIECE, len(wanted) - place) or not length:
            return []
        sources.append(source)
        place += length
        place += len(wanted[place:]) - len(wanted[place:].lstrip("@./:-_ "))
        if place >= len(wanted):
            return list(dict.fromkeys(sources))
    return []


def _measure(wanted: str, view: str) -> int:
    """How many characters of the beginning stand in a text."""
    low, high = 0, len(wanted)
    while low < high:
        middle = (low + high + 1) // 2
        if wanted[:middle] in view:
            low = middle
        else:
            high = middle - 1
    return low


def _find_double(kind: TargetKind, value: str, person: Sequence[str]) -> str | None:
    """A value that a person said and that looks like this one."""
    wanted = fold(value)
    for text in person:
        for one in _EXTRACT[kind](text):
            if one != value and fold(one) == wanted and _SPELL[kind](one) != _SPELL[kind](value):
                return one
    return None
