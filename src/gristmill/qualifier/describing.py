"""What a family of documents is as an item: its type, its title, its date, and what is known beside its words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time
from email.utils import getaddresses
from typing import Any, cast

from gristmill.documents import Family, FamilyMember
from gristmill.ids import ScopeId
from gristmill.models import About, read_facts
from gristmill.qualifier.model import SAME_ID, TYPES, ItemType

SHORT = 12  # characters of a digest that tell two mails with one id apart
NOON = time(12)  # of a day whose hour nobody knows
MAIL = "mail"  # the type of a document that is a mail …
SUFFIX = ".eml"  # … and how its name ends
BY_DOCUMENT: dict[str, ItemType] = {MAIL: "email", "transcript": "meeting"}
NESTED = ("issue", "commit", "page")  # where sources of tickets, commits and pages put what they know
KEPT_FIELDS = ("assignee", "assignees", "state", "status", "due", "priority", "reporter", "labels", "branch", "key")
FIELDS = {"assignees": "assignee"}
AUTHORS = ("author", "reporter", "organizer", "editor")
PRESENT = ("attendees", "speakers")


@dataclass(frozen=True)
class Arrival:
    """A family of documents that came in."""

    family: Family
    type: ItemType
    title: str
    written_at: datetime
    note: Mapping[str, Any]
    message: str | None = None  # of a mail: its id
    answers: Sequence[str] = field(default_factory=tuple[str, ...])  # and those of the mails before it
    said_id: str | None = None  # of a mail: the id that it says, even if another mail has it
    digest: str | None = None  # of a mail: of what a person sees of it
    is_double: bool = False  # another mail with this id came before it, and says something else

    @property
    def scope(self) -> ScopeId:
        return self.family.root.scope

    @property
    def urn(self) -> str:
        return self.family.root.urn

    @property
    def is_mail(self) -> bool:
        return self.message is not None

    @property
    def extent(self) -> str:
        """Which documents, and how many pages of each, a decision about it knows."""
        return ",".join(f"{one.id}:{one.pages}" for one in sorted(self.family.members, key=lambda one: one.id))

    @property
    def warning(self) -> str | None:
        """What is missing of it, or doubtful about it, in a sentence or two."""
        return " ".join(filter(None, [SAME_ID if self.is_double else "", self._find_missing()])) or None

    def _find_missing(self) -> str:
        if self.family.is_closed:
            return f"It could not be read: {(self.family.root.error or 'nobody knows why').rstrip('.')}."
        missing = [one for one in self.family.members if one.state != "read"]
        if not missing:
            return ""
        reason = missing[0].error or "it was not read in time"
        more = f" (and {len(missing) - 1} more)" if len(missing) > 1 else ""
        return f"Not all of it could be read: {missing[0].name}{more}: {reason.rstrip('.')}."


def is_workless(family: Family) -> bool:
    """Whether it could not be opened, and is no mail: nobody knows what it is, and whoever brought it sees the error.

    A mail was written to us. If it cannot be opened, a person must hear of it all the same.
    """
    return family.is_closed and not _is_mail(family.root)


def _is_mail(root: FamilyMember) -> bool:
    return root.type == MAIL or (root.type is None and find_type(root) == "email")


def describe_family(family: Family) -> Arrival:
    root = family.root
    is_mail = _is_mail(root)
    return Arrival(
        family,
        find_type(root),
        root.title or (root.name.removesuffix(SUFFIX) if is_mail else root.name),
        root.written_at or _read_own_date(root.title or "", root.added_at) or root.added_at,
        _note_mail(root) if is_mail else _note_file(root),
        find_message_id(root) if is_mail else None,
        find_answers(root) if is_mail else (),
        str(root.meta.get("same_id_as") or find_message_id(root)) if is_mail else None,
        str(root.meta.get("digest") or "") or None if is_mail else None,
    )


def mark_double(arrival: Arrival) -> Arrival:
    """It is a mail of its own, and of no thread: neither the other mail nor its thread is touched by it."""
    assert arrival.digest is not None, "it is told apart by its digest"
    own = f"{arrival.said_id}::{arrival.digest[:SHORT]}"
    note = {**arrival.note, "same_id_as": arrival.said_id}
    return replace(arrival, message=own, answers=(), note=note, is_double=True)


def find_type(root: FamilyMember) -> ItemType:
    """As its source says, or by what it is; where nobody could look, by its name."""
    said = root.meta.get("item")
    if said in TYPES:
        return said
    if root.type is None and root.name.lower().endswith(SUFFIX):
        return "email"
    return BY_DOCUMENT.get(root.type or "", "document")


def find_message_id(root: FamilyMember) -> str:
    """As sources write it, without brackets; a mail without one is a thread of its own."""
    said = str(root.meta.get("message_id") or "")
    return said.strip().strip("<>").strip() or root.urn.removeprefix("email::")


def find_answers(root: FamilyMember) -> tuple[str, ...]:
    said = [str(root.meta.get("in_reply_to") or ""), *map(str, _list(root.meta.get("references")))]
    found = (word.strip("<>,") for one in said for word in one.split())
    return tuple(dict.fromkeys(one for one in found if one))


def _note_mail(root: FamilyMember) -> dict[str, Any]:
    meta = root.meta
    senders = list(map(str, _list(meta.get("from"))))
    recipients = [*map(str, _list(meta.get("to"))), *map(str, _list(meta.get("cc")))]
    note = {
        "subject": str(meta.get("subject") or root.title or root.name.removesuffix(SUFFIX)),
        "sender": senders[0] if senders else "",
        "recipients": recipients,
        "headers": _mapping(meta.get("headers")),
        "folder": meta.get("folder"),
        "source": meta.get("source"),
    }
    return {name: value for name, value in note.items() if value}


def _note_file(root: FamilyMember) -> dict[str, Any]:
    """Of a ticket its fields; of a meeting who was there; of a commit or a page who wrote it."""
    nested = next((name for name in NESTED if root.meta.get(name)), "")
    said = {**root.meta, **_mapping(root.meta.get(nested))}
    sender = next((name for field in AUTHORS for name in name_people(said.get(field))), "")
    fields = {FIELDS.get(name, name): ", ".join(name_people(said[name])) for name in KEPT_FIELDS if said.get(name)}
    note = {
        "subject": root.title or root.name,
        "sender": sender,
        "recipients": [name for field in PRESENT for name in name_people(said.get(field))],
        "fields": fields,
        "folder": root.meta.get("folder"),
        "source": root.meta.get("source"),
    }
    return {name: value for name, value in note.items() if value}


def name_people(said: Any) -> list[str]:
    """Names, or names with addresses, however the source writes them: a text, a list of texts, a list of pairs."""
    return [_name_person(one) for one in _list(said) if one]


def _name_person(said: Any) -> str:
    if not isinstance(said, list):
        return str(said)
    name, address, *_ = [*map(str, cast(list[Any], said)), "", ""]
    return f"{name} <{address}>" if address else name


def find_addresses(said: Sequence[str]) -> list[str]:
    """The bare addresses of people, in small letters."""
    return [address.casefold() for _, address in getaddresses(list(said)) if address]


def _list(value: Any) -> list[Any]:
    if value is None or value == "":
        return []
    return cast(list[Any], value) if isinstance(value, list) else [value]


def _mapping(value: Any) -> dict[str, Any]:
    return {str(name): said for name, said in cast(dict[Any, Any], value).items()} if isinstance(value, dict) else {}


def _read_own_date(title: str, added_at: datetime) -> datetime | None:
    """The day that a title names with its year: `Site meeting, 26 May 2026` is counted from that day."""
    dates = read_facts(title, About(added_at)).dates
    past = [one.day for one in dates if str(one.day.year) in one.evidence.words and one.day <= added_at.date()]
    return datetime.combine(past[0], NOON, UTC) if past else None
