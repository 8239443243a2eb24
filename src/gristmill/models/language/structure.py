"""Finds values that have the same shape in every language: ids, addresses, URLs, amounts, dates, headers of mails."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from email.utils import getaddresses, parsedate_to_datetime
from typing import Any, cast

from gristmill.models.language.amounts import find_amounts, format_amount
from gristmill.models.language.entities import ExtractionBuilder
from gristmill.models.language.ibans import find_ibans
from gristmill.models.language.months import DATE, MONTHS

MOST_RECIPIENTS = 50  # of one mail; a newsletter names thousands


@dataclass(frozen=True, slots=True)
class Mention:
    """A name or a value, and its place in the text."""

    start: int
    stop: int
    namespace: str
    name: str  # normalised: the key is made of it
    written: str  # as the text writes it


VALUES = frozenset({"amount", "date", "phone", "iban", "url", "address"})  # these describe other entities


def is_value(key: str) -> bool:
    return key.partition("::")[0] in VALUES


NO_ID = frozenset({"COVID", "UTF", "ISO", "SHA", "MD", "AES", "HTTP", "PDF", "UTC", "GMT", "CP", "PP", "VOL", "FIG"})
NUMBERED = (
    r"invoice|contract|order|ticket|case|agreement|receipt|customer|project|rechnung|vertrag|auftrag|kunden|faktura|"
    r"smlouva|objednávka"
)

URL = re.compile(r"\bhttps?://[^\s<>\"'`|\\^{}\[\]()]+(?:\([^\s()]*\)[^\s<>\"'`|\\^{}\[\]()]*)*", re.IGNORECASE)
ADDRESS = re.compile(r"(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}(?![\w-])")
ID = re.compile(r"(?<![\w/.-])([A-Z][A-Z0-9]{1,9})-(\d{1,10}(?:[-/]\d{1,10}){0,3})(?![\w-])")
LABELLED = re.compile(
    rf"\b({NUMBERED})\s*(?:no\.?|nr\.?|number|nummer|num\.?|č\.|číslo|id|#)\s*[:#]?\s*([A-Z0-9][A-Z0-9/.-]{{0,30}}\d)\b",
    re.IGNORECASE,
)
PHONE = re.compile(r"(?<![\w+])\+[1-9]\d{0,2}[ ./-]?(?:\(0?\d{1,5}\)[ ./-]?)?\d{1,5}(?:[ ./-]?\d{2,5}){1,5}(?!\w)")


def find_shapes(text: str) -> list[Mention]:
    """All values in the order of the text; if two overlap, the more specific one."""
    taken: list[Mention] = []
    for finder in FINDERS:
        for found in finder(text):
            if all(found.stop <= one.start or one.stop <= found.start for one in taken):
                taken.append(found)
    return sorted(taken, key=lambda one: one.start)


def _find_urls(text: str) -> Iterator[Mention]:
    for match in URL.finditer(text):
        written = match[0].rstrip(".,;:!?*_")
        scheme, _, rest = written.partition("://")
        host, slash, path = rest.partition("/")
        if "." in host or ":" in host or host == "localhost":
            name = f"{scheme.lower()}://{host.lower()}{slash}{path}".rstrip("/")
            yield Mention(match.start(), match.start() + len(written), "url", name, written)


def _find_addresses(text: str) -> Iterator[Mention]:
    for match in ADDRESS.finditer(text):
        yield Mention(match.start(), match.end(), "address", match[0].rstrip(".-"), match[0])


def _find_ibans(text: str) -> Iterator[Mention]:
    for start, stop, number in find_ibans(text):
        yield Mention(start, stop, "iban", number, text[start:stop])


def _find_ids(text: str) -> Iterator[Mention]:
    for match in LABELLED.finditer(text):
        shaped = ID.fullmatch(match[2])  # "Invoice No. INV-2024-001" is the same as INV-2024-001
        yield Mention(match.start(2), match.end(2), "id" if shaped else match[1].lower(), match[2], match[2])
    for match in ID.finditer(text):
        if match[1] not in NO_ID:
            yield Mention(match.start(), match.end(), "id", match[0], match[0])


def _find_dates(text: str) -> Iterator[Mention]:
    for match in DATE.finditer(text):
        if when := _format_date(match):
            yield Mention(match.start(), match.end(), "date", when, match[0])


def _format_date(match: re.Match[str]) -> str:
    """2024-03-01; empty for a day that the calendar does not have, or that could be either of two."""
    part = match.groupdict()
    if part["y4"]:
        return f"{part['y4']}-{MONTHS[part['n4'].lower()]:02}"
    if part["y6"]:
        first, second = int(part["a6"]), int(part["b6"])
        if first <= 12 and second <= 12 and first != second:
            return ""
        day, month = (first, second) if first > 12 else (second, first)
        year = part["y6"]
    else:
        year = part["y1"] or part["y2"] or part["y3"] or part["y5"]
        day = int(part["d1"] or part["d2"] or part["d3"] or part["d5"])
        named = part["n2"] or part["n3"]
        month = MONTHS[named.lower()] if named else int(part["m1"] or part["m5"])
    try:
        return date(int(year), month, day).isoformat()
    except ValueError:
        return ""


def _find_amounts(text: str) -> Iterator[Mention]:
    for one in find_amounts(text):
        name = f"{format_amount(one.value)} {one.currency}"
        yield Mention(one.start, one.stop, "amount", name, text[one.start : one.stop])


def _find_phones(text: str) -> Iterator[Mention]:
    for match in PHONE.finditer(text):
        digits = re.sub(r"\(0\)|\D", "", match[0])
        if 8 <= len(digits) <= 15:
            yield Mention(match.start(), match.end(), "phone", f"+{digits}", match[0])


FINDERS: tuple[Callable[[str], Iterator[Mention]], ...] = (
    _find_urls,
    _find_addresses,
    _find_ibans,
    _find_dates,
    _find_amounts,
    _find_ids,
    _find_phones,
)


# --- the headers of a mail


def add_mail(context: Mapping[str, Any], into: ExtractionBuilder) -> str:
    """Add a mail with its sender, recipients, date and the mail it answers; return its key, empty if it is no mail."""
    header = _read_headers(context)
    message = header.get("message_id", [""])[0].strip("<> \t")
    if not message:
        return ""
    subject = " ".join(header.get("subject", [""])[0].split())
    key = into.add_entity("email", message, written=subject or message)
    for person in _add_people(header.get("from", []), into):
        into.add_relation(person, "SENT", key)
    for name, type in (("to", "SENT_TO"), ("cc", "COPIED_TO")):
        for person in _add_people(header.get(name, []), into):
            into.add_relation(key, type, person)
    for other in header.get("in_reply_to", [])[:1]:
        answered = re.search(r"<([^<>\s]+)>", other)
        into.add_relation(
            key, "REPLIES_TO", into.add_entity("email", answered[1] if answered else other.strip("<> \t"))
        )
    if when := _format_day(header.get("date", [""])[0]):
        into.add_relation(key, "DATED", into.add_entity("date", when))
    for found in find_shapes(subject):
        into.add_relation(key, "MENTIONS", into.add_entity(found.namespace, found.name, written=found.written))
    return key


def _read_headers(context: Mapping[str, Any]) -> dict[str, list[str]]:
    """The headers by normalised names, however the reader spelt them: Message-ID, message_id; one value or several."""
    flat = {**context, **cast(Mapping[str, Any], context.get("meta") or {})}
    headers: dict[str, list[str]] = {}
    for name, value in flat.items():
        values = cast(list[Any], value) if isinstance(value, list | tuple) else [value]
        headers[name.lower().replace("-", "_")] = [one for one in values if isinstance(one, str) and one.strip()]
    return {name: values for name, values in headers.items() if values}


def _add_people(values: list[str], into: ExtractionBuilder) -> Iterator[str]:
    """Add each address and the person it belongs to; yield the person, or the bare address if no name is given."""
    for name, address in getaddresses(values)[:MOST_RECIPIENTS]:
        if "@" not in address:
            continue
        written = into.add_entity("address", address)
        name = name.strip("\"' ")
        if "," in name and name.count(",") == 1:  # Doe, Jane
            name = " ".join(part.strip() for part in reversed(name.split(",")))
        if name and "@" not in name:
            person = into.add_entity("person", name)
            into.add_relation(person, "HAS_ADDRESS", written)
            yield person
        else:
            yield written


def _format_day(text: str) -> str:
    if iso := re.match(r"\d{4}-\d\d-\d\d", text):
        return iso[0]
    try:
        return parsedate_to_datetime(text).date().isoformat()
    except (ValueError, TypeError, IndexError):
        return ""


# --- the facts of a commit

FILE_VERBS = {"created": "CREATES", "modified": "MODIFIES", "deleted": "DELETES", "renamed": "RENAMES"}


def add_commit(context: Mapping[str, Any], into: ExtractionBuilder) -> str:
    """Add a commit with its author, files, parents, branch and issues; return its key, empty if it is no commit."""
    facts = _read_facts(context, "commit")
    if not facts:
        return ""
    project = str(facts.get("project", ""))
    key = into.add_entity("commit", f"{facts.get('hash', '')}::{project}", written=str(facts.get("subject", "")))
    name = str(facts.get("author", "")).replace('"', " ")
    author = f'"{name}" <{facts.get("author_mail", "")}>'
    for person in _add_people([author], into):
        into.add_relation(person, "AUTHORED", key)
    for parent in cast(list[str], facts.get("parents", [])):
        into.add_relation(key, "HAS_PARENT", into.add_entity("commit", f"{parent}::{project}"))
    for branch in cast(list[str], facts.get("branches") or filter(None, [facts.get("branch")])):
        into.add_relation(key, "ON_BRANCH", into.add_entity("branch", f"{project}/{branch}", written=branch))
    for status, path, before in cast(list[tuple[str, str, str | None]], facts.get("files", [])):
        file = into.add_entity("file", f"{project}/{path}", written=path)
        into.add_relation(key, FILE_VERBS.get(status, "MODIFIES"), file)
        if before:
            into.add_relation(file, "RENAMED_FROM", into.add_entity("file", f"{project}/{before}", written=before))
    for issue in cast(list[str], facts.get("keys", [])):
        into.add_relation(key, "MENTIONS", _add_issue_key(issue, into))
    return key


def _read_facts(context: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What a source found out about a document; empty if it is something else."""
    meta = cast(Mapping[str, Any], context.get("meta") or {})
    facts = meta.get(name)
    return cast(Mapping[str, Any], facts) if isinstance(facts, Mapping) else {}


