"""Reads what a person says to an item as answers to the questions of its run: pure functions."""

import re
import unicodedata
from collections.abc import Collection, Container, Iterator, Sequence
from typing import NamedTuple

from gristmill.agents.runs import ItemsQuestion, Question
from gristmill.agents.showing import list_facts

NUMBERED = re.compile(r"^\s*(?:question\s+|#)?(\d+)\s*[:.)]\s*", re.IGNORECASE | re.MULTILINE)
# in English, German, Czech, Croatian, Spanish and French; each is one only if nothing else is said
YES = (
    *("yes", "y", "ok", "okay", "agreed", "ja", "einverstanden", "ano", "souhlasím", "da", "slažem se"),
    *("sí", "si", "de acuerdo", "oui", "d'accord"),
)
NO = ("no", "n", "nein", "ne", "nie", "nesouhlasím", "non")
THANKS = (
    *("please", "thanks", "thank you", "bitte", "danke", "prosím", "díky", "děkuji", "molim", "hvala"),
    *("por favor", "gracias", "s'il vous plaît", "s'il te plaît", "merci"),
)
AGREEING = ("approve", "commit", "use", "done", "accept")
REFUSING = ("refuse", "leave", "stay", "stop", "leave it out")
BINDING = (*AGREEING, "not_done")  # they let something happen, or say that it did: no words beside them
WORDED = ("change", "try again")  # they need words, and are asked about again
HEARD = ("", "approve", "commit", "use", "accept", "not_done", *WORDED)  # whose words may name what is acted on
COURTESY = re.compile(rf"[\s,.!]+(?:{'|'.join(map(re.escape, THANKS))})[\s.!]*", re.IGNORECASE)
BREAK = re.compile(r"\s*[:,;.!–—]|\s*\n|\s+-\s")


LONGEST_SHOWN = 12_000  # characters of a question that an item shows
LONGEST_BEGINNING = 300  # characters of a question that it does not show


class UserReply(NamedTuple):
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
    if not is_shown_whole(question):
        return explain_length(question)
    if not question.choices:
        return "\n".join([question.sentence, *list_facts(question)])
    shown = " / ".join(one.replace("_", " ") for one in question.choices)
    lines = [f"{question.sentence} ({shown})", *list_facts(question), explain_choices(question.choices)]
    return "\n".join(lines)


def is_shown_whole(question: Question) -> bool:
    """Whether an item has room for everything that a person must see before agreeing."""
    return len(question.sentence) + sum(len(line) for line in list_facts(question)) <= LONGEST_SHOWN


def explain_length(question: Question) -> str:
    """For a question that an item has no room for: where it is answered."""
    begun = " ".join(question.sentence.split())[:LONGEST_BEGINNING]
    return (
        f"{begun} … This question is too long to be shown here. "
        f"Read and answer it on the page /questions/{question.id}, "
        f"or with gristmill question show {question.id} and gristmill question answer {question.id}. "
        "An agreement that is given here does not count."
    )


def explain_choices(choices: Sequence[str]) -> str:
    """Which words are understood."""
    yes, no = _find_meant(AGREEING, choices), _find_meant(REFUSING, choices)
    named = [
        f"“{one.replace('_', ' ')}”{' or “yes”' if one == yes else ' or “no”' if one == no else ''}" for one in choices
    ]
    worded = [one.replace("_", " ") for one in choices if one not in BINDING]
    more = f" A reason may follow “{worded[0]}:”." if worded else ""
    return f"Answer with {', '.join(named)} and nothing else.{more} Any other words leave the question open."


def find_shown(questions: Sequence[Question], text: str) -> list[Question]:
    """The questions that an item asks in this text, of those of its run, the oldest first."""
    numbered = [one for one in questions if f"{one.id}: {_describe(one)}" in text]
    # a question that was asked before in the same words has its answer: the item shows the last one
    return numbered or [one for one in questions if text.endswith(_describe(one))][-1:]


