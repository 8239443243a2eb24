"""Takes in what was read: families of documents become items, mails join the items of their threads; decides them."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from gristmill.db import Database, Tx
from gristmill.documents import Family, find_families
from gristmill.errors import Transient
from gristmill.ids import DocumentId, WorkItemId
from gristmill.qualifier.arriving import (
    FindAddresses,
    NotedArrival,
    describe_item,
    note_arrivals,
    set_known,
    speaks_for,
    warn_unread,
)
from gristmill.qualifier.describing import describe_family, is_workless
from gristmill.qualifier.letters import QualifyItem
from gristmill.qualifier.model import UNDECIDED, ItemText, WorkItem
from gristmill.qualifier.moving import move_item
from gristmill.qualifier.store import hold_item
from gristmill.qualifier.texts import load_item_texts
from gristmill.queue import Answer, Done, Envelope, Letter, Skip, send
from gristmill.tasks import DocumentRead

NOT_ALL_READ = Done()  # the last document of the family brings the letter that decides
GONE = Skip("its document was removed, or it is a mailbox: each of its mails is an item")
UNOPENED = Skip("it could not be opened: the error stands at its document, and nobody knows what it is")
ITEM_GONE = Skip("the item was removed")


class DecisionToWrite(Protocol):
    """What is to be written about an item, in the transaction that ends its task."""

    @property
    def write(self) -> Callable[[Tx], Awaitable[None]]: ...

    @property
    def then(self) -> Sequence[Letter | Envelope]: ...

    @property
    def is_work(self) -> bool:
        """Whether its words ask for something."""
        ...


Qualify = Callable[[Sequence[ItemText]], Awaitable[Sequence[DecisionToWrite | Exception]]]


@dataclass(frozen=True)
class Intake:
    """Answers letters about documents and items in batches."""

    db: Database
    qualify: Qualify
    find_own_addresses: FindAddresses

    async def take_documents(self, letters: Sequence[DocumentRead]) -> list[Answer | Exception]:
        async with self.db.reading() as tx:
            families = await find_families(tx, [letter.document for letter in letters])
        arrivals = [describe_family(one) for one in families if not one.root.replaced and not is_workless(one)]
        async with self.db.transaction() as tx:
            noted = await note_arrivals(tx, arrivals, self.find_own_addresses)
        wanted: dict[WorkItemId, NotedArrival] = {}
        for one in sorted(noted, key=lambda one: one.arrival.written_at):
            if one.item is not None and one.needs_decision:
                wanted.setdefault(one.item, one)  # another mail of the same thread has its turn after this one
        decided = await self._decide(list(wanted), wanted)
        by_root = {one.arrival.family.root.id: one for one in noted}
        by_member = {member.id: family for family in families for member in family.members}
        answers = _Answers({one.arrival.family.root.id: decided.get(id_, ITEM_GONE) for id_, one in wanted.items()})
        return [_answer_letter(one, by_member.get(one.document), by_root, answers) for one in letters]

    async def take_items(self, letters: Sequence[QualifyItem]) -> list[Answer | Exception]:
        ids = list(dict.fromkeys(letter.item for letter in letters))
        async with self.db.transaction() as tx:
            await warn_unread(tx, ids)
        answers = _Answers(await self._decide(ids, {}))
        return [answers.take(letter.item) or ITEM_GONE for letter in letters]

    async def _decide(
        self, ids: Sequence[WorkItemId], noted: Mapping[WorkItemId, NotedArrival]
    ) -> dict[WorkItemId, Answer | Exception]:
        """No transaction is open while the words are read and an answer is found."""
        roots = {id_: one.arrival.family.root.id for id_, one in noted.items()}
        async with self.db.reading() as tx:
            texts = await load_item_texts(tx, ids, roots)
        found = await self.qualify(texts) if texts else ()
        return {
            text.item.id: _settle(text.item, noted.get(text.item.id), decision)
            for text, decision in zip(texts, found, strict=True)
        }


class _Answers:
    """Hands out each decision once: of several letters about one thing, the first one brings it."""

    def __init__(self, answers: Mapping[Any, Answer | Exception]) -> None:
        self._answers = answers
        self._taken = set[Any]()

    def take(self, key: Any) -> Answer | Exception | None:
        """None if nothing is decided about it."""
        if key in self._taken:
            return Done()
        self._taken.add(key)
        return self._answers.get(key)


def _answer_letter(
    letter: DocumentRead, family: Family | None, noted: Mapping[DocumentId, NotedArrival], answers: _Answers
) -> Answer | Exception:
    if family is None:
        return GONE
    if is_workless(family):
        return UNOPENED
    one = noted.get(family.root.id)
    if one is None:
        return Skip("a newer version of it is read already")
    if not one.needs_decision:
        return Skip(one.reason) if one.reason else NOT_ALL_READ
    return answers.take(family.root.id) or Done(then=(letter,))


def _settle(item: WorkItem, noted: NotedArrival | None, decision: DecisionToWrite | Exception) -> Answer | Exception:
    """Busy models are asked again, for ever; whatever else goes wrong ends in `error`, where people see it."""
    if isinstance(decision, Transient):
        return decision
    if isinstance(decision, Exception):
        reason = f"It cannot be decided: {decision}"
        return Skip(reason, write=partial(_fail, item=item, reason=reason))
    return Done(write=partial(_write_decision, item=item, noted=noted, decision=decision), then=decision.then)


async def _write_decision(tx: Tx, *, item: WorkItem, noted: NotedArrival | None, decision: DecisionToWrite) -> None:
    """Nothing is written about an item that has moved meanwhile: it is looked at again."""
    held = await hold_item(tx, item.id)
    if held is None:
        return
    if held.step != item.step:
        again = DocumentRead(noted.arrival.family.root.id) if noted else QualifyItem(item.id)
        await send(tx, again, scope=item.scope, foreground=item.foreground)
        return
    if noted and speaks_for(noted.arrival, held, is_work=decision.is_work):
        await describe_item(tx, noted.arrival, held)
    await decision.write(tx)
    if noted:
        await set_known(tx, noted.arrival)


async def _fail(tx: Tx, *, item: WorkItem, reason: str) -> None:
    await move_item(tx, item.id, "error", since=UNDECIDED, why=reason, by="qualifier")