def _add_issue_key(issue: str, into: ExtractionBuilder, written: str | None = None) -> str:
    """`PROJ-1` is the id that texts name; `mill#1` and `mill!1` are issues and merge requests of a project."""
    return into.add_entity("issue" if "#" in issue or "!" in issue else "id", issue, written=written)


# --- the facts of an issue

OTHERS_ROLES = (("reporter", "REPORTED"), ("commenters", "COMMENTED_ON"))  # what people did to it


def add_issue(context: Mapping[str, Any], into: ExtractionBuilder) -> str:
    """Add an issue with its people, labels, project, branches, commits and other issues; return its key, or nothing."""
    facts = _read_facts(context, "issue")
    if not facts:
        return ""
    name, project = str(facts.get("key", "")), str(facts.get("project", ""))
    key = _add_issue_key(name, into, f"{name}: {facts.get('title', '')}")
    into.add_relation(key, "IN_PROJECT", into.add_entity("project", project))
    for role, verb in OTHERS_ROLES:
        for person in _add_named(facts.get(role), into):
            into.add_relation(person, verb, key)
    for person in _add_named(facts.get("assignees"), into):
        into.add_relation(key, "ASSIGNED_TO", person)
    _add_labels(facts, key, into)
    for verb, other in cast(list[tuple[str, str]], facts.get("relations", [])):
        into.add_relation(key, verb, _add_issue_key(other, into))
    for other in cast(list[str], facts.get("mentions", [])):
        into.add_relation(key, "MENTIONS", _add_issue_key(other, into))
    for commit in cast(list[str], facts.get("commits", [])):
        into.add_relation(key, "MENTIONS", into.add_entity("commit", f"{commit}::{project}"))
    for branch in cast(list[str], facts.get("branches", [])):
        into.add_relation(key, "ON_BRANCH", into.add_entity("branch", f"{project}/{branch}", written=branch))
    return key


