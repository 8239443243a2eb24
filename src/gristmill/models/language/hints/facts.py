"""Reads a text by rules: dates, amounts, references, requests, mentions, noise, and what follows from them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from gristmill.models.language.amounts import find_amounts
from gristmill.models.language.hints.dates import find_dates, find_deadline
from gristmill.models.language.hints.file_names import leave_out_files
from gristmill.models.language.hints.mentions import find_mentions
from gristmill.models.language.hints.model import (
    NOWHERE,
    About,
    FoundAmount,
    FoundDate,
    Payment,
    TextEvidence,
    TextFacts,
)
from gristmill.models.language.hints.noise import find_noise
from gristmill.models.language.hints.payments import find_payment, is_contract
from gristmill.models.language.hints.references import find_references
from gristmill.models.language.hints.requests import REPLIED, find_requests, hear_wish
from gristmill.models.language.hints.sentences import Sentence, split_sentences
from gristmill.models.language.hints.suspicion import find_suspicion
from gristmill.models.language.hints.words import Words, find_language

Span = tuple[int, int]
MOST = 200_000  # characters of a text that are read: what a longer one asks stands at its beginning
FORWARDING = re.compile(r"^\W*(?:fwd?|wg|přep|proslijeđeno|prosl|fw)\s?:", re.IGNORECASE)
QUOTED_LINE = re.compile(r"^[ \t]*>[^\n]*$", re.MULTILINE)
URGENT = re.compile(
    r"\b(?:urgent(?:ly)?|asap|as soon as possible|immediately|immediate|critical(?:ly)?|emergency|top priority|"
    r"high priority|time[- ]sensitive"
    r"|dringend\w*|eilig|eilt|sofort|umgehend|schnellstmöglich|so schnell wie möglich|unverzüglich|notfall|kritisch\w*"
    r"|naléhav\w*|spěchá|urgentní|urgentně|co nejdříve|ihned|okamžitě|neprodleně|akutní|kritick\w*"
    r"|hitno|hitna|hitan|žurno|odmah|što prije|čim prije|što hitnije|kritičn\w*"
    r"|production (?:is )?down|system (?:is )?down|outage|ausfall|výpadek|ispad sustava)\b",
    re.IGNORECASE,
)
NOT_URGENT = re.compile(r"\b(?:not|no|nicht|kein\w*|není|nijak|nije|ništa|neni)\b[^.\n]{0,20}$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Cut:
    """The parts of a text that are read, cut into words and sentences."""

    spans: list[Span]
    words: Words
    sentences: list[Sentence]
    body: list[Sentence]  # without the subject and names of files
    asked: list[Sentence]  # in which something may be asked: the subject of a reply is that of an older mail


def cut_text(text: str, about: About, new: Sequence[Span] | None = None, file_names: Sequence[Span] = ()) -> Cut:
    spans = _choose_spans(text, about, new)
    words = Words(text, spans)
    sentences = list(split_sentences(words, spans))
    said = leave_out_files(words, sentences, file_names)
    begin = _find_body(text, about)
    body = [one for one in said if one.start >= begin]
    return Cut(spans, words, sentences, body, body if REPLIED.match(about.subject or text[:200]) else said)


def read_facts(
    text: str, about: About, *, new: Sequence[Span] | None = None, file_names: Sequence[Span] = ()
) -> TextFacts:
    """All facts of the new parts of a text; offsets are of the whole text. A forwarded mail is new as a whole.

    `file_names` are the places that are names of files, whatever they look like: they may name dates and numbers.
    """
    cut = cut_text(text, about, new, file_names)
    words, sentences = cut.words, cut.sentences
    language = find_language(words)
    amounts = tuple(_find_amounts(text, cut.spans))
    dates = (*find_dates(words, about, language), *_read_due_field(about))
    references = find_references(text, tuple(cut.spans))
    noise = find_noise(words, cut.body, about)
    payment = find_payment(words, sentences, amounts, dates, references, noise, about)
    requests, asking = find_requests(words, cut.asked, dates, language, about)
    contract = is_contract(sentences)
    if contract and about.type == "document":  # what it says in general binds both sides, and asks nobody yet
        requests, asking = (), []
    if not requests and payment is None and (heard := hear_wish(text, cut.asked, language, noise, about)):
        requests = (heard,)  # it says that something is wanted, and not of whom
    return TextFacts(
        language=language,
        dates=dates,
        amounts=amounts,
        references=references,
        requests=requests,
        mentions=find_mentions(words, cut.body, asking, about),
        noise=noise,
        payment=payment,
        deadline=find_deadline(dates, about.written_at) or _find_due_day(payment, dates, about),
        urgent=_find_urgent(text, sentences),
        suspicion=find_suspicion(text, cut.spans),
        is_contract=contract,
    )


def _find_due_day(payment: Payment | None, dates: Sequence[FoundDate], about: About) -> FoundDate | None:
    """The day to come on which a payment is due, where no word calls it a deadline."""
    if payment is None or payment.due is None or payment.due < about.written_at.date():
        return None
    return next((one for one in dates if one.day == payment.due), None)


def _choose_spans(text: str, about: About, new: Sequence[Span] | None) -> list[Span]:
    """The parts that are read: what is new; of a forwarded mail also what is forwarded, but no older quote in it."""
    if new is None:
        return _limit([(0, len(text))])
    if FORWARDING.match(about.subject or text[:200]):
        return _limit(_drop_quoted_lines(text))
    return _limit(_join(sorted((max(0, start), min(stop, len(text))) for start, stop in new)))


def _limit(spans: Sequence[Span]) -> list[Span]:
    """The spans up to the length that is read."""
    left = MOST
    limited: list[Span] = []
    for start, stop in spans:
        stop = min(stop, start + left)
        if start < stop:
            limited.append((start, stop))
            left -= stop - start
    return limited


def _drop_quoted_lines(text: str) -> list[Span]:
    spans: list[Span] = []
    start = 0
    for match in QUOTED_LINE.finditer(text):
        if match.start() > start:
            spans.append((start, match.start()))
        start = match.end()
    return [*spans, (start, len(text))]


def _join(spans: Sequence[Span]) -> list[Span]:
    """Spans in order, none of which overlaps another."""
    joined: list[Span] = []
    for start, stop in spans:
        if start >= stop:
            continue
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    return joined


def _find_body(text: str, about: About) -> int:
    """Where the text behind the subject begins."""
    return len(about.subject) if about.subject and text.startswith(about.subject) else 0


def _find_amounts(text: str, spans: Sequence[Span]) -> list[FoundAmount]:
    return [
        FoundAmount(one.value, one.currency, TextEvidence(one.start, one.stop, text[one.start : one.stop]))
        for start, stop in spans
        for one in find_amounts(text, start, stop)
    ]


def _read_due_field(about: About) -> list[FoundDate]:
    """The due date that a tracker states beside the text."""
    for name in ("due", "due_date", "duedate", "deadline"):
        value = about.fields.get(name, "")
        try:
            return [FoundDate(date.fromisoformat(value[:10]), None, NOWHERE, is_deadline=True)] if value else []
        except ValueError:
            continue
    return []


def _find_urgent(text: str, sentences: Sequence[Sentence]) -> TextEvidence | None:
    for sentence in sentences:
        match = URGENT.search(text, sentence.start, sentence.stop)
        if match and not NOT_URGENT.search(text[max(sentence.start, match.start() - 30) : match.start()]):
            return TextEvidence(match.start(), match.end(), match[0])
    return None
