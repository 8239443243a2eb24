"""The ledger: an effect is written down before it acts, done once, and asked about when nobody knows its end."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from desk_work import (
    Outside,
    allow,
    answer,
    ask_first,
    begin_run,
    make_effect,
    questions,
    refuse,
    state_of,
    states,
    take_again,
    travel,
)

from gristmill.agents.effects import (
    Begun,
    Effect,
    EffectFailed,
    EffectResult,
    Ledger,
    list_effects,
    question_lost_effects,
)
from gristmill.agents.effects.deciding import MOST_ATTEMPTS, Allow, Ask, choose_move, judge_error
from gristmill.agents.effects.deciding import RefuseEffect as Refusing
from gristmill.agents.runs import WaitingForUser, complete_run, rest_run, stop_run, take_over
from gristmill.db import Database
from gristmill.errors import LeaseLost, Overloaded, Permanent, Transient, Unsent
from gristmill.queue.letters import FARTHEST

BUSY = Overloaded("come later", FARTHEST)


@pytest.fixture
def outside() -> Outside:
    return Outside()


# --- decisions


@pytest.mark.parametrize(
    ("state", "repeatable", "verdict", "move"),
    [
        ("intended", False, Allow(), "approve"),
        ("intended", True, Ask(("why",)), "ask"),
        ("intended", True, Refusing("no"), "refuse"),
        ("approved", False, Refusing("no"), "refuse"),
        ("approved", False, Ask(("why",)), "start"),
        ("executing", True, Allow(), "start"),
        ("executing", True, Ask(("why",)), "start"),
        ("executing", True, Refusing("no"), "doubt"),
        ("executing", False, Allow(), "doubt"),
        ("unknown", True, Allow(), "wait"),
        ("done", False, Refusing("no"), "replay"),
        ("failed", True, Allow(), "replay"),
    ],
)
def test_what_becomes_of_an_effect_follows_from_its_state(state, repeatable, verdict, move) -> None:
    assert choose_move(state, repeatable=repeatable, verdict=verdict) == move


@pytest.mark.parametrize(("verdict", "move"), [(Allow(), "start"), (Ask(("why",)), "ask"), (Refusing("no"), "refuse")])
def test_what_the_policy_alone_had_approved_is_judged_again(verdict, move) -> None:
    assert choose_move("approved", repeatable=False, verdict=verdict, by_policy=True) == move


@pytest.mark.parametrize(
    ("error", "repeatable", "attempt", "ending"),
    [
        (Permanent("no"), False, 1, "failed"),
        (Unsent("away"), False, 1, "again"),
        (Unsent("away"), False, MOST_ATTEMPTS, "failed"),
        (BUSY, True, 1, "again"),
        (Transient("cut off"), True, 1, "repeat"),
        (Transient("cut off"), False, 1, "doubt"),
        (KeyError("a bug"), False, 1, "doubt"),
        (KeyError("a bug"), True, 1, "repeat"),
    ],
)
def test_only_what_surely_did_not_happen_is_begun_again(error, repeatable, attempt, ending) -> None:
    assert judge_error(error, repeatable=repeatable, attempt=attempt) == ending


# --- one worker


async def test_an_effect_is_in_the_database_as_begun_before_it_acts(db: Database) -> None:
    run, fence = await begin_run(db)
    seen: list[str] = []

    async def act(begun: Begun) -> EffectResult:
        seen.extend(await states(db, run))
        return EffectResult("done")

    await Ledger(db, run, fence).perform(make_effect(), act, allow)
    assert seen == ["executing"]
    assert await states(db, run) == ["done"]


async def test_a_done_effect_is_not_repeated_but_its_result_is_given_again(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    first = await Ledger(db, run, fence).perform(make_effect(), outside.act, allow)
    again = await (await take_again(db, run)).perform(make_effect(), outside.act, allow)
    assert again == first == EffectResult("sent 1", {"n": 1})
    assert len(outside.seen) == 1


# --- earlier runs of an item


def to_bob(key: str = "1#0", *values: str, **prepared: Any) -> Effect:
    """A call that reaches Bob, or these targets."""
    origins = [{"argument": "to", "value": one} for one in values or ("bob@acme.example",)]
    return replace(make_effect(key, to=list(values)), origins=origins, prepared=prepared)


async def begin_for_item(db: Database, item: int = 7) -> Ledger:
    return Ledger(db, *await begin_run(db, item=item, item_type="user_input"))


async def end_runs(db: Database) -> None:
    async with db.transaction() as tx:
        await tx.execute("UPDATE agent_run SET state = 'failed', error = 'It broke.', finished_at = clock()")


async def test_a_person_is_asked_before_a_run_repeats_what_an_earlier_run_of_its_item_did(
    db: Database, outside: Outside
) -> None:
    await (await begin_for_item(db)).perform(to_bob(), outside.act, allow)
    await end_runs(db)
    other = to_bob("2#0", "Bob@ACME.example", "eve@acme.example")  # one of several is enough
    run, fence = await begin_run(db, item=7, item_type="user_input")
    with pytest.raises(WaitingForUser):
        await Ledger(db, run, fence).perform(other, outside.act, allow)
    (question,) = await questions(db, run)
    assert "An earlier run for this item has reached the same target, on 20" in question.sentence
    (reason,) = question.details["reasons"]
    assert reason.endswith(" UTC: Send 1#0.")
    await answer(db, run, "approve")
    await (await take_again(db, run)).perform(other, outside.act, allow)
    assert len(outside.seen) == 2


@pytest.mark.parametrize(
    ("effect", "item"),
    [(to_bob("1#0", "eve@acme.example"), 7), (to_bob("1#0", pushes=True), 7), (to_bob(), 8)],
)
async def test_another_target_a_push_and_another_item_are_no_repetition(
    db: Database, outside: Outside, effect: Effect, item: int
) -> None:
    await (await begin_for_item(db)).perform(to_bob(), outside.act, allow)
    await end_runs(db)
    await (await begin_for_item(db, item)).perform(effect, outside.act, allow)
    assert len(outside.seen) == 2


@pytest.mark.parametrize("said", [None, "leave", "not_done"])
async def test_what_may_have_been_done_counts_as_done_before(db: Database, outside: Outside, said: str | None) -> None:
    outside.fault = Transient("nobody knows")
    first, fence = await begin_run(db, item=7, item_type="user_input")
    with pytest.raises(WaitingForUser):
        await Ledger(db, first, fence).perform(to_bob(), outside.act, allow)
    await end_runs(db)
    if said is not None:
        await answer(db, first, said)
    outside.fault = None
    ledger = await begin_for_item(db)
    if said == "not_done":
        await ledger.perform(to_bob(), outside.act, allow)
        return
    with pytest.raises(WaitingForUser):
        await ledger.perform(to_bob(), outside.act, allow)


async def test_what_is_forbidden_is_not_asked_about_because_it_was_done_before(db: Database, outside: Outside) -> None:
    await (await begin_for_item(db)).perform(to_bob(), outside.act, allow)
    await end_runs(db)
    with pytest.raises(EffectFailed, match="forbids"):
        await (await begin_for_item(db)).perform(to_bob(), outside.act, refuse)


# --- one run


async def test_another_call_under_the_same_key_is_refused(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    ledger = Ledger(db, run, fence)
    await ledger.perform(make_effect(to="anna@example.org"), outside.act, allow)
    with pytest.raises(Permanent, match="other arguments"):
        await ledger.perform(make_effect(to="eve@example.org"), outside.act, allow)
    assert len(outside.seen) == 1


async def test_what_the_policy_refuses_never_happens_and_stays_refused(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    ledger = Ledger(db, run, fence)
    for judge in (refuse, allow):
        with pytest.raises(EffectFailed, match="The policy forbids it"):
            await ledger.perform(make_effect(), outside.act, judge)
    assert outside.seen == []
    assert await states(db, run) == ["failed"]


async def test_an_effect_that_a_person_approves_happens_when_the_run_comes_back(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    with pytest.raises(WaitingForUser):
        await Ledger(db, run, fence).perform(make_effect(), outside.act, ask_first)
    assert (await states(db, run), outside.seen) == (["intended"], [])
    async with db.transaction() as tx:
        await rest_run(tx, run, fence)
    assert (await state_of(db, run)).state == "waiting_for_user"
    await answer(db, run, "approve")
    assert (await state_of(db, run)).state == "queued"
    await (await take_again(db, run)).perform(make_effect(), outside.act, ask_first)
    assert (await states(db, run), len(outside.seen)) == (["done"], 1)


async def test_an_effect_that_a_person_refuses_fails_with_the_words_of_this_person(
    db: Database, outside: Outside
) -> None:
    run, fence = await begin_run(db)
    ledger = Ledger(db, run, fence)
    with pytest.raises(WaitingForUser):
        await ledger.perform(make_effect(), outside.act, ask_first)
    await answer(db, run, "refuse", "not to customers")
    with pytest.raises(EffectFailed, match="anna said no: not to customers"):
        await ledger.perform(make_effect(), outside.act, allow)
    assert outside.seen == []


async def test_a_policy_that_is_widened_meanwhile_withdraws_the_question(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    ledger = Ledger(db, run, fence)
    with pytest.raises(WaitingForUser):
        await ledger.perform(make_effect(), outside.act, ask_first)
    await ledger.perform(make_effect(), outside.act, allow)
    assert await questions(db, run) == []


async def test_a_policy_that_is_taken_back_holds_for_what_has_not_begun(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    ledger = Ledger(db, run, fence)
    with pytest.raises(WaitingForUser):  # a question that is withdrawn is not the one that is asked later
        await ledger.perform(make_effect(), outside.act, ask_first)
    outside.before = Unsent("not reached")
    with pytest.raises(Unsent):
        await ledger.perform(make_effect(), outside.act, allow)
    assert await states(db, run) == ["approved"]
    outside.before = None
    with pytest.raises(WaitingForUser):
        await ledger.perform(make_effect(), outside.act, ask_first)
    assert (await states(db, run), outside.seen) == (["intended"], [])
    await answer(db, run, "approve")
    await ledger.perform(make_effect(), outside.act, ask_first)
    assert (await states(db, run), len(outside.seen)) == (["done"], 1)


async def test_a_policy_that_forbids_counts_more_than_an_approval_of_before(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    ledger = Ledger(db, run, fence)
    with pytest.raises(WaitingForUser):
        await ledger.perform(make_effect(), outside.act, ask_first)
    await answer(db, run, "approve")
    with pytest.raises(EffectFailed, match="The policy forbids it"):
        await ledger.perform(make_effect(), outside.act, refuse)
    assert (await states(db, run), outside.seen) == (["failed"], [])


async def test_an_other_side_that_was_not_reached_is_asked_again_and_no_person(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    ledger = Ledger(db, run, fence)
    outside.before = Unsent("not reached")
    with pytest.raises(Unsent):
        await ledger.perform(make_effect(), outside.act, allow)
    assert await states(db, run) == ["approved"]
    outside.before = None
    await ledger.perform(make_effect(), outside.act, allow)
    assert len(outside.seen) == 1


async def test_an_other_side_that_is_never_reached_fails_in_the_end(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    ledger = Ledger(db, run, fence)
    outside.before = Unsent("not reached")
    for _ in range(MOST_ATTEMPTS - 1):
        with pytest.raises(Unsent):
            await ledger.perform(make_effect(), outside.act, allow)
    with pytest.raises(EffectFailed):
        await ledger.perform(make_effect(), outside.act, allow)


async def test_an_answer_that_was_cut_off_becomes_a_question_unless_it_can_be_asked_again(
    db: Database, outside: Outside
) -> None:
    run, fence = await begin_run(db)
    ledger = Ledger(db, run, fence)
    outside.fault = Transient("cut off")
    with pytest.raises(WaitingForUser):
        await ledger.perform(make_effect("1#0"), outside.act, allow)
    with pytest.raises(Transient):
        await ledger.perform(make_effect("1#1", repeatable=True), outside.act, allow)
    assert await states(db, run) == ["unknown", "executing"]
    outside.fault = None
    await ledger.perform(make_effect("1#1", repeatable=True), outside.act, allow)
    first, second, third = outside.seen
    assert second == third != first


@pytest.mark.parametrize(
    ("choice", "end", "reached"), [("done", "done", 1), ("not_done", "done", 2), ("leave", "failed", 1)]
)
async def test_a_person_says_what_became_of_an_effect_that_nobody_settled(
    db: Database, outside: Outside, choice: str, end: str, reached: int
) -> None:
    run, fence = await begin_run(db)
    outside.fault = Transient("cut off")
    with pytest.raises(WaitingForUser):
        await Ledger(db, run, fence).perform(make_effect(), outside.act, allow)
    outside.fault = None
    await answer(db, run, choice)
    ledger = await take_again(db, run)
    if end == "failed":
        with pytest.raises(EffectFailed, match="anna left it"):
            await ledger.perform(make_effect(), outside.act, allow)
    else:
        await ledger.perform(make_effect(), outside.act, allow)
    assert (await states(db, run), len(outside.seen)) == ([end], reached)


async def test_what_was_not_done_for_a_run_that_is_over_is_not_done_any_more(db: Database, outside: Outside) -> None:
    """Nobody would begin it: it says so, before the answer and after."""
    run, fence = await begin_run(db)
    outside.fault = asyncio.CancelledError()  # the worker ends in the middle of it
    with pytest.raises(asyncio.CancelledError):
        await Ledger(db, run, fence).perform(make_effect(), outside.act, allow)
    assert await states(db, run) == ["executing"]
    async with db.transaction() as tx:
        await complete_run(tx, run, fence, "Done.")
    async with db.transaction() as tx:
        await travel(tx, timedelta(hours=1))
        assert await question_lost_effects(tx, timedelta(minutes=10)) == 1
    (question,) = await questions(db, run)
    assert question.sentence.endswith("Its run is over: what was not done stays undone, ask anew for it.")
    await answer(db, run, "not_done")
    async with db.reading() as tx:
        (effect,) = await list_effects(tx, run)
    assert (effect.state, effect.error) == ("failed", "It was not done; its run is over: ask anew.")


async def test_an_effect_that_was_never_begun_ends_with_its_run_however_late_it_is_seen(db: Database) -> None:
    run, fence = await begin_run(db)
    with pytest.raises(WaitingForUser):
        await Ledger(db, run, fence).perform(make_effect(), Outside().act, ask_first)
    async with db.transaction() as tx:
        await complete_run(tx, run, fence, "Done.")
    async with db.transaction() as tx:
        await travel(tx, timedelta(days=30))
        await question_lost_effects(tx, timedelta(minutes=10))
    assert await states(db, run) == ["failed"]


async def test_an_interrupted_effect_is_finished_before_the_interruption(db: Database) -> None:
    run, fence = await begin_run(db)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def act(_: Begun) -> EffectResult:
        begun.set()
        await go_on.wait()
        return EffectResult("done")

    performing = asyncio.create_task(Ledger(db, run, fence).perform(make_effect(), act, allow))
    await begun.wait()
    performing.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await performing
    assert await states(db, run) == ["done"]


async def test_an_effect_that_does_not_end_is_cut_off_and_nobody_takes_it_for_done(db: Database) -> None:
    run, fence = await begin_run(db)
    begun = asyncio.Event()

    async def act(_: Begun) -> EffectResult:
        begun.set()
        await asyncio.Event().wait()
        return EffectResult("never")

    performing = asyncio.create_task(Ledger(db, run, fence, grace=0).perform(make_effect(), act, allow))
    await begun.wait()
    performing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await performing
    assert await states(db, run) == ["executing"]
    with pytest.raises(WaitingForUser):
        await (await take_again(db, run)).perform(make_effect(), act, allow)
    assert await states(db, run) == ["unknown"]


# --- two workers


async def test_a_worker_that_lost_the_run_begins_nothing_more(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    old = Ledger(db, run, fence)
    new = await take_again(db, run)
    with pytest.raises(LeaseLost):
        await old.perform(make_effect(), outside.act, allow)
    assert (outside.seen, await states(db, run)) == ([], [])
    await new.perform(make_effect(), outside.act, allow)
    assert len(outside.seen) == 1


async def test_a_worker_that_lost_the_run_while_it_acted_still_says_what_it_knows(db: Database) -> None:
    """The new worker has asked a person already: the question is withdrawn, and the run goes on by itself."""
    run, fence = await begin_run(db)
    begun, go_on = asyncio.Event(), asyncio.Event()
    reached: list[str] = []

    async def act(one: Begun) -> EffectResult:
        reached.append(one.key)
        begun.set()
        await go_on.wait()
        return EffectResult("sent")

    slow = asyncio.create_task(Ledger(db, run, fence).perform(make_effect(), act, allow))
    await begun.wait()
    async with db.transaction() as tx:
        second = await take_over(tx, run)
    assert second is not None
    with pytest.raises(WaitingForUser):
        await Ledger(db, run, second).perform(make_effect(), act, allow)
    async with db.transaction() as tx:
        await rest_run(tx, run, second)
    go_on.set()
    assert await slow == EffectResult("sent")
    assert await states(db, run) == ["done"]
    assert await questions(db, run) == []
    assert (await state_of(db, run)).state == "queued"
    assert await (await take_again(db, run)).perform(make_effect(), act, allow) == EffectResult("sent")
    assert len(reached) == 1


async def test_of_two_attempts_with_one_key_only_the_later_one_settles(db: Database) -> None:
    run, fence = await begin_run(db)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slow_act(_: Begun) -> EffectResult:
        begun.set()
        await go_on.wait()
        return EffectResult("late")

    async def act(_: Begun) -> EffectResult:
        return EffectResult("in time")

    effect = make_effect(repeatable=True)
    slow = asyncio.create_task(Ledger(db, run, fence).perform(effect, slow_act, allow))
    await begun.wait()
    assert await (await take_again(db, run)).perform(effect, act, allow) == EffectResult("in time")
    go_on.set()
    with pytest.raises(LeaseLost):
        await slow
    assert await (await take_again(db, run)).perform(effect, act, allow) == EffectResult("in time")


async def test_two_workers_at_once_on_one_run_reach_the_outside_once(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    async with db.transaction() as tx:
        second = await take_over(tx, run)
    assert second is not None
    racing = [Ledger(db, run, one).perform(make_effect(), outside.act, allow) for one in (fence, second)]
    ends = await asyncio.gather(*racing, return_exceptions=True)
    assert [type(one) for one in ends] == [LeaseLost, EffectResult]
    assert len(outside.seen) == 1


async def test_a_stopped_run_begins_nothing_more(db: Database, outside: Outside) -> None:
    run, fence = await begin_run(db)
    async with db.transaction() as tx:
        assert await stop_run(tx, run, "anna")
    with pytest.raises(LeaseLost):
        await Ledger(db, run, fence).perform(make_effect(), outside.act, allow)
    assert outside.seen == []
