"""Reads the value that a handler returned, or says in one sentence what is wrong with it."""

from collections.abc import Container, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

from gristmill.errors import Permanent
from gristmill.queue.letters import FARTHEST, Envelope, to_json, to_plain
from gristmill.queue.outcome import BARE, Answer, Done, Skip, Snooze
from gristmill.queue.send import MAX_PAYLOAD

LONGEST = 80  # characters of what was returned that are shown


def read_answer(answer: Any) -> Answer:
    """What a handler returned; a plain value is the result of a task that is done."""
    if answer is None or answer is BARE:
        return BARE
    if isinstance(answer, Done):
        return _check_done(answer)
    if isinstance(answer, Snooze):
        return _check_snooze(answer)
    if isinstance(answer, Skip):
        _expect(answer, isinstance(cast(Any, answer.reason), str), "its reason must be text")
        _check_bonds(answer)
        return answer
    if isinstance(answer, type) and issubclass(answer, Done | Skip | Snooze):
        raise Permanent(
            f"the handler returned the class {answer.__name__}: return an object of it, {answer.__name__}(…)"
        )
    return Done(result=_to_result(answer, answer))


def read_batch(answers: Any, n: int, kind: str) -> Sequence[Any]:
    """The answers of a batch, one for each letter."""
    if not isinstance(answers, Sequence) or isinstance(answers, str | bytes):
        raise Permanent(f"the handler of {kind} returned {_show(answers)}: a batch is answered with a list")
    found = cast(Sequence[Any], answers)
    check_all_answered(len(found), n, kind)
    return found


def check_all_answered(answered: int, n: int, kind: str) -> None:
    if answered != n:
        raise Permanent(f"the handler of {kind} answered {answered} of {n} letters: a batch is answered in full")


def read_placed_answer(answer: Any, waiting: Container[int], kind: str) -> tuple[int, Any]:
    """One answer of a batch that is answered one by one."""
    match answer:
        case (int() as place, one) if place in waiting:
            return place, one
        case _:
            raise Permanent(
                f"the handler of {kind} yielded {_show(answer)}: yield (place in the list, answer), each place once"
            )


def _check_done(answer: Done) -> Done:
    if answer.write is None and answer.result is None and answer.then == () and answer.seals == ():
        return BARE
    _check_bonds(answer)
    return answer if answer.result is None else replace(answer, result=_to_result(answer.result, answer))


def _check_bonds(answer: Done | Skip) -> None:
    _expect(answer, answer.write is None or callable(answer.write), "its write must be a function of a transaction")
    _expect(answer, answer.then == () or _are_letters(answer.then), "its then must be a sequence of letters")


def _are_letters(then: Any) -> bool:
    return isinstance(then, Sequence) and not isinstance(then, str) and all(map(_is_letter, cast(Sequence[Any], then)))


def _check_snooze(answer: Snooze) -> Snooze:
    wait: Any = answer.wait
    _expect(answer, isinstance(wait, timedelta), "its wait must be a timedelta, such as timedelta(seconds=5)")
    _expect(answer, timedelta(0) <= wait <= FARTHEST, "its wait must be between nothing and ten years")
    _expect(answer, isinstance(cast(Any, answer.reason), str | None), "its reason must be text")
    return answer


def _is_letter(one: Any) -> bool:
    return isinstance(one, Envelope) or isinstance(getattr(one, "kind", None), str)


def _expect(answer: Any, fits: bool, sentence: str) -> None:
    if not fits:
        raise Permanent(f"the handler returned {_show(answer)}: {sentence}")


def _to_result(result: Any, answer: Any) -> Any:
    """A result as JSON, if it is of a size to keep with the task."""
    try:
        plain = to_plain(result)
        size = len(to_json(plain))
    except Exception as error:
        raise Permanent(f"the handler returned {_show(answer)}, which cannot be kept as JSON: {error}") from error
    if size > MAX_PAYLOAD:
        raise Permanent(f"a result of {size:,} bytes is too large (limit {MAX_PAYLOAD:,}): write it and return its id")
    return plain


def _show(answer: Any) -> str:
    try:
        text = repr(answer)
    except Exception:  # noqa: BLE001 repr() may raise anything
        text = f"an object of {type(answer).__name__}"
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
