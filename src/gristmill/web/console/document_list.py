"""What the address of the list of documents says: the filter, the order, the portion, the document that is open."""

from dataclasses import dataclass, replace
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from gristmill.documents import STATUSES, DocumentFilter
from gristmill.ids import DocumentId

PAGE = "/documents"
ORDERS = ("added", "name", "type", "status", "pages")
NEWEST = "-added"
LONGEST = 200  # characters of a filter
LONGEST_CURSOR = 1_000
BIGGEST = 2**63 - 1


@dataclass(frozen=True)
class ListView:
    """A state of the list; it is all in the address, so it can be saved and sent to a colleague."""

    status: str = ""
    type: str = ""
    name: str = ""
    client: str = ""
    top: bool = False  # only documents that lie in no other
    sort: str = NEWEST
    cursor: str = ""  # where the portion begins
    open: int | None = None  # the document in the pane

    @property
    def filter(self) -> DocumentFilter:
        return DocumentFilter(
            client=self.client or None,
            status=self.status or None,
            type=self.type or None,
            name=self.name or None,
            top=self.top,
        )

    @property
    def is_narrowed(self) -> bool:
        return bool(self.status or self.type or self.name or self.client or self.top)

    @property
    def query(self) -> str:
        """The part of the address behind the question mark."""
        values = {
            "status": self.status,
            "type": self.type,
            "name": self.name,
            "client": self.client,
            "top": "1" if self.top else "",
            "sort": self.sort if self.sort != NEWEST else "",
            "cursor": self.cursor,
            "open": self.open or "",
        }
        return urlencode({name: value for name, value in values.items() if value})

    @property
    def link(self) -> str:
        return f"{PAGE}?{self.query}" if self.query else PAGE

    @property
    def saved_query(self) -> str:
        """What a saved view keeps: neither the portion nor the open document."""
        return replace(self, cursor="", open=None).query

    def with_open(self, document: int) -> str:
        return replace(self, open=document).link

    def without_open(self) -> str:
        return replace(self, open=None).link

    def at(self, cursor: str | None) -> str:
        return replace(self, cursor=cursor or "", open=None).link

    def with_status(self, status: str) -> str:
        return replace(self, status=status, cursor="", open=None).link


def read_list_view(given: QueryParams) -> ListView:
    """The state in an address; what cannot be meant is left out."""
    status, sort = given.get("status", ""), given.get("sort", NEWEST)
    return ListView(
        status=status if status in STATUSES else "",
        type=given.get("type", "")[:LONGEST],
        name=given.get("name", "").strip()[:LONGEST].replace("\0", ""),
        client=given.get("client", "")[:LONGEST],
        top=given.get("top") == "1",
        sort=sort if sort.lstrip("-") in ORDERS else NEWEST,
        cursor=given.get("cursor", "")[:LONGEST_CURSOR],
        open=_read_id(given.get("open")),
    )


def _read_id(text: str | None) -> DocumentId | None:
    number = int(text) if text and text.isdecimal() and len(text) < 20 else 0
    return DocumentId(number) if 0 < number <= BIGGEST else None
