"""Finds the places that name the reader: @mentions, own addresses, greetings, and fields that assign something."""

import re
from collections.abc import Iterator, Sequence

from gristmill.models.language.hints.model import NOWHERE, About, ClientIdentity, FoundMention, TextEvidence
from gristmill.models.language.hints.sentences import Sentence
from gristmill.models.language.hints.words import Words, fold, spell
from gristmill.models.language.structure import ADDRESS

AT = re.compile(
    r"(?<![\w.@/])@([^\W\d_][\w.-]{0,60})(?:[ \u00a0]([^\W\d_]{2,40}))?|\[~(?:accountid:)?([\w.@-]{1,80})\]"
)
GREETING = spell(
    """hi hello hey dear hallo liebe lieber guten sehr servus moin grüezi grüß ahoj dobrý vážená vážený zdravím milá
    milý čau nazdar bok pozdrav poštovana poštovani poštovane dragi draga dobar dobro ej cześć"""
)
WITHIN_GREETING = spell(
    """frau herr herrn tag morgen abend geehrte geehrter mr mrs ms dr ing mgr pane paní den večer dan jutro gospodine
    gospođo gospođa gospodin kolega kolegice and und a i & there dear sir madam gott dir ihnen"""
)
ASSIGNING = re.compile(
    r"^[ \t>*|#-]{0,6}(?:assignee|assigned to|assigned|owner|responsible|zugewiesen an|zugewiesen|"
    r"bearbeiter(?:in)?|verantwortlich|"
    r"zuständig|přiřazeno|přidělen[oa]?|řešitel(?:ka)?|zodpovídá|odpovídá|dodijeljeno|zadužen[a]?|"
    r"odgovorna osoba|izvršitelj)\**"
    r"[ \t]*[:|][ \t|*]*([^\n|]{1,120})",
    re.IGNORECASE | re.MULTILINE,
)
ASSIGNED_TO_YOU = re.compile(
    r"\b(?:(?:is|was|has been|been|now) assigned to you|assigned you|(?:wurde|ist|sind|wird) (?:ihnen|"
    r"dir) (?:\w+ )?(?:zugewiesen|"
    r"zugeteilt|übertragen)|ihnen zugewiesen|(?:byl|byla|bylo|byl[ayo]?) (?:vám|ti) (?:\w+ )?přiřazen[oay]?|"
    r"vám byl[ao]? přidělen[oay]?|"
    r"(?:dodijeljen[oa]?|dodijelj\w+) (?:vam|ti) je|(?:vam|ti) je dodijeljen[oa]?)\b",
    re.IGNORECASE,
)
FOOTER = re.compile(
    r"sent to|unsubscribe|gesendet an|abmeld|zaslán|odhlá|poslan|odjav|intended for|registered|^(?:to|an|komu|za|cc)\b",
    re.I,
)
ASSIGNEE_FIELDS = ("assignee", "assigned_to", "assigned to", "owner", "responsible")
TOP_LINES = 6  # lines in which a greeting may stand
SHORTEST = 3  # letters of a name


class Me:
    """The reader's names in all forms in which a text may have them."""

    def __init__(self, me: ClientIdentity) -> None:
        self.addresses = frozenset(one.strip().lower() for one in me.addresses if "@" in one)
        names = [fold(one).split() for one in me.names if one.strip()]
        self.parts = frozenset(part.strip(".,") for name in names for part in name if len(part.strip(".,")) >= SHORTEST)
        self.firsts = frozenset(name[0] for name in names if len(name[0]) >= SHORTEST - 1)
        locals_ = {one.partition("@")[0] for one in self.addresses}
        joined = {sign.join(name) for name in names for sign in ("", ".", "-", "_")}
        self.handles = frozenset({*map(fold, locals_), *joined, *self.firsts} - {""})
        self.is_known = bool(names or self.addresses)

    def is_name(self, low: str) -> bool:
        """Whether a folded word is one of the names; Czech and Croatian bend them: Anno, Petře, Marku."""
        return low in self.parts or any(_is_bent(low, name) for name in self.parts)

    def is_person(self, text: str) -> bool:
        """Whether a whole field names the reader: an address, or words of which one is a name and none a stranger's."""
        if any(one.lower() in self.addresses for one in ADDRESS.findall(text)):
            return True
        lows = [fold(one) for one in re.findall(r"[^\W\d_]+", text)]
        if fold(text.strip().lstrip("@")) in self.handles:
            return True
        return bool(lows) and any(self.is_name(low) for low in lows) and (len(lows) == 1 or self._has_full_name(lows))

    def _has_full_name(self, lows: Sequence[str]) -> bool:
        named = sum(self.is_name(low) for low in lows)
        return named >= 2 or len(self.parts) == 1


def _is_bent(low: str, name: str) -> bool:
    if len(name) < SHORTEST + 1 or not len(name) - 1 <= len(low) <= len(name) + 4 or low == name:
        return False
    stem = name[:-1] if name[-1] in "aeio" else name
    ends = ("ova", "ove", "ovou", "o", "e", "u", "i", "y", "a", "em", "om", "ovi", "ou", "oj")
    if low.startswith(stem) and low[len(stem) :] in ends:
        return True
    shortened = name[:-2] + name[-1] if name[-2] in "e" else ""  # Pavel, Pavle; Marek, Marku
    return bool(shortened) and low.startswith(shortened) and low[len(shortened) :] in ends


