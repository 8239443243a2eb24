"""Finds the sentences that ask the reader something, or to do something: by rules, in English also by a small model."""

import re
from collections.abc import Sequence

from gristmill.models.language.hints.asking import (
    ACTION_ITEMS,
    FORETOLD,
    OBLIGED,
    PROMISED,
    drop_idle_phrases,
    is_asking,
)
from gristmill.models.language.hints.indirect import CALMING, HEARD_IN, SETTLED, is_complaining, is_hinting
from gristmill.models.language.hints.intent import score_request
from gristmill.models.language.hints.model import About, FoundDate, FoundRequest
from gristmill.models.language.hints.sentences import Sentence
from gristmill.models.language.hints.words import Words

SURE, LIKELY = 0.95, 0.8  # scores of what the rules find
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
    calm = any(CALMING.search(one.low) for one in sentences)
    for sentence in sentences:
        named = [one for one in dates if sentence.start <= one.evidence.start < sentence.stop]
        request = judge_sentence(words, sentence, named, language, about)
        if request and sentence is not handed and not (calm and request.score <= LIKELY and request.kind == "request"):
            found.append(request)
            asking.append(sentence)
    return tuple(found), asking


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
    if ACTION_ITEMS.search(sentence.low) or _is_given_to(words.text, sentence, dates):
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
    announced = any(one.day > about.written_at.date() for one in dates)  # no mail on Saturday: not a complaint
    heard = is_hinting(meant, language) or (not announced and is_complaining(meant, language))
    if heard and about.type in HEARD_IN:
        return FoundRequest("request", LIKELY, evidence)
    if language == "en" and about.type in LEARNED_OF and meant.count(" ") >= 2:
        score = score_request(evidence.words)
        return FoundRequest("request", round(score, 3), evidence) if score >= LEARNED else None
    return None


def _is_due(meant: str, about: About) -> bool:
    """Whether a sentence with a deadline says that somebody must; in minutes, that somebody will."""
    if about.type == "meeting":
        return True
    if PROMISED.search(meant):
        return False
    spoken = about.type in HEARD_IN and not FORETOLD.search(meant)
    return bool(spoken or OBLIGED.search(meant))
