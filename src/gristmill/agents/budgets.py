"""Keeps prompts within a budget of tokens: the oldest turns go first, and whatever is left out is said to be."""

from collections.abc import Sequence
from dataclasses import replace

from gristmill.models import Message, tokens

HEAD = 2 / 3  # of a text that is cut, the part that is kept from its beginning; the rest is its end
PER_TURN = 8  # tokens that a model needs around each message
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
    kept = max(most - 12, 0)  # the line between the parts has tokens, too
    head = int(kept * HEAD)
    tail = kept - head
    begin = text[: spans[head - 1][1]] if head else ""
    end = text[spans[-tail][0] :] if tail else ""
    return f"{begin}\n… ({len(spans) - kept:,} tokens were left out here) …\n{end}".strip()


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
