"""Whose knowledge is whose: a project's, its client's, everybody's."""

import asyncio

import pytest

from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.scopes import GLOBAL, Scope, scope_id, visible

ACME, MILL, OVEN = Scope("acme"), Scope("acme", "mill"), Scope("acme", "oven")
OTHER, OTHER_MILL = Scope("other"), Scope("other", "mill")


def test_a_project_needs_its_client() -> None:
    with pytest.raises(Refused, match="needs its client"):
        Scope(project="mill")


@pytest.mark.parametrize("name", [" acme", "ac\x00me", "ac\nme", "a/b"])
def test_a_name_is_printable(name: str) -> None:
    with pytest.raises(Refused, match="no name"):
        Scope(name)


def test_a_name_is_not_longer_than_people_read() -> None:
    with pytest.raises(Refused, match="has at most 100 characters, not 300"):
        Scope("c" * 300)


def test_global_is_said_out_loud() -> None:
    assert (str(GLOBAL), str(ACME), str(MILL)) == ("GLOBAL", "acme", "acme/mill")
    assert Scope() == GLOBAL


@pytest.mark.parametrize(
    ("seen_from", "seen"),
    [
        (GLOBAL, {GLOBAL}),
        (ACME, {GLOBAL, ACME, MILL, OVEN}),
        (MILL, {GLOBAL, ACME, MILL}),
        (OTHER_MILL, {GLOBAL, OTHER, OTHER_MILL}),
        (Scope("stranger"), {GLOBAL}),
        (Scope("acme", "unheard-of"), {GLOBAL, ACME}),
    ],
)
async def test_what_is_seen_depends_on_where_one_stands(db: Database, seen_from: Scope, seen: set[Scope]) -> None:
    async with db.transaction() as tx:
        ids = {await scope_id(tx, one): one for one in (GLOBAL, ACME, MILL, OVEN, OTHER, OTHER_MILL)}
        assert {ids[one] for one in await visible(tx, seen_from)} == seen


async def test_a_scope_that_two_make_at_once_is_one(db: Database) -> None:
    async def make() -> int:
        async with db.transaction() as tx:
            return await scope_id(tx, MILL)

    assert len(set(await asyncio.gather(*(make() for _ in range(4))))) == 1
