"""Reads a text by rules: dates, amounts, references, requests, mentions, noise, and what follows from them."""

import re
from collections.abc import Sequence
from datetime import date

from gristmill.models.language.amounts import find_amounts
from gristmill.models.language.hints.dates import find_dates, find_deadline
from gristmill.models.language.hints.mentions import find_mentions
from gristmill.models.language.hints.model import NOWHERE, About, Evidence, Facts, FoundAmount, FoundDate
from gristmill.models.language.hints.noise import find_noise
from gristmill.models.language.hints.payments import find_payment, is_contract
from gristmill.models.language.hints.references import find_references
from gristmill.models.language.hints.requests import REPLIED, find_requests
from gristmill.models.language.hints.sentences import Sentence, split_sentences
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


def read_facts(text: str, about: About, *, new: Sequence[Span] | None = None) -> Facts:
    """All facts of the new parts of a text; offsets are of the whole text. A forwarded mail is new as a whole."""
    spans = _choose_spans(text, about, new)
    words = Words(text, spans)
    language = find_language(words)
    sentences = list(split_sentences(words, spans))
    body = [one for one in sentences if one.start >= _find_body(text, about)]
    asked = body if REPLIED.match(about.subject or text[:200]) else sentences
    amounts = tuple(_find_amounts(text, spans))
    dates = (*find_dates(words, about, language), *_read_due_field(about))
    references = find_references(text, tuple(spans))
    noise = find_noise(words, body, about)
    requests, asking = find_requests(words, asked, dates, language, about)
    return Facts(
        language=language,
        dates=dates,
        amounts=amounts,
        references=references,
        requests=requests,
        mentions=find_mentions(words, body, asking, about),
        noise=noise,
        payment=find_payment(words, sentences, amounts, dates, references, noise),
        deadline=find_deadline(dates, about.written_at),
        urgent=_find_urgent(text, sentences),
        is_contract=is_contract(sentences),
    )


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
        FoundAmount(one.value, one.currency, Evidence(one.start, one.stop, text[one.start : one.stop]))
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


def _find_urgent(text: str, sentences: Sequence[Sentence]) -> Evidence | None:
    for sentence in sentences:
        match = URGENT.search(text, sentence.start, sentence.stop)
        if match and not NOT_URGENT.search(text[max(sentence.start, match.start() - 30) : match.start()]):
            return Evidence(match.start(), match.end(), match[0])
    return None
