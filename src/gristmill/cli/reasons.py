"""Why an item was decided so, for a terminal: the rules in order, and the text with their words marked."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from gristmill.cli.output import format_moment, to_plain
from gristmill.qualifier import Explanation, MarkedExcerpt

SMALL = str.maketrans("0123456789,", "⁰¹²³⁴⁵⁶⁷⁸⁹˒")
AUTHORS = {"rules": "rules", "convention": "a convention", "llm": "the LLM"}


def show_reasons(why: Explanation) -> RenderableType:
    """Sentences with their numbers, then the words, each with the numbers of the rules that went by it."""
    decision = why.decision
    warning = [Text(why.warning, style="yellow")] if why.warning else []
    if decision is None:
        return Group(*warning, Text(why.sentence))
    head = f"{decision.route.replace('_', ' ')}, {decision.urgency}"
    head += f", for {decision.assign}" if decision.assign else ""
    head += f", from {format_moment(decision.scheduled_at)}" if decision.scheduled_at else ""
    told = Text(f"Decided {format_moment(decision.decided_at)} by {AUTHORS[decision.author]}: {head}", style="bold")
    waits = [Text(why.waits)] if why.waits else []
    return Group(told, *warning, *waits, *_list_steps(why), *(_show_excerpt(one) for one in why.excerpts))


def _list_steps(why: Explanation) -> Iterator[Text]:
    for number, step in enumerate(why.steps, 1):
        line = Text(f"{number:>3}. {step.sentence}")
        for one in step.words:
            if one.start is None:
                line.append(f" {one.where}: ").append(f"»{one.words}«", style="yellow")
        yield line.append(f" ({step.rule})", style="dim")


def _show_excerpt(excerpt: MarkedExcerpt) -> Text:
    shown = Text("\n")
    shown.append("… " if excerpt.is_cut_before else "", style="dim")
    for piece in excerpt.pieces:
        if piece.steps:
            numbers = ",".join(map(str, piece.steps)).translate(SMALL)
            shown.append(f"»{piece.text}«{numbers}", style="yellow")
        else:
            shown.append(piece.text)
    return shown.append(" …" if excerpt.is_cut_after else "", style="dim")


def describe_reasons(why: Explanation) -> dict[str, Any]:
    """The same for programs."""
    decision = why.decision
    item = why.item
    told: dict[str, Any] = {"item": item.id, "state": item.state, "sentence": why.sentence, "waits": why.waits}
    told["warning"] = item.warning
    if decision is None:
        return told
    named = ("decided_at", "author", "route", "urgency", "deadline", "scheduled_at", "target", "assign", "inputs")
    return {**told, **{name: getattr(decision, name) for name in named}, "path": to_plain(why.steps)}
