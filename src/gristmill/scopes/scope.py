"""Whose a thing is: a client's, one of its projects', or everybody's."""

from dataclasses import dataclass

from gristmill.db import Column, Tx, queries
from gristmill.errors import Refused
from gristmill.ids import ScopeId

LONGEST = 100  # characters of a name
SQL = queries("gristmill.scopes", "scope.sql")


@dataclass(frozen=True)
class Scope:
    """A client and perhaps one of its projects; without either it is GLOBAL."""

    client: str = ""
    project: str = ""

    def __post_init__(self) -> None:
        if self.project and not self.client:
            raise Refused(f"The project “{self.project}” needs its client: name both, or neither.")
        if self.client.upper() == "GLOBAL":
            raise Refused("GLOBAL is everybody's, and no client: name none to mean it.")
        for name in (self.client, self.project):
            if len(name) > LONGEST:
                raise Refused(f"The name of a client or project has at most {LONGEST} characters, not {len(name):,}.")
            if name != name.strip() or not name.isprintable() or "/" in name:
                raise Refused(
                    f"{name!r} is no name for a client or project: use printable letters, no slash, no space around."
                )

    def __str__(self) -> str:
        return "/".join(part for part in (self.client, self.project) if part) or "GLOBAL"


GLOBAL = Scope()
GLOBAL_ID = ScopeId(1)  # in every database


async def scope_id(tx: Tx, scope: Scope) -> ScopeId:
    """The id of a scope, which begins to exist when it is first used."""
    named = {"client": scope.client, "project": scope.project}
    for query in (SQL["find_scope"], SQL["make_scope"], SQL["find_scope"]):  # again: another may just have made it
        if (found := await tx.value(query, Column[ScopeId], **named)) is not None:
            return ScopeId(found)
    raise Refused(f"The scope {scope} was removed this very moment: try again.")


async def find_scope(tx: Tx, scope: Scope) -> ScopeId | None:
    """The id of a scope; None if nothing was ever put there."""
    return await tx.value(SQL["find_scope"], Column[ScopeId], client=scope.client, project=scope.project)


async def visible(tx: Tx, scope: Scope) -> list[ScopeId]:
    """The scopes seen from here: GLOBAL; from a client all of its own; from a project itself and its client's level."""
    return await tx.only_value(SQL["visible"], list[ScopeId], client=scope.client, project=scope.project)


async def list_clients(tx: Tx, *, limit: int = 500) -> list[str]:
    """The clients that are seen, by name."""
    return await tx.values(SQL["list_clients"], str, limit=limit)