def find_mentions(
    words: Words, sentences: Sequence[Sentence], asking: Sequence[Sentence], about: About
) -> tuple[FoundMention, ...]:
    """Every place that names the reader; `asking` are the sentences that ask for something."""
    me = Me(about.me)
    found = [*_find_assigned_to_you(words, sentences, about), *_find_field(about, me)]
    if me.is_known:
        found += _find_at(words.text, sentences, me)
        found += _find_addresses(words.text, sentences, me)
        found += _find_greeting(words, sentences, me)
        found += _find_assignees(words, sentences, asking, me)
    return tuple(found)


def _find_field(about: About, me: Me) -> Iterator[FoundMention]:
    for name in ASSIGNEE_FIELDS:
        value = about.fields.get(name, "")
        if value and me.is_person(value):
            yield FoundMention(value, "assignee", NOWHERE)
            return


def _find_assigned_to_you(words: Words, sentences: Sequence[Sentence], about: About) -> Iterator[FoundMention]:
    for sentence in sentences:
        if match := ASSIGNED_TO_YOU.search(words.text, sentence.start, sentence.stop):
            yield FoundMention("you", "assignee", TextEvidence(match.start(), match.end(), match[0]))
            return


def _find_at(text: str, sentences: Sequence[Sentence], me: Me) -> Iterator[FoundMention]:
    for sentence in sentences:
        for match in AT.finditer(text, sentence.start, sentence.stop):
            handle = fold((match[1] or match[3]).rstrip(".-"))
            whole = handle + fold(match[2]) if match[2] else ""
            if whole in me.handles:
                yield FoundMention(match[0].lstrip("@"), "mention", TextEvidence(match.start(), match.end(), match[0]))
            elif handle in me.handles or handle in me.addresses:
                stop = match.end(1) if match[1] else match.end()
                words = text[match.start() : stop].rstrip(".-")
                yield FoundMention(handle, "mention", TextEvidence(match.start(), match.start() + len(words), words))


def _find_addresses(text: str, sentences: Sequence[Sentence], me: Me) -> Iterator[FoundMention]:
    for sentence in sentences:
        for match in ADDRESS.finditer(text, sentence.start, sentence.stop):
            if match[0].lower() in me.addresses and not FOOTER.search(text[sentence.start : sentence.stop]):
                yield FoundMention(match[0], "address", TextEvidence(match.start(), match.end(), match[0]))


def _find_greeting(words: Words, sentences: Sequence[Sentence], me: Me) -> Iterator[FoundMention]:
    """Hi Anna, Sehr geehrte Frau Novak, Ahoj Petře: near the beginning, and before any other text."""
    for sentence in sentences[:TOP_LINES]:
        first = sentence.first
        if words.low(first) not in GREETING and not (
            me.is_name(words.low(first)) and words.low(first + 1) in (",", "!")
        ):
            continue
        for place in range(first, min(first + 8, sentence.after)):
            low = words.low(place)
            if me.is_name(low):
                stop = words[place].stop
                start = words[first].start
                yield FoundMention(
                    words.read_word(place), "greeting", TextEvidence(start, stop, words.text[start:stop])
                )
                return
            if low in (",", "!", ".", ":") and place > first + 1 and not _goes_on(words, place, me):
                break


def _goes_on(words: Words, place: int, me: Me) -> bool:
    """Dobrý den, paní Nováková; Guten Tag, Frau Novak: behind the comma it is still a greeting."""
    behind = words.low(place + 1)
    return words.low(place) == "," and (behind in TITLES or me.is_name(behind))


TITLES = spell(
    "frau herr herrn mr mrs ms miss dr ing mgr prof pane paní pan gospodine gospođo gospođa gospodin gđo gđa"
)
DOING = spell(
    """to will should must please can could would shall soll muss wird bitte kann könnte übernimmt má musí může
    zajistí pošle připraví prosím treba će neka može pripremi pošalje prosim molim sends prepares checks needs has
    schickt prüft"""
) | frozenset({":", "-", "–", "→", "(", ","})


def _find_assignees(
    words: Words, sentences: Sequence[Sentence], asking: Sequence[Sentence], me: Me
) -> Iterator[FoundMention]:
    text = words.text
    if sentences:
        for match in ASSIGNING.finditer(text, sentences[0].start, sentences[-1].stop):
            if me.is_person(match[1]):
                written = match[0].strip()
                start = match.start() + match[0].index(written) if written else match.start()
                yield FoundMention(
                    match[1].strip(" *|"), "assignee", TextEvidence(start, start + len(written), written)
                )
    for sentence in asking:
        for place in range(sentence.first, sentence.after):
            if me.is_name(words.low(place)) and words.is_capital(place) and _is_actor(words, sentence, place, me):
                word = words[place]
                yield FoundMention(
                    words.read_word(place), "assignee", TextEvidence(word.start, word.stop, words.read_word(place))
                )
                break


def _is_actor(words: Words, sentence: Sentence, place: int, me: Me) -> bool:
    """Anna to send, Anna: send, Could Anna send, Úkol (Anna): the name is of whoever has to do it."""
    behind = words.low(place + 1)
    if me.is_name(behind):
        behind = words.low(place + 2)
    before = words.low(place - 1) if place > sentence.first else ""
    if before in ("from", "with", "von", "mit", "od", "s", "thanks", "danke", "regards", "by", "to", "an", "fur"):
        return False
    first = sentence.first
    while first < place and words.low(first) in (*TITLES, "."):  # Frau Novak legt den Plan vor
        first += 1
    return (
        (place == first and behind != "")
        or behind in DOING
        or before in ("can", "could", "should", "soll", "kann", "(", "→", ":", "@")
    )
