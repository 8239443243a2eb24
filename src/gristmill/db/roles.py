"""The role that sees no more than its scopes, and how it comes to be on a server.

The user that logs in owns the tables and sees everything: workers, migrations and the operator's commands use it. Work
for one client is done by `gristmill_tenant`, which owns nothing, cannot log in, and is bound by row-level security.
"""

from typing import Any

import psycopg
from psycopg import AsyncConnection, sql
from psycopg.rows import tuple_row

from gristmill.errors import Refused

TENANT = "gristmill_tenant"
FIND = """
SELECT to_regrole(%(role)s) IS NOT NULL,
       CASE WHEN to_regrole(%(role)s) IS NOT NULL THEN pg_has_role(current_user, to_regrole(%(role)s), %(right)s) END,
       current_user
"""
ATTEMPTS = 10  # other sessions may create the role, or be granted it, at the same moment
SET_RIGHT = 160_000  # the first server on which a member of a role is not always allowed to act as it
CREATE = sql.SQL("CREATE ROLE gristmill_tenant NOLOGIN")
GRANT = sql.SQL("GRANT gristmill_tenant TO {}")


async def has_tenant(connection: AsyncConnection[Any]) -> bool:
    there, _, _ = await find_tenant(connection)
    return there


async def find_tenant(connection: AsyncConnection[Any]) -> tuple[bool, bool, str]:
    """Whether the role is there, whether we may act as it, and who we are."""
    async with connection.transaction(), connection.cursor(row_factory=tuple_row) as cursor:
        right = "SET" if connection.info.server_version >= SET_RIGHT else "MEMBER"
        await cursor.execute(FIND, {"role": TENANT, "right": right})
        there, member, user = await cursor.fetchone() or (False, False, "")
        return there, bool(member), user


async def ensure_tenant(connection: AsyncConnection[Any]) -> None:
    """Create the role and let us act as it; roles belong to the whole server, so another database may have done it."""
    for _ in range(ATTEMPTS):
        there, member, user = await find_tenant(connection)
        if member:
            return
        await _try(connection, GRANT.format(sql.Identifier(user)) if there else CREATE, user)
    raise Refused(f"Somebody else changes the role {TENANT} at this moment: try again.")


async def _try(connection: AsyncConnection[Any], statement: sql.SQL | sql.Composed, user: str) -> None:
    try:
        async with connection.transaction():
            await connection.execute(statement)
    except (psycopg.errors.DuplicateObject, psycopg.errors.UniqueViolation, psycopg.errors.InternalError_):
        return  # another session does the same at this moment
    except psycopg.errors.InsufficientPrivilege as error:
        raise Refused(
            f"The user {user} may not create roles on this server, and without one of its own the database cannot keep "
            f"clients apart: ask its administrator to run CREATE ROLE {TENANT} NOLOGIN; and GRANT {TENANT} TO "
            f'"{user}"; – or set GRISTMILL_ROW_SECURITY=false if all who use this database may see everything.'
        ) from error
