"""Who calls: a key or a session with a role, bound to a client, to one of its projects, or to nothing."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import Depends, Request

from gristmill.db import Database, Tx
from gristmill.scopes import GLOBAL, Scope
from gristmill.serving.problems import Problem

Role = Literal["viewer", "manager", "admin"]
ROLES: tuple[Role, ...] = ("viewer", "manager", "admin")  # each may do everything that the ones before it may


@dataclass(frozen=True)
class Caller:
    """A person or program behind a request.

    A caller that is bound to a scope sees this scope and GLOBAL, and changes this scope alone: the database makes sure
    of it. A caller that is bound to nothing is the operator and sees everything.
    """

    name: str
    role: Role
    bound_to: Scope | None
    address: str  # where the request comes from
    key: int | None = None  # the id of the access key; None: the link that `gristmill up` printed
    is_narrowed: bool = False  # an operator who looks through the eyes of one client, and changes what it has

    @property
    def scope(self) -> Scope:
        """The scope of the things that this caller makes, unless the request names another."""
        return self.bound_to or GLOBAL

    @property
    def identity(self) -> str:
        """Whose requests are counted together, and whose conversations these are."""
        return f"key {self.key}" if self.key is not None else "operator"

    @property
    def is_operator(self) -> bool:
        """Whether the caller sees all clients, and so may change things that belong to none: queues, limits, keys."""
        return self.bound_to is None

    def has_role(self, role: Role) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    def transaction(self, db: Database, *, snapshot: bool = False) -> AbstractAsyncContextManager[Tx]:
        """A transaction that sees and changes what this caller may see and change."""
        return db.transaction(snapshot=snapshot, seen_from=self.bound_to)

    def reading(self, db: Database) -> AbstractAsyncContextManager[Tx]:
        """Statements that only read, seen from this caller."""
        return db.reading(seen_from=self.bound_to)

    def choose_scope(self, client: str | None, project: str | None) -> Scope:
        """The scope that a request names; one outside of the caller's own is answered like one that does not exist."""
        asked = Scope(client or self.scope.client, project or (self.scope.project if not client else ""))
        own = self.bound_to
        if own is not None and (asked.client != own.client or (own.project and asked.project != own.project)):
            raise Problem(404, f"There is no client or project {asked} that you may use.")
        return asked

    def choose_view(self, client: str | None, project: str | None) -> Scope | None:
        """The scope that a request looks from; None, for an operator who names none, is everything.

        An operator who names GLOBAL sees what is everybody's, and nothing of any client.
        """
        if self.is_operator and not project and client in (None, "", str(GLOBAL)):
            return GLOBAL if client else None
        return self.choose_scope(client, project)


def require(role: Role, *, operator: bool = False) -> Callable[[Request], Awaitable[Caller]]:
    """A dependency: the caller, if it has at least this role; with `operator`, only one that is bound to no client.

    It waits for nothing, and is a coroutine all the same: FastAPI would call a function in a thread, for each request.
    """

    async def find_caller(request: Request) -> Caller:
        caller: Caller | None = getattr(request.state, "caller", None)
        if caller is None:
            raise Problem(401, "This needs a key: send it as “Authorization: Bearer …”, or sign in.")
        if not caller.has_role(role):
            raise Problem(403, f"This needs the role {role}; your key has the role {caller.role}.")
        if operator and not caller.is_operator:
            raise Problem(403, f"This concerns all clients; your key is bound to {caller.bound_to}.")
        return caller

    return find_caller


Viewer = Annotated[Caller, Depends(require("viewer"))]
Manager = Annotated[Caller, Depends(require("manager"))]
Administrator = Annotated[Caller, Depends(require("admin"))]
