"""Finds the sentences that ask the reader something, or to do something: by rules, in English also by a small model."""

import re
from collections.abc import Sequence

from gristmill.models.language.hints.asking import (
    ACTION_ITEMS,
    FORETOLD,
    HEADING,
    OBLIGED,
    PROMISED,
    drop_idle_phrases,
    is_asking,
)
from gristmill.models.language.hints.concepts import find_concepts
from gristmill.models.language.hints.file_names import drop_file_names
from gristmill.models.language.hints.indirect import CALMING, HEARD_IN, SETTLED, TELLING, is_complaining, is_hinting
from gristmill.models.language.hints.intent import score_request
from gristmill.models.language.hints.mentions import TITLES, Me
from gristmill.models.language.hints.model import About, FoundDate, FoundRequest, Noise
from gristmill.models.language.hints.opinion import weigh_wish
from gristmill.models.language.hints.phrases import compile_phrases
from gristmill.models.language.hints.sentences import Sentence
from gristmill.models.language.hints.weights import make_probability
from gristmill.models.language.hints.words import Words

SURE, LIKELY, PERHAPS = 0.95, 0.8, 0.75  # scores of what the rules find
ANSWER = 0.6  # the margin of the second opinion from which on a reply wants something: most of them only answer
LEARNED = 0.9  # from which score on the model is believed: of the sentences of a mail, few ask for something
REPLIED = re.compile(r"^\W*(?:re|aw|odp|sv|fwd?|wg|vs|pd|prosl|fw)\b\s?(?:\[\d+\])?\s?:", re.IGNORECASE)
READ_BY_MANY = frozenset({"wiki", "git", "link"})  # texts for everybody: their questions and orders are to nobody
REPORTS = frozenset({"document", "meeting"})  # here a question may be a heading: it counts if it is put to the reader
LEARNED_OF = frozenset({"email", "user_input"})  # the model was trained on sentences of mails


def find_requests(
    words: Words, sentences: Sequence[Sentence], dates: Sequence[FoundDate], language: str, about: About
) -> tuple[tuple[FoundRequest, ...], list[Sentence]]:
    """The sentences that ask for something, as facts and as sentences."""
    found: list[FoundRequest] = []
    asking: list[Sentence] = []
    if handed := _find_handed_on(words, sentences, about):
        found.append(FoundRequest("request", LIKELY, handed.get_evidence(words.text)))
        asking.append(handed)
    listed = _find_listed(words.text, sentences) if about.type not in ("git", "link") else frozenset[int]()
    doubtful = _find_doubtful(sentences)
    for sentence in sentences:
        named = [one for one in dates if sentence.start <= one.evidence.start < sentence.stop]
        if sentence.start in listed:
            request: FoundRequest | None = FoundRequest("request", SURE, sentence.get_evidence(words.text))
        else:
            request = judge_sentence(words, sentence, named, language, about)
        if request and sentence is not handed and (request.score > doubtful or request.kind == "question"):
            found.append(request)
            asking.append(sentence)
    return tuple(found), asking


def _find_doubtful(sentences: Sequence[Sentence]) -> float:
    """Up to which score nothing counts as a request, because the text says that it only tells, or asks for nothing."""
    if any(CALMING.search(one.low) for one in sentences):
        return LIKELY
    return PERHAPS if any(TELLING.search(one.low) for one in sentences) else 0


def _find_listed(text: str, sentences: Sequence[Sentence]) -> frozenset[int]:
    """Where the entries begin that stand in a list under a heading such as “Action items”."""
    found: set[int] = set()
    inside = False
    for sentence in sentences:
        if HEADING.fullmatch(sentence.low):
            inside = True
        elif inside and BULLET.search(text, max(0, sentence.start - 12), sentence.start):
            found.add(sentence.start)
        else:
            inside = False
    return frozenset(found)


BULLET = re.compile(r"(?:^|\n)[ \t]*(?:[-*•–◦☐]|\d{1,2}[.)])[ \t]*(?:\[ ?\][ \t]*)?$")


OFFERING = compile_phrases(
    r"""
    quotation|quote|(?:our|special|the) offer|estimate|(?:unser|ihr) angebot|angebot \w*\d\w*|kostenvoranschlag
    (?:naše|cenová|vaše) nabídka|nabídka (?:č \. )?\d+|(?:naša|vaša) ponuda|ponuda (?:br \. )?\d+
    """
)


def hear_wish(
    text: str, sentences: Sequence[Sentence], language: str, noise: Sequence[Noise], about: About
) -> FoundRequest | None:
    """What a mail wants in words that no rule knows; nothing if it says that it only tells, or if a machine answers."""
    if about.type != "email" or any(one.kind != "noise_sender" for one in noise):
        return None
    if any(SETTLED.search(one.low) for one in sentences) or _find_doubtful(sentences):
        return None
    if any(OFFERING.search(one.low) for one in sentences[:2]):  # whoever offers something waits, but asks for nothing
        return None
    meant = [one for one in sentences if drop_idle_phrases(one.low, language).count(" ")]
    if not meant or meant[-1].stop <= len(about.subject):  # behind the subject stands mere form
        return None
    if not any(find_concepts(word) for one in meant for word in one.low.split()):  # of none of the four languages
        return None
    margin, sentence = weigh_wish(meant)
    if sentence is None or (margin < ANSWER and REPLIED.match(about.subject)):
        return None
    return FoundRequest("request", round(make_probability(margin), 3), sentence.get_evidence(text))


