"""Summaries without an LLM: the sentences of a text that say most of what the others say, too."""

import asyncio
import re
from collections import Counter
from typing import Protocol

SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’»)\]]*\s+(?=[\"'“‘«(\[]?[^\W_a-z])|\n{2,}|(?<=。)")
WORD = re.compile(r"[^\W\d_]{4,}")  # shorter words are mostly the same in every text
MARKS = re.compile(r"^[ \t]*(?:#{1,6}[ \t]+|[-*+•][ \t]+|>[ \t]*|\|.*$)", re.MULTILINE)
SENTENCES = 3
SHORTEST, LONGEST = 20, 400  # characters of a sentence that may stand in a summary
MOST = 2_000  # sentences from the beginning of a text that are looked at
LEAD = 1.3  # how much more the first sentence counts: writers say first what matters


class Summariser(Protocol):
    """Says in a few sentences what a text is about."""

    async def summarise(self, text: str) -> str: ...


class RuleSummariser:
    """Quotes the text: every sentence of the summary stands in it."""

    async def summarise(self, text: str) -> str:
        return await asyncio.to_thread(quote_summary, text)


def quote_summary(text: str, sentences: int = SENTENCES) -> str:
    """The sentences whose words are most common in the text, in their order."""
    found = split_sentences(text)[:MOST]
    if len(found) <= sentences:
        return " ".join(found)
    words = [set(WORD.findall(one.casefold())) for one in found]
    common = Counter(word for own in words for word in own)
    scores = [_score(own, common) * (LEAD if n == 0 else 1) for n, own in enumerate(words)]
    best = sorted(range(len(found)), key=lambda n: (-scores[n], n))[:sentences]
    return " ".join(found[n] for n in sorted(best))


def split_sentences(text: str) -> list[str]:
    plain = MARKS.sub("", text)
    whole = (" ".join(one.split()) for one in SENTENCE.split(plain) if one)
    return [one for one in whole if SHORTEST <= len(one) <= LONGEST] or _begin(plain)


def _begin(text: str) -> list[str]:
    """The beginning of a text that has no sentences."""
    start = " ".join(text[: LONGEST * 2].split())[:LONGEST].strip()
    return [start] if start else []


def _score(own: set[str], common: Counter[str]) -> float:
    """How much of the text a sentence speaks of; long sentences must not win by their length alone."""
    return sum(common[word] - 1 for word in own) / (len(own) ** 0.5) if own else 0.0