def assign_answers(
    questions: Sequence[Question], text: str, *, asked: Sequence[Question] | None = None, numbers: Collection[int] = ()
) -> Iterator[UserReply]:
    """The answers in a text, each for the question whose number it begins with.

    `asked` were shown to the person last (none: all). Without a number an answer can only be meant for the only one
    that was, however many wait by now. `numbers` are those of other questions of the run: what begins with one belongs
    to no question that waits. What fits no question is left alone: the questions stay open, and are asked again.
    """
    known = {int(one.id): one for one in questions}
    asked = questions if asked is None else asked
    parts = _split(text, {*known, *numbers})
    if not (parts.keys() & known.keys() or _begins_with(text, numbers)):
        parts = {int(asked[0].id): text} if len(asked) == 1 else {}
    for number, words in parts.items():
        question = known.get(number)
        if question is None:
            continue
        if not question.choices:
            if words.strip():
                yield UserReply(question, None, words.strip())
        elif (found := read_choice(question.choices, words)) is not None and may_choose(question, found[0]):
            yield UserReply(question, *found)


def answers_by_number(questions: Sequence[Question | ItemsQuestion], text: str) -> bool:
    """Whether a text is nothing but answers with the numbers of these questions, also if they were answered before."""
    known = {int(one.id): one.choices for one in questions}
    if not _begins_with(text, known):
        return False
    parts = _split(text, set(known)).items()
    return all(not known[number] or read_choice(known[number], words) is not None for number, words in parts)


def _begins_with(text: str, numbers: Container[int]) -> bool:
    found = NUMBERED.match(text)
    return found is not None and int(found[1]) in numbers


def may_choose(question: Question, choice: str) -> bool:
    """At an item, nobody can agree to a question that the item could not show as a whole."""
    return choice not in BINDING or is_shown_whole(question)


def _split(text: str, numbers: set[int]) -> dict[int, str]:
    marks = [one for one in NUMBERED.finditer(text) if int(one[1]) in numbers]
    ends = [one.start() for one in marks[1:]] + [len(text)] * bool(marks)
    return {int(one[1]): text[one.end() : end] for one, end in zip(marks, ends, strict=True)}


def read_choice(choices: Sequence[str], text: str) -> tuple[str, str] | None:
    """The choice that an answer names, and the words behind it; None if it is not clearly one choice.

    A choice that lets something happen is made by its word alone: “yes, but …” is no yes. Words may follow a choice
    that lets nothing happen, after a colon or a comma.
    """
    text = unicodedata.normalize("NFC", text).replace("’", "'").strip()
    for word, choice in sorted(_list_words(choices), key=lambda one: -len(one[0])):
        begun = re.match(rf"{re.escape(word)}(?!\w)", text, re.IGNORECASE)
        if begun is not None:
            is_named = word == choice.replace("_", " ") or word == choice
            return _read_rest(choices, choice, text[begun.end() :], is_named=is_named)
    return None


def _list_words(choices: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Every word that stands for one of these choices."""
    for choice in choices:
        yield choice, choice
        yield choice.replace("_", " "), choice
    for words, meanings in ((YES, AGREEING), (NO, REFUSING)):
        if (meant := _find_meant(meanings, choices)) is not None:
            yield from ((word, meant) for word in words)


def _find_meant(meanings: Sequence[str], choices: Sequence[str]) -> str | None:
    """The choice that a plain yes, or a plain no, stands for."""
    if meanings is REFUSING and "not_done" in choices:
        return None  # “no” may mean that it was not done, which would do it again
    return next((one for one in meanings if one in choices), None)


def _read_rest(choices: Sequence[str], choice: str, rest: str, *, is_named: bool) -> tuple[str, str] | None:
    words = rest.strip(" \t\n:,;.!-–—")
    if rest.strip() in ("", ".") or not rest.strip().strip("!") or COURTESY.fullmatch(rest):
        return choice, words
    if choice in BINDING:
        return None
    if choice in WORDED:
        return choice, words
    may_change = any(one in WORDED for one in choices)  # “no, smaller” may ask for something else instead
    return (choice, words) if BREAK.match(rest) and words and (is_named or not may_change) else None
