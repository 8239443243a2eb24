# pyright: strict, reportUnnecessaryTypeIgnoreComment=error
"""What the type checker says of rows: typed rows can be read, and each use of an untyped row is an error.

Nobody runs this file. A test gives it to basedpyright, which complains of an expected error that does not come.
"""

from datetime import datetime
from typing import NamedTuple, assert_type

from gristmill.db import Column, Tx
from gristmill.ids import TaskId


def see(value: object) -> None: ...


class Sack(NamedTuple):
    grain: str
    weight: int


async def read_rows(tx: Tx) -> None:
    assert_type(await tx.one("…", Sack, mill=1), Sack | None)
    assert_type(await tx.all("…", Sack), list[Sack])
    assert_type(await tx.all_binary("…", Sack), list[Sack])
    async for sacks in tx.portions("…", Sack, 100, mill=1):
        assert_type(sacks, list[Sack])


async def read_columns(tx: Tx) -> None:
    assert_type(await tx.value("…", datetime), datetime | None)
    assert_type(await tx.value("…", Column[TaskId], mill=1), TaskId | None)
    assert_type(await tx.only_value("…", int), int)
    assert_type(await tx.only_value("…", list[TaskId]), list[TaskId])
    assert_type(await tx.only_value("…", Column[TaskId]), TaskId)
    assert_type(await tx.values("…", str), list[str])
    assert_type(await tx.values("…", Column[TaskId]), list[TaskId])
    assert_type(await tx.pairs("…", dict[TaskId, str]), dict[TaskId, str])


async def read_ids_without_column(tx: Tx) -> None:
    await tx.value("…", TaskId)  # pyright: ignore[reportArgumentType, reportCallIssue]
    await tx.only_value("…", TaskId)  # pyright: ignore[reportArgumentType, reportCallIssue]
    await tx.values("…", TaskId)  # pyright: ignore[reportArgumentType, reportCallIssue]


async def read_untyped_rows(tx: Tx) -> bool:
    await tx.one("a lock")
    if (row := await tx.one("…")) is not None:
        see(row.grain)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
    for each in await tx.all("…"):
        see(each.grain)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]
    await tx.all_binary("…")  # pyright: ignore[reportCallIssue]
    await tx.pairs("…")  # pyright: ignore[reportCallIssue]
    await tx.values("…")  # pyright: ignore[reportCallIssue]
    weight: int = await tx.value("…")  # pyright: ignore[reportAssignmentType]
    return weight > 0 and await tx.value("…") is not None
