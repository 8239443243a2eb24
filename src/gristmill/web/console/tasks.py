"""Tasks: the list with its filters, one task with the reason why it waits, and the children of a group."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Form, Query, Request, Response

from gristmill.db import Tx
from gristmill.documents import names_of
from gristmill.ids import TaskId
from gristmill.queue import (
    QueueCounts,
    StatusCounts,
    Task,
    TaskFilter,
    TasksFound,
    add_up,
    cancel,
    count_tasks,
    find_tasks,
    get_task,
    group_progress,
    history,
    put_in_line,
    retry_tasks,
    set_foreground,
    why,
)
from gristmill.serving import Caller, Cursor, Manager, MenuEntry, Problem, Viewer, services_of
from gristmill.web.console.answering import answer_action
from gristmill.web.console.drawing import tell_now
from gristmill.web.console.reasons import find_levers, link_reason
from gristmill.web.console.sorting import Columns, read_sort, sort_rows
from gristmill.web.task_filters import read_spot, write_spot
from gristmill.wording import format_count

PAGES = APIRouter()
MENU = (MenuEntry("/tasks", "Tasks", "tasks", place=72),)
PORTION = 50
CHILDREN = 100
BY_AGE = ("id", "sent")  # the whole list is in this order; other columns sort the portion at hand
AGES = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "7d": timedelta(days=7), "30d": timedelta(days=30)}
COLUMNS: Columns[Task] = {
    "id": lambda task: task.id,
    "kind": lambda task: task.kind,
    "status": lambda task: task.status,
    "queue": lambda task: task.queue,
    "attempts": lambda task: task.attempts,
    "sent": lambda task: task.created_at,
}


@dataclass(frozen=True)
class TaskQuery:
    """What the address asks for."""

    queue: str = ""
    kind: str = ""
    status: str = ""
    cluster: str = ""
    age: str = ""
    owner: str = ""
    parent: str = ""
    q: str = ""

    @property
    def params(self) -> dict[str, str]:
        return {name: value for name, value in asdict(self).items() if value}

    def link(self, **changes: str) -> str:
        """The address of the list with these changes; the first portion of it."""
        params = replace(self, **changes).params
        return f"/tasks?{urlencode(params)}" if params else "/tasks"

    @property
    def filter(self) -> TaskFilter:
        if self.parent and not self.parent.isdecimal():
            raise Problem(422, f"“{self.parent}” is no group: use the number of one.")
        return TaskFilter(
            queue=self.queue or None,
            kind=self.kind or None,
            status=self.status or None,
            fingerprint=self.cluster or None,
            since=tell_now() - AGES[self.age] if self.age in AGES else None,
            owner=self.owner or None,
            parent=TaskId(int(self.parent)) if self.parent else None,
            text=self.q or None,
        )


def read_query(request: Request) -> TaskQuery:
    known = TaskQuery.__dataclass_fields__
    return TaskQuery(**{name: text.strip() for name, text in request.query_params.items() if name in known})


@PAGES.get("/tasks")
async def show_tasks(
    request: Request, caller: Viewer, cursor: Cursor = None, task: Annotated[int | None, Query(ge=1)] = None
) -> Response:
    services, asked = services_of(request), read_query(request)
    sort = read_sort(request, COLUMNS, "-id")
    async with caller.reading(services.db) as tx:
        found = await find_tasks(
            tx,
            asked.filter,
            limit=PORTION,
            start=read_spot(cursor),
            oldest_first=sort.key in BY_AGE and not sort.falling,
        )
        counts = await count_tasks(tx)
        names = await names_of(tx, [one.owner for one in found.tasks])
        opened = await load_task(tx, TaskId(task), caller) if task else {}
    return services.render(
        request,
        "tasks.html",
        query="",  # the text of this filter is not for the search box of the header
        asked=asked,
        tasks=sort_rows(found.tasks, sort, COLUMNS),
        sort=sort,
        names=names,
        looked=found.looked,
        next=link_next(asked, found, request.query_params.get("sort")),
        is_first=cursor is None,
        queues=sorted(one.queue for one in counts),
        totals=total_of(counts, asked),
        ages=AGES,
        chosen=task,
        here=str(request.url.replace(scheme="", netloc="")),
        **opened,
    )


def total_of(counts: Sequence[QueueCounts], asked: TaskQuery) -> StatusCounts | None:
    """Exact numbers of each status, where nothing else narrows the list."""
    if any(asked.params.get(name) for name in ("kind", "cluster", "age", "owner", "parent", "q")):
        return None
    return add_up(one for one in counts if not asked.queue or one.queue == asked.queue)


def link_next(asked: TaskQuery, found: TasksFound, sort: str | None) -> str | None:
    """The portion behind this one, in the same order."""
    following = write_spot(found.next)
    given = {**asked.params, "sort": sort, "cursor": following}
    return following and f"/tasks?{urlencode({name: value for name, value in given.items() if value})}"


# --- one task


async def load_task(tx: Tx, id: TaskId, caller: Caller) -> dict[str, Any]:
    """Everything that the pane of a task shows."""
    task, reason = await get_task(tx, id), await why(tx, id)
    is_group = task.queue is None
    children = await load_children(tx, id, None) if is_group else None
    return {
        "task": task,
        "why": reason,
        "reason": link_reason(reason, operator=caller.is_operator),
        "levers": find_levers(reason, caller),
        "events": await history(tx, id),
        "group": await group_progress(tx, id) if is_group else None,
        "children": children,
        "owner_name": (await names_of(tx, [task.owner])).get(task.owner or ""),
        "document": document_of(task),
    }


def document_of(task: Task) -> int | None:
    kind, _, number = (task.owner or "").partition(":")
    return int(number) if kind == "document" and number.isdecimal() else None


@PAGES.get("/tasks/{id}")
async def show_task(request: Request, caller: Viewer, id: int) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        opened = await load_task(tx, TaskId(id), caller)
    return services.render(request, "task.html", **opened)


@dataclass(frozen=True)
class Children:
    """A portion of a group's children, with the counters of those that are groups."""

    group: TaskId
    tasks: tuple[Task, ...]
    next: str | None