PERSON = re.compile(r"[A-ZÀ-Ž][^\W\d_]+")


def _is_given_to(text: str, sentence: Sentence, dates: Sequence[FoundDate]) -> bool:
    """Letter to Corvane (Tomas Lindqvist, by 5 June): in brackets stand who does it and until when."""
    opened = text.rfind("(", sentence.start, sentence.stop)
    due = [one.evidence.start for one in dates if one.is_deadline and one.evidence.start > opened]
    return opened >= 0 and bool(due) and PERSON.match(text, opened + 1) is not None


FORWARDED = re.compile(r"^\W*(?:fwd?|wg|přep|proslijeđeno|prosl|fw)\s?:", re.IGNORECASE)
HEAD_LINE = re.compile(r"\s*[-_*]{2,}|\W*(?:from|von|od|forwarded|weitergeleitet|gesendet)\b", re.IGNORECASE)


def _find_handed_on(words: Words, sentences: Sequence[Sentence], about: About) -> Sentence | None:
    """Yours, I think: a few words above a forwarded mail hand it on, unless they say that it is for information."""
    if about.type not in HEARD_IN or not FORWARDED.match(about.subject):
        return None
    notes = [one for one in sentences if one.start >= len(about.subject)]
    note = notes[0] if notes else None
    if note is None or SETTLED.search(note.low) or HEAD_LINE.match(words.text, note.start, note.stop):
        return None
    return note


def judge_sentence(
    words: Words, sentence: Sentence, dates: Sequence[FoundDate], language: str, about: About
) -> FoundRequest | None:
    """Whether this sentence asks for something: an item of a list of actions, a wish, a question, a duty in time."""
    evidence = sentence.get_evidence(words.text)
    listed = (
        ACTION_ITEMS.search(sentence.low) and about.type != "git"
    )  # a commit notes what its author leaves for later
    if listed or _is_given_to(words.text, sentence, dates):
        return FoundRequest("request", SURE, evidence)
    meant = "" if about.type in READ_BY_MANY else drop_idle_phrases(sentence.low, language)
    if not meant:
        return None
    question = meant.endswith("?") or " ? " in meant
    asked = is_asking(meant, language)
    if question and (asked or (meant.count(" ") >= 2 and about.type not in REPORTS)):
        return FoundRequest("question", SURE if asked else LIKELY, evidence)
    if asked:
        return FoundRequest("request", SURE, evidence)
    if any(one.is_deadline for one in dates) and _is_due(meant, about):
        return FoundRequest("request", LIKELY, evidence)
    if about.type == "meeting" and _is_own_part(words, sentence, about):
        return FoundRequest("request", LIKELY, evidence)
    announced = any(one.day > about.written_at.date() for one in dates)  # no mail on Saturday: not a complaint
    if about.type in HEARD_IN and is_hinting(meant, language):
        return FoundRequest("request", LIKELY, evidence)
    if about.type in HEARD_IN and not announced and is_complaining(meant, language):
        return FoundRequest("request", PERHAPS, evidence)
    if language == "en" and about.type in LEARNED_OF and meant.count(" ") >= 2:
        score = score_request(drop_file_names(evidence.words))
        return FoundRequest("request", round(score, 3), evidence) if score >= LEARNED else None
    return None


def _is_own_part(words: Words, sentence: Sentence, about: About) -> bool:
    """Anna ruft den Hersteller an, Anna: to call the vendor: in minutes, what the reader does next is asked of him."""
    me = Me(about.me)
    place = sentence.first
    while place < sentence.after and (me.is_name(words.low(place)) or words.low(place) in TITLES):
        place += 1
    named = any(me.is_name(words.low(one)) for one in range(sentence.first, place))
    said = sentence.low.split()[place - sentence.first :]
    if not named or len(said) < 3 or said[0] in (",", "und", "and", "a", "i", "&", ";"):
        return False
    written = [words.read_word(one).lower() for one in range(place, min(place + 4, sentence.after))]
    past = any(PAST.fullmatch(one) for one in said[:3]) or any(map(ENDED.match, written))  # zavolala, but not zavolá
    return not past and not SETTLED.search(sentence.low)


PAST = compile_phrases(
    r"""
    has|had|was|were|did|is|are|said|told|reports?|reported|presented|nothing|no|absent|excused
    hat|hatte|war|wurde|ist|sind|berichtete?|informierte?|stellte|nichts|fehlt|entschuldigt
    byl[ao]?|je|není|informuje|informoval[ao]?|nic|omluvena?|bila?|bio|nije|izvijestila|izvješćuje|ništa|odsutna
    """
)
ENDED = re.compile(r"^\w{3,}(?:ed|la|lo|il|al|el|ila|ala)$")


def _is_due(meant: str, about: About) -> bool:
    """Whether a sentence with a deadline says that somebody must; in minutes, that somebody will."""
    if about.type == "meeting":
        return True
    if PROMISED.search(meant):
        return False
    spoken = about.type in HEARD_IN and not FORETOLD.search(meant)
    return bool(spoken or OBLIGED.search(meant))
