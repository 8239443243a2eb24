"""What limits a statement: an exception, a duty that is no permission, a period that is no deadline, a cause."""

import re
from collections.abc import Iterator, Sequence

from gristmill.agents.ask.polarity import ANY_NEGATION, fold_text
from gristmill.agents.ask.values import are_equal, find_values
from gristmill.agents.ask.words import Term, are_alike, fold_words, read_terms, split_words

EXCEPT = re.compile(
    r"\b(?:except(?:ing)?(?: for)?|excluding|other than|apart from|aside from|with the exception of|save for|but not"
    r"|ausser|ausgenommen|mit ausnahme|abgesehen von|krome|vyjma|s vyjimkou|osim|izuzev|uz iznimku|s iznimkom"
    r"|uz izuzetak|instead of|rather than|anstatt"
    r"|anstelle"
    r"|statt (?:am|im|an|in|auf|des|der|dem|von)|umjesto"
    r"|(?:everyone|everybody|everything|all|nobody|no one|none|nothing) but)\b"
)
EXCLUDED = re.compile(
    r"\b(?:excluded|exempt|exempted|not (?:covered|included)|ausgeschlossen|ausgenommen|vyloucen\w*|vynat\w*"
    r"|iskljucen\w*|izuzet\w*)\b"
)
JOINING = split_words(
    """the a an its of and or for der die das dem den des und oder von vom ein eine einem a nebo i ili te"""
)
ALL = split_words(
    "all every each everything everyone everybody alle aller allen jeder jede jedes vsichni"
    " vsechny vsechna kazdy svi sve svaki"
)
MUST = re.compile(
    r"\b(?:must|shall|ha(?:s|ve|d) to|required to|obliged|obligated|muss|mussen|musst\w*|verpflichtet|musi|povin\w+"
    r"|mora|moraju|duzan|duzna|duzni|obvezan|obvezna)\b"
)
MAY = re.compile(
    r"\b(?:may|can|entitled|allowed|permitted|free to|darf|durfen|kann|konnen|berechtigt|smi|smeji|muze|mohou"
    r"|opravnen\w*|smije|smiju|moze|mogu|ovlasten\w*)\b"
)
MONTH = re.compile(r"\bMay\b")  # no permission
EACH = r"(?:every|each|once every|alle|jede[nrsm]?|kazd\w+|svak\w+)"
WITHIN = r"(?:within|in|after|for|innerhalb(?: von)?|binnen|nach|seit|do|behem|po dobu|u roku(?: od)?|nakon|tijekom)"
PACE = re.compile(rf"\b(?:(?P<each>{EACH})|(?P<within>{WITHIN}))\s(?:the\s|of\s)?$")
BECAUSE = (
    r"because of|due to|owing to|as a result of|on account of|wegen|aufgrund|infolge|kvuli|v dusledku|zbog|uslijed"
)
WHEN = r"before|after|during|despite|vor|nach|wahrend|trotz|pred|po|behem|navzdory|prije|nakon|poslije|tijekom|unatoc"
REASON = re.compile(rf"\b(?:{BECAUSE})\s(?P<behind>(?:\w+\s?){{1,3}})")
TIME = re.compile(rf"\b(?:{WHEN})\s(?P<behind>(?:\w+\s?){{1,3}})")
CAUSES = re.compile(
    rf"\b(?:{BECAUSE}|because|since|therefore|thus|weil|da|daher|deshalb|protoze|proto|jer|stoga|caus\w+|lead|leads|led)\b"
)
THAN = re.compile(r"\b\w+er than\b|\b\w+er als\b|\b(?:more|less|fewer|mehr|weniger)\b.*\b(?:than|als)\b")
AS = re.compile(r"\bas (?!well|soon|long|far|much|many)\w+ as\b|\b(?:so|gleich|ebenso|genauso) \w+ wie\b")


