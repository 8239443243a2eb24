"""Reads what a person says to an item as answers to the questions of its run: pure functions."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gristmill.agents.runs import Question

NUMBERED = re.compile(r"^\s*(?:question\s+|#)?(\d+)\s*[:.)]\s*", re.IGNORECASE | re.MULTILINE)
YES = frozenset(["yes", "y", "ok", "okay", "ja", "oui", "sí", "si", "ano", "da", "tak", "approve", "agreed"])
NO = frozenset(["no", "n", "nein", "non", "ne", "nie", "refuse"])
AGREEING = ("approve", "commit", "use", "done")
REFUSING = ("refuse", "leave", "stay", "stop", "not_done")


class Reply(NamedTuple):
    """An answer and the question that it belongs to."""

    question: Question
    choice: str | None
    words: str


def describe_questions(questions: Sequence[Question]) -> str:
    """What the item asks; several questions have their numbers, by which they are answered."""
    if len(questions) == 1:
        return _describe(questions[0])
    listed = "\n\n".join(f"{one.id}: {_describe(one)}" for one in questions)
    return f"{listed}\n\nBegin each answer with the number of its question, for example “{questions[0].id}: …”."


def _describe(question: Question) -> str:
    choices = f" ({' / '.join(question.choices)})" if question.choices else ""
    return f"{question.sentence}{choices}"


def assign_answers(questions: Sequence[Question], text: str) -> Iterator[Reply]:
    """The answers in a text, each for the question whose number it begins with.

    Without a number it can only be meant for the only question that waits. What fits no question is left alone: the
    questions stay open, and are asked again.
    """
    known = {one.id: one for one in questions}
    parts = _split(text, {int(one) for one in known})
    if not parts and len(questions) == 1:
        parts = {int(questions[0].id): text}
    for number, words in parts.items():
        question = next(one for id_, one in known.items() if int(id_) == number)
        if not question.choices:
            if words.strip():
                yield Reply(question, None, words.strip())
        elif (found := read_choice(question.choices, words)) is not None:
            yield Reply(question, *found)


def _split(text: str, numbers: set[int]) -> dict[int, str]:
    marks = [one for one in NUMBERED.finditer(text) if int(one[1]) in numbers]
    ends = [one.start() for one in marks[1:]] + [len(text)] * bool(marks)
    return {int(one[1]): text[one.end() : end] for one, end in zip(marks, ends, strict=True)}


def read_choice(choices: Sequence[str], text: str) -> tuple[str, str] | None:
    """The choice that an answer begins with, and the words behind it; a plain yes or no is one, too."""
    first, _, rest = text.strip().partition("\n")
    word, _, more = first.strip().partition(" ")
    plain = word.strip(".,;:!").casefold()
    words = f"{more}\n{rest}".strip()
    if plain in choices:
        return plain, words
    meant = AGREEING if plain in YES else REFUSING if plain in NO else ()
    found = next((one for one in meant if one in choices), None)
    return (found, words) if found else None
