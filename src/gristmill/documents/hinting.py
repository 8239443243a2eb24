"""The neutral hints of a text that a program hands over: what it asks, of whom and until when, with the words."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from gristmill.documents.letters import IngestText
from gristmill.documents.reading import find_new_spans
from gristmill.models import About, ClientIdentity, Hint, Hints, TextEvidence, make_hints, read_facts

GAP = "\n\n"  # between title and text
SENDERS = ("sender", "from")
RECIPIENTS = ("recipients", "to", "cc")
QUOTING = ("email", "mail")  # types whose texts quote older ones


def find_hints(letter: IngestText) -> dict[str, Any]:
    """The five hints, each with its value and the words it was taken from; they say nothing about where a text goes."""
    about = describe_text(letter)
    title = "" if letter.title == letter.urn[:300] else letter.title
    text = f"{title}{GAP}{letter.content}"
    begins = len(title) + len(GAP)
    hints = make_hints(read_facts(text, about, new=_find_new(letter, begins)), about)
    return write_hints(hints, begins)


def describe_text(letter: IngestText) -> About:
    """What the caller says beside the text: from whom, to whom, and who “we” are."""
    said = letter.metadata
    return About(
        written_at=datetime.fromisoformat(letter.counted_from),
        type="email" if letter.type in QUOTING else letter.type,
        subject=letter.title,
        sender=next((str(said[name]) for name in SENDERS if said.get(name)), ""),
        recipients=tuple(one for name in RECIPIENTS for one in _list_texts(said.get(name))),
        headers={name.lower(): value for name, value in _read_pairs(said.get("headers")).items()},
        fields=_read_pairs(said.get("fields")),
        me=ClientIdentity(tuple(letter.names), tuple(letter.addresses)),
    )


def _list_texts(value: Any) -> list[str]:
    if not value:
        return []
    return [str(one) for one in cast(list[Any], value)] if isinstance(value, list) else [str(value)]


def _read_pairs(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {str(name): str(one) for name, one in cast(Mapping[Any, Any], value).items()}


def _find_new(letter: IngestText, begins: int) -> Sequence[tuple[int, int]] | None:
    """The parts that are not quoted from an older mail; the title is always new."""
    if letter.type not in QUOTING:
        return None
    return [(0, begins), *((begins + start, begins + stop) for start, stop in find_new_spans(letter.content))]


def write_hints(hints: Hints, begins: int) -> dict[str, Any]:
    """As the answer has them; offsets are characters of the text that the caller gave."""
    return {
        "hasActionableContent": _write(hints.has_actionable_content, begins),
        "isAssignedToMe": _write(hints.is_assigned_to_me, begins),
        "hasFutureDeadline": _write(hints.has_future_deadline, begins),
        "suggestedDeadline": _write(hints.suggested_deadline, begins),
        "urgency": _write(hints.urgency, begins),
    }


def _write(hint: Hint[Any], begins: int) -> dict[str, Any]:
    value = hint.value.isoformat() if isinstance(hint.value, datetime) else hint.value
    return {"value": value, "evidence": [_place(one, begins) for one in hint.evidence if one.words]}


def _place(one: TextEvidence, begins: int) -> dict[str, Any]:
    in_title = one.start < begins
    shift = 0 if in_title else begins
    return {
        "words": one.words,
        "where": "title" if in_title else "content",
        "start": one.start - shift,
        "stop": one.stop - shift,
    }