def _add_named(people: Any, into: ExtractionBuilder) -> Iterator[str]:
    """Add people by their names, with their addresses where these are told."""
    for name, address in cast(list[tuple[str, str]], people or []):
        person = into.add_entity("person", name)
        if "@" in address:
            into.add_relation(person, "HAS_ADDRESS", into.add_entity("address", address))
        yield person


def _add_labels(facts: Mapping[str, Any], key: str, into: ExtractionBuilder) -> None:
    for label in cast(list[str], facts.get("labels", [])):
        into.add_relation(key, "HAS_LABEL", into.add_entity("label", label))


# --- the facts of a page of a wiki, and of a file that belongs to one


def add_page(context: Mapping[str, Any], into: ExtractionBuilder) -> str:
    """Add a page with its space, parent, people and labels, or a file or a comment with what it hangs on.

    Return its key, or nothing.
    """
    if facts := _read_facts(context, "page"):
        key = _add_wiki_page(str(facts.get("id", "")), str(facts.get("title", "")), into)
        into.add_relation(key, "IN_SPACE", into.add_entity("space", str(facts.get("space", ""))))
        if parent := str(facts.get("parent", "")):
            into.add_relation(key, "CHILD_OF", _add_wiki_page(parent, str(facts.get("parent_title", "")), into))
        for role, verb in (("author", "AUTHORED"), ("editor", "EDITED")):
            into.add_relation(into.add_entity("person", str(facts.get(role, ""))), verb, key)
        _add_labels(facts, key, into)
        return key
    if (facts := _read_facts(context, "attachment")) and facts.get("issue"):
        issue, name = str(facts["issue"]), str(facts.get("name", ""))
        key = into.add_entity("file", f"{issue}/{facts.get('id', '')}/{name}", written=name)
        into.add_relation(key, "ATTACHED_TO", _add_issue_key(issue, into))
        return key
    if facts:
        place = f"{facts.get('space', '')}/{facts.get('page', '')}/{facts.get('name', '')}"
        key = into.add_entity("file", place, written=str(facts.get("name", "")))
        page = _add_wiki_page(str(facts.get("page", "")), str(facts.get("page_title", "")), into)
        into.add_relation(key, "ATTACHED_TO", page)
        return key
    if facts := _read_facts(context, "comment"):
        page = _add_wiki_page(str(facts.get("page", "")), str(facts.get("page_title", "")), into)
        into.add_relation(into.add_entity("person", str(facts.get("author", ""))), "COMMENTED_ON", page)
        return page
    return ""


def _add_wiki_page(id_: str, title: str, into: ExtractionBuilder) -> str:
    return into.add_entity("confluence", id_, written=title or None)


# --- the links of an item

MOST_LINKS = 200


def add_links(context: Mapping[str, Any], item: str, into: ExtractionBuilder) -> None:
    """Add the links that were found in an item, each with an edge to it; `item` is its key, if it has one already."""
    found = _read_facts(context, "links")
    if not found:
        return
    kind, _, name = str(found.get("in", "")).partition("::")  # its URN: wiki::space/page, meeting::4711
    place = item or into.add_entity(kind, name, written=str(context.get("title") or name))
    for url in cast(list[str], found.get("urls", []))[:MOST_LINKS]:
        into.add_relation(into.add_entity("url", url), "FOUND_IN", place)
