"""Keeps prompts within a budget of tokens: the oldest turns go first, and whatever is left out is said to be."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from gristmill.models import Message, tokens

FENCED = re.compile(
    r"^(The .+ begins and ends with the line ([0-9a-f]{16})\.\n\2\n)(?s:.*?)(^\2$)", re.MULTILINE
)  # as `fence_text` writes it
HEAD = 2 / 3  # of a text that is cut, the part that is kept from its beginning; the rest is its end
PER_TURN = 8  # tokens that a model needs around each message
MARKS = 60  # tokens of the lines that say where words of others begin and end
FEWEST = 32  # tokens of a text that is cut


def count_turns(messages: Sequence[Message]) -> int:
    return sum(tokens.count(one.text) + PER_TURN for one in messages)


def cut_text(text: str, most: int) -> str:
    """The text within so many tokens: its beginning and its end, and between them how much was left out."""
    if len(text) <= most:  # no token is shorter than a character
        return text
    spans = tokens.find_spans(text)
    if len(spans) <= most:
        return text
    # the line between the parts has tokens, too, and so have marks that are written again
    kept = max(most - 12 - (MARKS if FENCED.search(text) else 0), 0)
    head = int(kept * HEAD)
    tail = kept - head
    first, last = spans[head - 1][1] if head else 0, spans[-tail][0] if tail else len(text)
    begin, end = close_fence(text, first), open_fence(text, last)
    return f"{begin}\n… ({len(spans) - kept:,} tokens were left out here) …\n{end}".strip()


class Fenced(NamedTuple):
    """Where a text of others stands in a prompt: from the line that announces it to the line that ends it."""

    start: int
    begin: int  # of its words
    end: int  # of its words
    stop: int
    opening: str  # the two lines before its words
    fence: str


def find_fenced(text: str) -> list[Fenced]:
    """The texts between two lines with the same mark, as `fence_text` writes them."""
    return [Fenced(one.start(), one.end(1), one.start(3), one.end(), one[1], one[2]) for one in FENCED.finditer(text)]


def close_fence(text: str, at: int) -> str:
    """The text until here. One that ends among the words of others ends with their mark, which says where they end."""
    for one in find_fenced(text):
        if one.start < at < one.begin:
            return text[: one.start]
        if one.begin <= at < one.stop:
            return f"{text[: min(at, one.end)].rstrip()}\n{one.fence}"
    return text[:at]


def open_fence(text: str, at: int) -> str:
    """The text from here. One that begins among the words of others begins with their mark."""
    for one in find_fenced(text):
        if one.start < at < one.end:
            return f"{one.opening}{text[max(at, one.begin) :]}"
        if one.end <= at < one.stop:
            return text[one.stop :]
    return text[at:]


def fit_turns(messages: Sequence[Message], budget: int) -> list[Message]:
    """The messages within the budget.

    The first turns say who the model is and what it shall do, the last one asks: these stay. Turns between them go, the
    oldest first. If that is not enough, the longest text is cut, and says so.
    """
    kept = list(messages)
    costs = [tokens.count(one.text) + PER_TURN for one in kept]
    first = next((n for n, one in enumerate(kept) if one.role != "system"), 0) + 1
    while sum(costs) > budget and len(kept) > first + 1:
        del kept[first], costs[first]
    while (excess := sum(costs) - budget) > 0:
        longest = max(range(len(kept)), key=costs.__getitem__)
        most = max(costs[longest] - PER_TURN - excess, FEWEST)
        if most >= costs[longest] - PER_TURN:
            break  # nothing more can be cut: the model says whether it is too much
        kept[longest] = replace(kept[longest], text=cut_text(kept[longest].text, most))
        cost = tokens.count(kept[longest].text) + PER_TURN
        if cost >= costs[longest]:
            break
        costs[longest] = cost
    return kept
