"""Keeps decisions: what an item's words and the rules of that day made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple, cast

import msgspec

from gristmill.db import Tx, queries
from gristmill.ids import DecisionId, DocumentId, ScopeId, WorkItemId
from gristmill.qualifier.deciding import Advice, Author, Case, Firing, Former, ItemVerdict, RelatedItem, Standing
from gristmill.qualifier.model import Identifier, ItemState, RouteTo, Urgency, WorkItem
from gristmill.qualifier.reading import ItemWording
from gristmill.qualifier.reasons import DecisionStep, ReasonWords

SQL = queries("gristmill.qualifier", "decisions.sql")
RULES = 1  # the version of the rules: raised with every change that may decide otherwise
RECENT = timedelta(days=30)  # how long an item that was completed is opened again by its number
HISTORY = 20  # former decisions that are shown


@dataclass(frozen=True)
class Decision:
    """A row of `decision`."""

    id: DecisionId
    item: WorkItemId
    scope: ScopeId
    decided_at: datetime
    author: Author
    route: RouteTo
    standing: Standing
    urgency: Urgency
    deadline: datetime | None
    scheduled_at: datetime | None
    target: WorkItemId | None
    assign: str
    conventions: Sequence[int]
    rules: int
    characters: int
    digest: bytes
    silent: bool
    inputs: Mapping[str, Any]
    path: Sequence[Mapping[str, Any]]

    @property
    def document(self) -> DocumentId | None:
        """The mail whose words were read, of an item of several; None of items without, and of decisions of old."""
        found = self.inputs.get("document")
        return None if found is None else DocumentId(found)

    @property
    def steps(self) -> list[DecisionStep]:
        return msgspec.convert(self.path, list[DecisionStep])


@dataclass(frozen=True)
class PastDecision:
    """A decision in one line."""

    id: DecisionId
    decided_at: datetime
    author: Author
    route: RouteTo
    urgency: Urgency
    deadline: datetime | None
    scheduled_at: datetime | None
    target: WorkItemId | None
    assign: str


@dataclass(frozen=True)
class Inputs:
    """What a decision went by beside the text and the facts in it: enough to decide again."""

    lead: timedelta
    has_text: bool
    is_whole: bool
    is_wish: bool = False
    is_due: bool = False
    is_awaited: bool = False
    deadline: datetime | None = None  # that somebody gave
    urgency: Urgency = "low"  # that somebody gave
    firings: tuple[Firing, ...] = ()
    known: tuple[RelatedItem, ...] = ()
    advice: Advice | None = None
    is_silent: bool = False
    former: Former | None = None

    @classmethod
    def of(cls, case: Case, wording: ItemWording) -> "Inputs":
        return cls(
            case.lead,
            case.has_text,
            case.is_whole,
            case.is_wish,
            case.is_due,
            case.is_awaited,
            wording.deadline,
            wording.urgency,
            tuple(case.firings),
            tuple(case.known),
            case.advice,
            case.is_silent,
            case.former,
        )


async def save_decision(
    tx: Tx, item: WorkItem, wording: ItemWording, case: Case, verdict: ItemVerdict, *, silent: bool
) -> DecisionId:
    """Write a decision down with everything that it went by."""
    route = verdict.route
    read = {"document": item.document, "facts": case.facts.as_json()}
    inputs = {**read, **cast(dict[str, Any], msgspec.to_builtins(Inputs.of(case, wording)))}
    id_ = await tx.only_value(
        SQL["save_decision"],
        int,
        item=item.id,
        scope=item.scope,
        decided_at=case.now,
        author=verdict.author,
        route=route.to,
        standing=verdict.standing,
        urgency=route.urgency,
        deadline=route.deadline,
        scheduled_at=route.scheduled_at,
        target=route.into,
        assign=verdict.assign,
        conventions=[one.id for one in case.firings],
        rules=RULES,
        characters=len(wording.text),
        digest=wording.digest,
        silent=silent,
        inputs=_write_json(inputs),
        path=_write_json(msgspec.to_builtins(verdict.path)),
    )
    return DecisionId(id_)


def _write_json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


async def load_decision(tx: Tx, item: WorkItemId) -> Decision | None:
    """The last decision about an item."""
    return await tx.one(SQL["load_decision"], Decision, item=item)


def find_documents_read(decisions: Sequence[Decision]) -> dict[WorkItemId, DocumentId]:
    """The document that each decision read, by its item."""
    return {one.item: one.document for one in decisions if one.document is not None}


async def list_decisions(tx: Tx, item: WorkItemId) -> list[PastDecision]:
    """All decisions about an item, the newest first."""
    return await tx.all(SQL["list_decisions"], PastDecision, item=item, limit=HISTORY)


def read_inputs(decision: Decision) -> Inputs:
    return msgspec.convert(decision.inputs, Inputs)


async def load_former(tx: Tx, item: WorkItem) -> Former | None:
    """What was decided about an item before, if anything."""
    return None if item.decision is None else await tx.one(SQL["load_former"], Former, item=item.id)


class _KnownRow(NamedTuple):
    id: WorkItemId
    title: str
    state: ItemState
    scheduled_at: datetime | None
    kind: str
    value: str


async def find_known(tx: Tx, item: WorkItem, named: Mapping[Identifier, ReasonWords]) -> list[RelatedItem]:
    """Other items of the same scope that name one of these numbers; a mail that may be forged joins none of them."""
    if not named or item.is_double:
        return []
    rows = await tx.all(
        SQL["find_known"],
        _KnownRow,
        item=item.id,
        scope=item.scope,
        kinds=[one.kind for one in named],
        values=[one.value for one in named],
        recent=RECENT,
    )
    return [
        RelatedItem(row.id, row.title, row.state, shared, named[shared], row.scheduled_at)
        for row in rows
        for shared in [Identifier(row.kind, row.value)]
    ]


async def load_moment(tx: Tx) -> datetime:
    """The time of the one clock."""
    return await tx.only_value(SQL["moment"], datetime)
