"""Reads what a handler returned, or says in one sentence what is wrong with it."""

from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from gristmill.errors import Permanent
from gristmill.queue.letters import FARTHEST, Envelope, dumped, jsonable
from gristmill.queue.outcome import BARE, Answer, Done, Skip, Snooze
from gristmill.queue.send import MAX_PAYLOAD

LONGEST = 80  # characters of what was returned that are shown


def read(answer: Any) -> Answer:
    """What a handler returned; a plain value is the result of a task that is done."""
    if answer is None or answer is BARE:
        return BARE
    if isinstance(answer, Done):
        return _done(answer)
    if isinstance(answer, Snooze):
        return _snooze(answer)
    if isinstance(answer, Skip):
        _expect(answer, isinstance(cast(Any, answer.reason), str), "its reason must be text")
        _expect_bonds(answer)
        return answer
    if isinstance(answer, type) and issubclass(answer, Done | Skip | Snooze):
        raise Permanent(
            f"the handler returned the class {answer.__name__}: return an object of it, {answer.__name__}(…)"
        )
    return Done(result=_kept(answer, answer))


def read_all(answers: Any, n: int, kind: str) -> Sequence[Any]:
    """The answers of a batch, one for each letter."""
    if not isinstance(answers, Sequence) or isinstance(answers, str | bytes):
        raise Permanent(f"the handler of {kind} returned {_shown(answers)}: a batch is answered with a list")
    found = cast(Sequence[Any], answers)
    expect_all(len(found), n, kind)
    return found


def expect_all(answered: int, n: int, kind: str) -> None:
    if answered != n:
        raise Permanent(f"the handler of {kind} answered {answered} of {n} letters: a batch is answered in full")


def read_placed(answer: Any, waiting: Container[int], kind: str) -> tuple[int, Any]:
    """One answer of a batch that is answered one by one."""
    match answer:
        case (int() as place, one) if place in waiting:
            return place, one
        case _:
            raise Permanent(
                f"the handler of {kind} yielded {_shown(answer)}: yield (place in the list, answer), each place once"
            )


def _done(answer: Done) -> Done:
    if answer.write is None and answer.result is None and answer.then == () and answer.seals == ():
        return BARE
    _expect_bonds(answer)
    return answer if answer.result is None else replace(answer, result=_kept(answer.result, answer))


def _expect_bonds(answer: Done | Skip) -> None:
    _expect(answer, answer.write is None or callable(answer.write), "its write must be a function of a transaction")
    _expect(answer, answer.then == () or _are_letters(answer.then), "its then must be a sequence of letters")


def _are_letters(then: Any) -> bool:
    return isinstance(then, Sequence) and not isinstance(then, str) and all(map(_is_letter, cast(Sequence[Any], then)))


def _snooze(answer: Snooze) -> Snooze:
    wait: Any = answer.wait
    _expect(answer, isinstance(wait, timedelta), "its wait must be a timedelta, such as timedelta(seconds=5)")
    _expect(answer, timedelta(0) <= wait <= FARTHEST, "its wait must be between nothing and ten years")
    _expect(answer, isinstance(cast(Any, answer.reason), str | None), "its reason must be text")
    return answer


def _is_letter(one: Any) -> bool:
    return isinstance(one, Envelope) or isinstance(getattr(one, "kind", None), str)


def _expect(answer: Any, fits: bool, sentence: str) -> None:
    if not fits:
        raise Permanent(f"the handler returned {_shown(answer)}: {sentence}")


def _kept(result: Any, answer: Any) -> Any:
    """A result as JSON, if it is of a size to keep with the task."""
    try:
        plain = jsonable(result)
        size = len(dumped(plain))
    except Exception as error:
        raise Permanent(f"the handler returned {_shown(answer)}, which cannot be kept as JSON: {error}") from error
    if size > MAX_PAYLOAD:
        raise Permanent(f"a result of {size:,} bytes is too large (limit {MAX_PAYLOAD:,}): write it and return its id")
    return plain


def _shown(answer: Any) -> str:
    try:
        text = repr(answer)
    except Exception:  # noqa: BLE001 anybody's code
        text = f"an object of {type(answer).__name__}"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
