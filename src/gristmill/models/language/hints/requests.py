"""Finds the sentences that ask the reader something, or to do something: by rules, in English also by a small model."""

import re
from collections.abc import Sequence

from gristmill.models.language.hints.asking import ACTION_ITEMS, drop_idle_phrases, is_asking
from gristmill.models.language.hints.intent import score_request
from gristmill.models.language.hints.model import About, FoundRequest
from gristmill.models.language.hints.sentences import Sentence
from gristmill.models.language.hints.words import Words

SURE, LIKELY = 0.95, 0.8  # scores of what the rules find
LEARNED = 0.9  # from which score on the model is believed: of the sentences of a mail, few ask for something
REPLIED = re.compile(r"^\W*(?:re|aw|odp|sv|fwd?|wg|vs|pd|prosl|fw)\b\s?(?:\[\d+\])?\s?:", re.IGNORECASE)
READ_BY_MANY = frozenset({"wiki", "git", "link"})  # texts for everybody: their questions and orders are to nobody
LEARNED_OF = frozenset({"email", "user_input"})  # the model was trained on sentences of mails


def find_requests(
    words: Words, sentences: Sequence[Sentence], language: str, about: About
) -> tuple[tuple[FoundRequest, ...], list[Sentence]]:
    """The sentences that ask for something, as facts and as sentences."""
    found: list[FoundRequest] = []
    asking: list[Sentence] = []
    for sentence in sentences:
        if request := judge_sentence(words, sentence, language, about):
            found.append(request)
            asking.append(sentence)
    return tuple(found), asking


def judge_sentence(words: Words, sentence: Sentence, language: str, about: About) -> FoundRequest | None:
    """Whether this sentence asks for something: an item of a list of actions, a wish, or a question."""
    evidence = sentence.get_evidence(words.text)
    if ACTION_ITEMS.search(sentence.low):
        return FoundRequest("request", SURE, evidence)
    meant = "" if about.type in READ_BY_MANY else drop_idle_phrases(sentence.low, language)
    if not meant:
        return None
    question = meant.endswith("?") or " ? " in meant
    asked = is_asking(meant, language)
    if question and (asked or meant.count(" ") >= 2):
        return FoundRequest("question", SURE if asked else LIKELY, evidence)
    if asked:
        return FoundRequest("request", SURE, evidence)
    if language == "en" and about.type in LEARNED_OF and meant.count(" ") >= 2:
        score = score_request(evidence.words)
        return FoundRequest("request", round(score, 3), evidence) if score >= LEARNED else None
    return None