async def load_children(tx: Tx, group: TaskId, cursor: str | None) -> Children:
    found = await find_tasks(tx, TaskFilter(parent=group), limit=CHILDREN, start=read_spot(cursor))
    return Children(group, found.tasks, write_spot(found.next))


@PAGES.get("/tasks/{id}/children")
async def show_children(request: Request, caller: Viewer, id: int, cursor: Cursor = None) -> Response:
    services = services_of(request)
    async with caller.reading(services.db) as tx:
        children = await load_children(tx, TaskId(id), cursor)
    return services.render(request, "children.html", children=children)


# --- actions


@PAGES.post("/tasks/{id}/retry")
async def retry_task(request: Request, caller: Manager, id: int, again: Annotated[str, Form()] = "") -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        revived = await retry_tasks(tx, [TaskId(id)], any_outcome=bool(again))
        if not revived.tasks:
            raise Problem(422, f"Task {id} stays as it is: {revived.refused[0].reason}.")
        await services.record(tx, caller, "retry", f"task {id}", tasks=len(revived.tasks))
    said = f"{format_count(len(revived.tasks), 'task')} will run again"
    left = f"; {len(revived.refused):,} stay: {revived.refused[0].reason}" if revived.refused else ""
    return answer_action(request, f"{said}{left}.", back=f"/tasks/{id}")


@PAGES.post("/tasks/{id}/cancel")
async def cancel_task(request: Request, caller: Manager, id: int) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        ended = await cancel(tx, [TaskId(id)], reason=f"cancelled by {caller.name}")
        await services.record(
            tx, caller, "cancel", f"task {id}", cancelled=len(ended.cancelled), asked=len(ended.asked)
        )
    asked = f" {format_count(len(ended.asked), 'worker')} asked to stop what runs." if ended.asked else ""
    return answer_action(
        request,
        f"{format_count(len(ended.cancelled), 'task')} cancelled.{asked}",
        back=f"/tasks/{id}",
        undo=f"/tasks/{id}/retry" if ended.cancelled else None,
    )


@PAGES.post("/tasks/{id}/first")
async def move_first(request: Request, caller: Manager, id: int) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        task = await get_task(tx, TaskId(id))
        await put_in_line(tx, task.queue or "", task.id)
        await services.record(tx, caller, "move first", f"task {id}")
    return answer_action(request, f"Task {id} is the next in line.", back=f"/tasks/{id}")


@PAGES.post("/tasks/{id}/foreground")
async def bring_forward(request: Request, caller: Manager, id: int) -> Response:
    services = services_of(request)
    async with caller.transaction(services.db) as tx:
        await set_foreground(tx, TaskId(id))
        await services.record(tx, caller, "bring forward", f"task {id}")
    return answer_action(request, f"Task {id} goes before all background work.", back=f"/tasks/{id}")
