"""Endless loops end, all of them, for certain."""

import asyncio
import gc

import pytest

from gristmill.queue import loops
from gristmill.queue.loops import end_tasks, run_together


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "AGAIN", 0.01)


async def for_ever() -> None:
    await asyncio.Event().wait()


async def loses(cancellations: int) -> None:
    """A loop in which so many cancellations get lost."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancellations -= 1
            if cancellations < 0:
                raise


async def fails() -> None:
    await asyncio.sleep(0)
    raise ZeroDivisionError


async def test_a_loop_that_fails_ends_the_others_and_is_seen() -> None:
    with pytest.raises(ZeroDivisionError):
        await run_together(for_ever(), loses(2), fails())
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("lost", [0, 1, 3])
async def test_a_loop_that_loses_its_cancellation_is_cancelled_again(lost: int) -> None:
    running = asyncio.create_task(run_together(for_ever(), loses(lost)))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_whoever_is_cancelled_meanwhile_ends_them_all_the_same() -> None:
    stubborn = asyncio.create_task(loses(5))
    await asyncio.sleep(0)
    ending = asyncio.create_task(end_tasks([stubborn]))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert stubborn.done()


async def test_errors_of_loops_that_were_ended_are_not_complained_about() -> None:
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, about: complaints.append(about["message"]))

    async def drop(*, ended: bool) -> list[str]:
        complaints.clear()
        broken = asyncio.create_task(fails())
        await asyncio.wait([broken])
        if ended:
            await end_tasks([broken])
        del broken
        gc.collect()
        return list(complaints)

    assert await drop(ended=False) == ["Task exception was never retrieved"]
    assert await drop(ended=True) == []
