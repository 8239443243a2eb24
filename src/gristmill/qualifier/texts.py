"""The words of items: the subject, the body without its head, then each attachment after a line with its name."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import NamedTuple

from gristmill.db import Tx, queries
from gristmill.documents import Family, FamilyMember, find_families, find_new_spans
from gristmill.ids import DocumentId, WorkItemId
from gristmill.qualifier.describing import MAIL, describe_family, find_type
from gristmill.qualifier.model import ItemText, TextPart, WorkItem
from gristmill.qualifier.store import load_items

SQL = queries("gristmill.qualifier", "texts.sql")
MOST_PAGES = 200  # of one document that are read for a decision
MOST_CHARACTERS = 300_000  # of one item
HEAD = re.compile(
    r"(?:\*\*(?:From|To|Cc|Date|Subject|Attachments):\*\* [^\n]*\n)+\n*"
)  # as the reader of mails writes it
FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})([^\n`]*)$", re.MULTILINE)
GAP = "\n\n"


class _PageRow(NamedTuple):
    document: DocumentId
    number: int
    text: str


@dataclass
class _Composer:
    """Puts pages together, and remembers where each of them stands."""

    pieces: list[str] = field(default_factory=list[str])
    new: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    parts: list[TextPart] = field(default_factory=list[TextPart])
    file_names: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    length: int = 0

    def add(self, text: str) -> int:
        """Where it begins."""
        start = self.length
        self.pieces.append(text)
        self.length += len(text)
        return start

    def add_new(self, text: str, *, is_file_name: bool = False) -> None:
        start = self.add(text)
        self.new.append((start, self.length))
        if is_file_name:
            self.file_names.append((start, self.length))

    def add_pages(self, member: FamilyMember, pages: Sequence[_PageRow]) -> None:
        """The pages of a document: of a mail, what it does not quote is new; of anything else, what is no code."""
        begin = self.length
        for page in pages:
            offset = _skip_head(page.text) if member.type == MAIL and page.number == 1 else 0
            room = MOST_CHARACTERS - self.length
            if room <= 0:
                break
            start = self.add(page.text[offset : offset + room])
            self.parts.append(TextPart(member.id, member.name, page.number, start, self.length, offset))
            self.add("\n")
        body = "".join(self.pieces)[begin:]
        spans = find_new_spans(body) if member.type == MAIL else find_prose(body)
        self.new += [(begin + start, begin + stop) for start, stop in spans]


def find_prose(text: str) -> list[tuple[int, int]]:
    """The spans outside blocks of code: the lines of a diff or a log ask nobody for anything."""
    spans: list[tuple[int, int]] = []
    start, fence = 0, ""
    for line in FENCE.finditer(text):
        mark = line[1]
        if not fence:
            spans.append((start, line.start()))
            fence = mark
        elif mark[0] == fence[0] and len(mark) >= len(fence) and not line[2].strip():
            start, fence = line.end(), ""
    if not fence:
        spans.append((start, len(text)))
    return [(start, stop) for start, stop in spans if text[start:stop].strip()]


def _skip_head(text: str) -> int:
    """Where the body of a mail begins on its first page: sender and date stand in the note of the item."""
    head = HEAD.match(text)
    return head.end() if head else 0


async def load_item_texts(
    tx: Tx, ids: Sequence[WorkItemId], roots: Mapping[WorkItemId, DocumentId] | None = None
) -> list[ItemText]:
    """The words of these items, as many of them as (still) exist.

    An item of several documents, the mails of a thread, has the words of the one that describes it. If `roots` names
    another one that is still there, it has the words and the head of that.
    """
    items = await load_items(tx, ids)
    documents = {id_: item.document for id_, item in items.items() if item.document is not None and item.text is None}
    wanted = {id_: root for id_, root in (roots or {}).items() if id_ in items and items[id_].text is None}
    families = {one.root.id: one for one in await find_families(tx, [*documents.values(), *wanted.values()])}
    for id_, root in wanted.items():
        if root in families and root != documents.get(id_):
            documents[id_], items[id_] = root, describe_as(items[id_], families[root])
    members = {id_: families[one].members for id_, one in documents.items() if one in families}
    shown = [member.id for family in members.values() for member in family]
    rows = await tx.all(SQL["pages_of"], _PageRow, documents=shown, most=MOST_PAGES)
    pages: dict[DocumentId, list[_PageRow]] = {}
    for row in rows:
        pages.setdefault(row.document, []).append(row)
    return [
        compose_text(items[id_], [(one, pages.get(one.id, ())) for one in members.get(id_, ())])
        for id_ in ids
        if id_ in items
    ]


def describe_as(item: WorkItem, family: Family) -> WorkItem:
    """An item with the head of another of its mails: words are never read as those of another writer, or day."""
    mail = describe_family(family)
    return replace(
        item,
        document=family.root.id,
        title=mail.title,
        note={**mail.note, **({"same_id_as": item.note["same_id_as"]} if item.is_double else {})},
        written_at=mail.written_at,
        warning=mail.warning,
        type=mail.type,
    )


def compose_text(item: WorkItem, family: Sequence[tuple[FamilyMember, Sequence[_PageRow]]]) -> ItemText:
    """The text of an item from its pages, or from its own words."""
    text = _Composer()
    title = str(item.note.get("subject") or item.title)
    text.add_new(title, is_file_name=any(is_named_after(title, member) for member, _ in family[:1]))
    text.add(GAP)
    if item.text is not None:
        text.add_new(item.text)
    for member, pages in family:
        if member.depth:
            text.add_new(f"{GAP}{member.name}\n", is_file_name=member.type != MAIL)  # of a mail, it is the subject
        text.add_pages(member, pages)
    return ItemText(item, "".join(text.pieces).rstrip(), tuple(text.new), tuple(text.parts), tuple(text.file_names))


def is_named_after(title: str, root: FamilyMember) -> bool:
    """Whether a title is the name of a file, because the document has none: a mail without a subject, a scan."""
    is_given = bool(root.meta.get("subject")) or find_type(root) not in ("document", "email")
    name = PurePath(root.name)
    return not is_given and _spell_words(title) in (_spell_words(name.name), _spell_words(name.stem))


def _spell_words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.casefold())


def cite(text: ItemText, start: int, stop: int) -> tuple[TextPart, int, int] | None:
    """The page on which these characters of an item stand, and where on it; None for the subject and names of files."""
    for part in text.parts:
        if part.start <= start < part.stop:
            return part, start - part.start + part.offset, min(stop, part.stop) - part.start + part.offset
    return None