def find_exception(claim: str, text: str, language: str | None, beside: Sequence[str] = ()) -> str:
    """What a text leaves out and the claim says of it; `beside` are the sentences around it."""
    if _is_limited(claim):
        return ""
    ours = read_terms(claim, language)
    left_out = list(_find_left_out(text, language))
    found = next((one for one in left_out if _has(ours, one)), None)
    if found or (left_out and fold_words(claim) & ALL):
        return (found or left_out[0]).text
    there = read_terms(text, language)
    excluded = (one for other in beside for one in _find_excluded(other, language))
    return next((one.text for one in excluded if _has(ours, one) and not _has(there, one)), "")


def _find_excluded(text: str, language: str | None) -> Iterator[Term]:
    """What a sentence calls excluded: the battery is excluded (from the warranty)."""
    if match := EXCLUDED.search(fold_text(text)):
        yield from read_terms(fold_text(text)[: match.start()], language)


def repeats_exception(claim: str, text: str, language: str | None) -> bool:
    """Whether a claim denies of a thing what the text says of all others: the router was not replaced."""
    ours = read_terms(claim, language)
    return _is_limited(claim) and any(_has(ours, one) for one in _find_left_out(text, language))


def is_permission(text: str) -> bool:
    return MAY.search(_fold_duty(text)) is not None


def _fold_duty(text: str) -> str:
    return fold_text(MONTH.sub("", text))


def _is_limited(text: str) -> bool:
    plain = fold_text(text)
    return bool(EXCEPT.search(plain) or EXCLUDED.search(plain) or fold_words(text) & ANY_NEGATION)


def _find_left_out(text: str, language: str | None) -> Iterator[Term]:
    """The telling words directly behind each “except”: those of the thing, and of others that are joined to it."""
    for match in EXCEPT.finditer(fold_text(text)):
        behind = fold_text(text)[match.end() :]
        at = 0
        for term in read_terms(behind, language):
            between = re.findall(r"[^\W_]+|[.;:!?()–—]", behind[at : term.start])
            if not all(word in JOINING for word in between):
                break
            yield term
            at = term.stop


def _has(terms: Sequence[Term], one: Term) -> bool:
    return any(one.term == other.term or are_alike(one.term, other.term) for other in terms)


def find_other_duty(claim: str, text: str) -> str:
    """The word of a text that demands what the claim allows, or allows what it demands."""
    ours, there = _fold_duty(claim), _fold_duty(text)
    if fold_words(claim) & ANY_NEGATION or fold_words(text) & ANY_NEGATION:
        return ""  # must not and may not are the same
    for mine, other in ((MUST, MAY), (MAY, MUST)):
        if mine.search(ours) and not other.search(ours) and not mine.search(there) and (found := other.search(there)):
            return found[0]
    return ""


def find_other_pace(claim: str, text: str) -> str:
    """A time that comes again in one sentence and runs out in the other: every 90 days, within 90 days."""
    for value in find_values(claim):
        if value.unit is None or value.unit.dimension not in ("time", "months"):
            continue
        mine = PACE.search(fold_text(claim[: value.start]))
        others = [PACE.search(fold_text(text[: one.start])) for one in find_values(text) if are_equal(value, one)]
        if mine and others and all(one and one.lastgroup != mine.lastgroup for one in others):
            return value.written
    return ""


def find_other_cause(claim: str, text: str, language: str | None) -> str:
    """The word of a cause in a claim, where the text only says that it was before or after the same thing."""
    there = fold_text(text)
    if CAUSES.search(there):
        return ""
    when = {one.term for match in TIME.finditer(there) for one in read_terms(match["behind"], language)}
    for match in REASON.finditer(fold_text(claim)):
        if when & {one.term for one in read_terms(match["behind"], language)}:
            return match[0].removesuffix(match["behind"]).strip()
    return ""


def find_other_degree(claim: str, text: str) -> str:
    """“as fast as”, where the claim says that one is faster than the other, or the reverse."""
    ours, there = fold_text(claim), fold_text(text)
    for mine, other in ((THAN, AS), (AS, THAN)):
        if mine.search(ours) and not mine.search(there) and (found := other.search(there)):
            return found[0]
    return ""
