"""Compares a sentence of an answer with the spans that say it, by rule."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gristmill.agents.ask.exchanges import find_exchange
from gristmill.agents.ask.limits import (
    find_exception,
    find_other_cause,
    find_other_degree,
    find_other_duty,
    find_other_pace,
    is_permission,
    repeats_exception,
)
from gristmill.agents.ask.model import CheckedSentence, Passage, Verdict
from gristmill.agents.ask.opposites import SLAVIC, find_opposite, find_other_choice
from gristmill.agents.ask.phrases import FILLER, NO, YES
from gristmill.agents.ask.polarity import (
    BREAKS,
    find_assertion,
    find_conditions,
    find_other_share,
    is_hedged,
    read_polarity,
)
from gristmill.agents.ask.pronouns import find_unclear_pronoun, names_nobody, split_names
from gristmill.agents.ask.relations import (
    YEAR,
    Said,
    compare_sides,
    find_other_agent,
    find_other_pairing,
    find_other_place,
    find_other_step,
    find_turned_roles,
    list_main_names,
)
from gristmill.agents.ask.sentences import find_spans
from gristmill.agents.ask.spans import (
    TELLERS,
    ComparedClaim,
    SentenceSpan,
    choose_spans,
    cover,
    find_nearest,
    has_term,
    is_value_in,
    list_sentences,
    measure,
    measure_coverage,
    read_around,
)
from gristmill.agents.ask.translations import compare_meanings, is_translated
from gristmill.agents.ask.values import Value, are_equal, find_values, is_rival
from gristmill.agents.ask.words import (
    ASKING,
    PRONOUNS,
    Name,
    Term,
    fold_words,
    holds_name,
    is_plain,
    read_terms,
)
from gristmill.knowledge import fold

ENOUGH = 0.5  # the share of a sentence's words that its span must have …
MAYBE = 0.3  # … or this one, if both mean the same
FLIPPED = 0.3  # the share of common words that one of two sentences denies, from which they contradict each other
SHORTEST = 4  # letters of a name that is recognised without its ending
NEAR = 2  # words between a number and the word that it counts
NOTHING_SAID = "It says nothing that can be checked."


@dataclass(frozen=True)
class Judgement:
    """What a claim is worth, by which spans, and why; `is_close` if only its words are too different."""

    verdict: Verdict
    spans: tuple[SentenceSpan, ...] = ()
    reason: str = ""
    is_close: bool = False


def check_sentence(
    text: str, cited: Sequence[int], passages: Sequence[Passage], *, question: str = "", language: str | None = None
) -> tuple[CheckedSentence, Judgement]:
    """The sentence with its verdict. The passages that it names are asked first, then all."""
    judged = _judge_plain_answer(text, cited, passages, question, language)
    if judged is None:
        judged = judge(ComparedClaim(text, language, question), cited, passages)
    return make_sentence(text, judged), judged


def make_sentence(text: str, judged: Judgement) -> CheckedSentence:
    return CheckedSentence(text, judged.verdict, tuple(span.cite() for span in judged.spans), judged.reason)


def _judge_plain_answer(
    text: str, cited: Sequence[int], passages: Sequence[Passage], question: str, language: str | None
) -> Judgement | None:
    """A bare yes says what the question asks, and a bare no the opposite; None if the sentence says more."""
    is_yes, is_no = YES.fullmatch(text) is not None, NO.fullmatch(text) is not None
    if not (is_yes or is_no) or not question:
        return None
    judged = judge(ComparedClaim(question, language), cited, passages)
    if is_yes or judged.verdict == "unsupported":
        return judged
    if judged.verdict == "partial":  # names and figures agree with a yes and with a no
        return Judgement("unsupported", judged.spans, judged.reason)
    other: Verdict = "contradicted" if judged.verdict == "supported" else "supported"
    return Judgement(other, judged.spans, "The passage says yes." if other == "contradicted" else "")


def judge(claim: ComparedClaim, cited: Sequence[int], passages: Sequence[Passage]) -> Judgement:
    named = [one for one in passages if one.number in cited]
    if claim.is_empty or FILLER.fullmatch(claim.text):
        return Judgement("unsupported", reason=NOTHING_SAID)
    first = _judge_by(claim, named, passages) if named else None
    if first is not None and first.verdict == "supported":
        return first
    best = _judge_by(claim, passages, passages)
    # what the passage that the model names says of it holds, unless another passage supports it
    if first is not None and first.verdict in ("contradicted", "partial") and best.verdict != "supported":
        return first
    return best


def _judge_by(claim: ComparedClaim, passages: Sequence[Passage], everything: Sequence[Passage]) -> Judgement:
    spans = choose_spans(claim, passages)
    if not spans:
        return Judgement("unsupported", reason="No passage speaks of it.")
    contradiction = next((found for span in spans if (found := find_contradiction(claim, span))), None)
    if contradiction:
        return Judgement("contradicted", spans[:1], contradiction)
    lack = find_lack(claim, spans, everything)
    if lack:
        return Judgement("unsupported", reason=lack)
    if doubt := find_doubt(claim, spans):
        return Judgement("unsupported", reason=doubt)
    if any(is_translated(claim, one) for one in spans):
        return _judge_translated(claim, spans)
    if exchanged := _find_exchange(claim, spans):
        return Judgement("unsupported", spans, f"The passage says “{exchanged[1]}”, not “{exchanged[0]}”.")
    share = measure_coverage(claim, spans)
    if share < ENOUGH:
        reason = f"Its passages have {share:.0%} of its words."
        return Judgement("unsupported", spans, reason, is_close=share >= MAYBE)
    return Judgement("supported", spans)


def _judge_translated(claim: ComparedClaim, spans: tuple[SentenceSpan, ...]) -> Judgement:
    """Names and values alone prove little: they are the same in “sold” and “founded”."""
    compared = [compare_meanings(claim, one) for one in spans]
    says = {one.says: one.reason for one in reversed(compared)}
    if "opposite" in says:
        return Judgement("contradicted", spans, says["opposite"])
    if "same" in says:
        return Judgement("supported", spans)
    if "unclear" in says:
        verdict: Verdict = "partial" if any(_shares_name_or_value(claim, one) for one in spans) else "unsupported"
        return Judgement(verdict, spans, says["unclear"])
    return Judgement("unsupported", spans, says["other"])


def _shares_name_or_value(claim: ComparedClaim, span: SentenceSpan) -> bool:
    there = fold_words(span.text)
    is_named = any(holds_name(name.text, there) for name in claim.names)
    # German writes all nouns with capitals: there, a name is what another language writes with one as well
    return bool(span.values) or is_named or any(one.text[:1].isupper() and one.text in span.text for one in span.terms)


def _find_exchange(claim: ComparedClaim, spans: Sequence[SentenceSpan]) -> tuple[str, str] | None:
    sentences = [
        Said(span.passage.text[slice(*place)], span.passage.language or claim.language)
        for span in spans
        for place in list_sentences(span)
    ]
    about = " ".join(span.passage.about for span in spans)
    return find_exchange(Said(claim.text, claim.language), sentences, about)


# --- what is missing, and what is denied


def find_lack(claim: ComparedClaim, spans: Sequence[SentenceSpan], everything: Sequence[Passage]) -> str:
    """The value, name or quotation of a claim that its passages do not have; empty if none is missing."""
    texts = " \n ".join(f"{span.passage.text} \n {span.passage.about}" for span in spans)
    for value in claim.values:
        if value.written[:1].isdigit() or value.kind != "number":  # a spelt number is often a manner of speaking
            found = any(value in span.values for span in spans) or is_value_in(value, texts)
            if not found and not _is_known_year(value, claim, everything):
                return f"“{value.written}” does not stand in its passages."
    plain = fold_words(" \n ".join(f"{read_around(span)} \n {span.passage.about}" for span in spans))
    asked = fold_words(claim.question)
    is_foreign = claim.language in SLAVIC and any(is_translated(claim, span) for span in spans)
    for name in claim.names:
        if holds_name(name.text, plain) or (is_foreign and _holds_form(name.text, plain)):
            continue
        known = holds_name(name.text, asked) and any(holds_name(name.text, fold_words(one.text)) for one in everything)
        if not known:
            return f"“{name.text}” does not stand in its passages."
    wording = _normalise(texts)
    for quotation in claim.quotations:
        if _normalise(quotation).strip(" .,") not in wording:
            return f"It quotes “{quotation}”, which does not stand in its passages."
    return ""


def _holds_form(name: str, words: Iterable[str]) -> bool:
    """Whether a text in another language has a name that ends otherwise there: u Splitu, in Split."""
    there = {form for word in words if len(word) >= SHORTEST for form in (word, word[:-1])}
    own = [word for word in map(fold, name.split()) if len(word) >= SHORTEST]
    return bool(own) and all(word in there or word[:-1] in there for word in own)


def _list_beside(span: SentenceSpan) -> list[str]:
    """The sentences of a span and those around it."""
    around = read_around(span)
    return [around[slice(*one)] for one in find_spans(around)]


def _is_known_year(value: Value, claim: ComparedClaim, everything: Sequence[Passage]) -> bool:
    """A year that the question asks about and any passage has. Other values prove nothing: a question may lead."""
    is_year = YEAR.fullmatch(value.key) is not None
    return is_year and is_value_in(value, claim.question) and any(is_value_in(value, one.text) for one in everything)


def find_doubt(claim: ComparedClaim, spans: Sequence[SentenceSpan]) -> str:
    """Why the passages do not say it, though they have its words: of less, of another, only perhaps, only if."""
    first = spans[0]
    if is_hedged(first.text, allows=is_permission(claim.text)) and not is_hedged(claim.text):
        return "The passage only says that it may be so."
    sentence = first.passage.text[slice(*find_nearest(claim, first))]
    if share := find_other_share(claim.text, sentence):
        return f"The passage says it of another share: {share}."
    if _is_supposed(claim, sentence):
        return "The passage only says what would be if it were so."
    if word := find_other_duty(claim.text, sentence):
        return f"The passage says “{word}”."
    if degree := find_other_degree(claim.text, sentence):
        return f"The passage says “{degree}”."
    if period := find_other_pace(claim.text, sentence):
        return f"The passage says “{period}” of another thing: it comes again, or it runs out."
    if word := find_other_cause(claim.text, sentence, claim.language):
        return f"The passage does not say “{word}”, only when it was."
    if word := find_assertion(claim.text, sentence):
        return f"The passage only reports it: {word}."
    said = Said(sentence, first.passage.language or claim.language)
    if reason := find_other_step(Said(claim.text, claim.language), said) or _find_other_name(claim, spans, sentence):
        return reason
    reason = next((reason for span in spans if (reason := _find_other_owner(claim, span))), "")
    return reason or _find_lent_name(claim, spans)


def _find_lent_name(claim: ComparedClaim, spans: Sequence[SentenceSpan]) -> str:
    """A name that the sentences which say it only have by a pronoun that may mean somebody else."""
    own = split_names(list_main_names(Said(claim.text, claim.language)))
    names = fold_words(" ".join(own))
    places = [(span.passage, place) for span in spans for place in list_sentences(span)]
    said = {place: {one for one in _list_said(claim, *place) if fold(one) not in names} for place in places}
    for name in own:
        by_name = [place for place in places if holds_name(name, fold_words(place[0].text[slice(*place[1])]))]
        told = {one for place in by_name for one in said[place]}
        for passage, place in places:
            language = passage.language or claim.language
            is_titled = holds_name(name, fold_words(passage.about)) and names_nobody(passage.text, place[0], language)
            if (passage, place) in by_name or said[passage, place] <= told or is_titled:
                continue
            if pronoun := find_unclear_pronoun(name, own, passage.text, place, language):
                return f"The passage says it of “{pronoun}”, who may be somebody else than “{name}”."
    return ""


def _list_said(claim: ComparedClaim, passage: Passage, place: tuple[int, int]) -> list[str]:
    """The words and values of a claim that this sentence has, as the claim writes them."""
    terms, values = cover(claim, passage, *place)
    return [*(one.text for one in terms), *(one.written for one in values)]


def _find_other_name(claim: ComparedClaim, spans: Sequence[SentenceSpan], nearest: str) -> str:
    """A word that the passages only have in a sentence about somebody whom the claim does not name."""
    named = fold_words(" ".join(name.text.rpartition(" of ")[2] for name in claim.names))  # CEO of Acme: CEO is no name
    covered = fold_words(nearest)
    for term in claim.terms:
        word = fold(term.text)
        if word in named | covered | BREAKS or has_term(term, _stems_of(nearest, claim.language), covered):
            continue
        told = [
            _find_stranger(claim, term, span.passage, place) for span in spans for place in _list_places(span, term)
        ]
        if told and all(told):
            return f"The passage says “{term.text}” of “{told[0]}”."
    return ""


def _is_in_name(term: Term, names: Iterable[Name]) -> bool:
    return any(name.start <= term.start < name.stop for name in names)


def _list_places(span: SentenceSpan, term: Term) -> list[tuple[int, int]]:
    """The sentences of a passage that have this word."""
    text, language = span.passage.text, span.passage.language
    return [
        place
        for place in find_spans(text)
        if has_term(term, _stems_of(text[slice(*place)], language), fold_words(text[slice(*place)]))
    ]


def _find_stranger(claim: ComparedClaim, term: Term, passage: Passage, place: tuple[int, int]) -> str:
    """The name in a sentence that speaks of what the claim speaks of, but of none of the persons that it names."""
    said = Said(passage.text[slice(*place)], passage.language or claim.language)
    words = fold_words(said.text)
    terms, _ = cover(claim, passage, *place)
    names = Said(claim.text, claim.language).names
    others = [one for one in claim.terms if one != term and not _is_in_name(one, names)]
    if words & TELLERS or (len(others) > 1 and not terms - {term}):
        return ""
    main = [one for one in list_main_names(Said(claim.text, claim.language)) if one.text != term.text]
    if not any(not holds_name(one.text, fold_words(f"{said.text} {passage.about}")) for one in main):
        return ""
    own = fold_words(f"{claim.text} {passage.about}")
    return next((one.text for one in list_main_names(said) if not holds_name(one.text, own)), "")


def _is_supposed(claim: ComparedClaim, sentence: str) -> bool:
    """Whether what is claimed stands in a condition, and neither the claim nor the question names it as one."""
    if find_conditions(claim.text) or find_conditions(claim.question):
        return False
    supposed = {stem for one in find_conditions(sentence) for stem in _stems_of(one, claim.language)}
    return bool(supposed) and sum(one.term in supposed for one in claim.terms) > len(claim.terms) / 2


def _stems_of(text: str, language: str | None) -> set[str]:
    return {one.term for one in read_terms(text, language)}


def _find_other_owner(claim: ComparedClaim, span: SentenceSpan) -> str:
    """A value that the passage has, but in a sentence about something that the claim does not name."""
    names = _list_owners(claim, span.passage.text)
    if not names:
        return ""
    own = {one.term for one in claim.terms}
    for value in span.values:
        places = [
            span.passage.text[slice(*place)]
            for place in find_spans(span.passage.text)
            if place[0] >= span.start and place[1] <= span.stop and is_value_in(value, span.passage.text[slice(*place)])
        ]
        others = [_find_subject(one, names, own, claim.language) for one in places]
        if others and all(others):
            return f"The passage says “{value.written}” of “{others[0]}”."
    return ""


def _list_owners(claim: ComparedClaim, text: str) -> list[str]:
    """The names of a claim, and its first word if the passage writes it as a name, too."""
    first = _first_word(claim.text)
    return [*(name.text for name in claim.names), *([first] if _is_written_as_name(first, text) else [])]


def _find_subject(sentence: str, names: Sequence[str], own: set[str], language: str | None) -> str:
    """The thing that a sentence begins with, if the sentence names nothing that the claim names."""
    words = fold_words(sentence)
    first = _first_word(sentence)
    if words & PRONOUNS or any(holds_name(name, words) for name in names) or _stems_of(first, language) & own:
        return ""
    return first if _is_written_as_name(first, sentence) else ""


def _first_word(text: str) -> str:
    return next(iter(text.split(maxsplit=1)), "").strip('*_"“„«(),.:;')


def _is_written_as_name(word: str, text: str) -> bool:
    """Whether a word stands in a text, and always with a capital."""
    if not word[:1].isupper() or fold(word) in ASKING or is_plain(word):
        return False
    return re.search(rf"\b{re.escape(word)}\b", text) is not None and word.lower() not in text


def _normalise(text: str) -> str:
    return " ".join(re.sub(r"[*_`“”„«»\"]", "", text).casefold().split())


def find_contradiction(claim: ComparedClaim, span: SentenceSpan) -> str:
    """Why this span says the opposite; empty if it does not. It must speak of the same things."""
    sentence = find_nearest(claim, span)
    terms, _ = cover(claim, span.passage, *sentence)
    total = measure(claim, claim.terms, ())
    if not terms or measure(claim, terms, ()) < ENOUGH * total:
        return ""
    text = span.passage.text[slice(*sentence)]
    language = span.passage.language or claim.language
    beside = _list_beside(span)
    if word := find_exception(claim.text, text, language, beside):
        return f"The passage excepts “{word}”."
    denies = not repeats_exception(claim.text, text, language)
    return (
        _find_rival(claim, span, text)
        or (_find_denial(claim.text, text, claim.language, language) if denies else "")
        or _find_other_relation(Said(claim.text, claim.language), Said(text, language))
    )


def _find_other_relation(claim: Said, said: Said) -> str:
    """Why the same words say something else: their order, an opposite, another one of two."""
    sides = compare_sides(claim, said)
    if sides == "other":
        return "The passage says it the other way round."
    if sides == "" and (found := find_opposite(claim.text, said.text, claim.language, said.language)):
        return f"The passage says “{found[1].text}”, not “{found[0].text}”."
    if chosen := find_other_choice(claim.text, said.text, claim.language, said.language):
        return f"The passage says “{chosen[1]}”, not “{chosen[0]}”."
    # `turned`: the tunnel is shorter than the bridge, the bridge is longer than the tunnel
    return (
        ("" if sides == "turned" else find_other_place(claim, said))
        or find_turned_roles(claim, said)
        or find_other_agent(claim, said)
        or find_other_pairing(claim, said)
    )


def _find_rival(claim: ComparedClaim, span: SentenceSpan, text: str) -> str:
    """A value of the claim that the passage has not, while the sentence has another one of the same kind there."""
    whole = f"{span.passage.text} \n {span.passage.about}"
    there = find_values(text)
    own = [one for one in there if not any(are_equal(one, other) for other in claim.values)]
    for value in claim.values:
        if value in span.values or is_value_in(value, whole) or value.kind == "id":
            continue
        for other in own:
            if is_rival(value, other) and (
                value.kind != "number"
                or _measure_the_same(value, other)
                or _count_the_same(claim, value, text, other, span)
            ):
                return f"The passage says “{other.written}”, not “{value.written}”."
    return ""


def _measure_the_same(value: Value, other: Value) -> bool:
    """Whether both are weights, lengths or the like: 5 g, 5 mg."""
    return value.unit is not None and other.unit is not None and value.unit.dimension == other.unit.dimension


def _count_the_same(claim: ComparedClaim, value: Value, text: str, other: Value, span: SentenceSpan) -> bool:
    """Whether two numbers stand beside the same word: three bearings, two bearings."""
    language = span.passage.language or claim.language
    near = _words_near(claim.text, value, claim.language)
    return bool(near & _words_near(text, other, language))


def _words_near(text: str, value: Value, language: str | None) -> set[str]:
    terms = [one for one in read_terms(text, language) if one.stop <= value.start or one.start >= value.stop]
    before = [one.term for one in terms if one.stop <= value.start][-1:]
    after = [one.term for one in terms if one.start >= value.stop][:NEAR]
    return {*before, *after}


def _find_denial(claim: str, text: str, language: str | None, spoken: str | None) -> str:
    ours, theirs = read_polarity(claim, language), read_polarity(text, spoken)
    common = [term for term in ours if term in theirs]
    flipped = [term for term in common if not ours[term] & theirs[term]]
    if flipped and len(flipped) >= FLIPPED * len(common):
        return "The passage says the opposite."
    return ""
