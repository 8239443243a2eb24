"""What the command palette knows besides the menu and the page at hand: every queue, every schedule, every view."""

from fastapi import APIRouter, Request
from pydantic import BaseModel

from gristmill.queue import list_queue_names, list_schedules
from gristmill.serving import Caller, Viewer, services_of

PAGES = APIRouter()
VIEWS = (
    ("Tasks that wait", "tasks", "/tasks?status=pending"),
    ("Tasks that run", "tasks", "/tasks?status=processing"),
    ("Tasks that failed", "tasks", "/tasks?status=failed"),
    ("Groups of tasks", "tasks", "/tasks?kind=group"),
    ("Documents with errors", "documents", "/documents?status=failed"),
    ("Bulk actions", "retry", "/bulk"),
)


class Command(BaseModel):
    """A line of the palette."""

    text: str
    icon: str
    hint: str
    path: str


@PAGES.get("/palette")
async def list_commands(request: Request, caller: Viewer) -> list[Command]:
    services = services_of(request)
    views = [Command(text=text, icon=icon, hint="view", path=path) for text, icon, path in VIEWS]
    async with caller.reading(services.db) as tx:
        names = await list_queue_names(tx) if caller.is_operator else []
        schedules = [one.name for one in await list_schedules(tx)]
    return [
        *views,
        *(command for name in names for command in commands_of(name, caller)),
        *(Command(text=f"Schedule {name}", icon="schedules", hint="schedule", path="/schedules") for name in schedules),
    ]


def commands_of(queue: str, caller: Caller) -> list[Command]:
    commands = [
        Command(text=f"Queue {queue}", icon="queues", hint="queue", path=f"/queues/{queue}"),
        Command(text=f"Dead letters of {queue}", icon="dead", hint="queue", path=f"/dead?queue={queue}"),
    ]
    if caller.has_role("admin"):
        path = f"/queues/{queue}/settings"
        commands.append(Command(text=f"Limits of {queue}", icon="edit", hint="queue", path=path))
    return commands
