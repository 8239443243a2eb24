"""The workload of a worker: bounded, in order, and all of it accounted for."""

from hypothesis import given
from hypothesis import strategies as st

from gristmill.ids import TaskId
from gristmill.queue.claim import Claim
from gristmill.queue.outcome import Done
from gristmill.queue.worker.workload import SettlePace, Workload


def claim(id_: int, lane: int = 5) -> Claim:
    return Claim(TaskId(id_), id_, lane, "mill", 1, "mill.grind", "{}", None, True)


def ids(claims: object) -> list[int]:
    return [one.id for one in claims]  # type: ignore[attr-defined]


def test_a_worker_that_has_done_nothing_yet_claims_only_what_can_start() -> None:
    workload = Workload(4, 100)
    assert workload.to_claim() == 4
    workload.busy = 3
    assert workload.to_claim() == 1
    workload.busy = 4
    assert workload.to_claim() == 0


def test_slow_work_is_not_claimed_ahead() -> None:
    workload = Workload(4, 100)
    workload.pace.note(2)
    workload.busy = 4
    assert (workload.ahead(), workload.to_claim()) == (0, 0)


def test_fast_work_is_claimed_ahead_up_to_a_batch() -> None:
    workload = Workload(4, 100)
    workload.pace.note(1_000_000)
    assert (workload.ahead(), workload.to_claim()) == (100, 100)
    workload.accept(claim(i) for i in range(100))
    assert workload.to_claim() == 0


def test_answers_that_pile_up_are_settled_before_more_is_claimed() -> None:
    workload = Workload(4, 10)
    workload.pace.note(1_000_000)
    workload.answers = [(claim(i), Done()) for i in range(30)]
    assert workload.to_claim() == 0


def test_the_pace_forgets_what_is_long_past() -> None:
    pace = SettlePace()
    pace.note(100)
    assert pace.per_second() == 100 / SettlePace.SPAN
    pace._recent[0] = (pace._recent[0][0] - 2 * SettlePace.SPAN, 100)
    assert pace.per_second() == 0


def test_what_comes_later_from_a_better_lane_starts_first() -> None:
    workload = Workload(4, 100)
    workload.accept([claim(1), claim(2)])
    workload.accept([claim(3, lane=1), claim(4)])
    assert ids(workload.waiting) == [3, 1, 2, 4]


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=6))
def test_the_waiting_are_sorted_by_lane_and_within_it_by_age(batches: list[list[int]]) -> None:
    workload = Workload(4, 100)
    number = 0
    for batch in batches:
        lanes = sorted(batch)
        workload.accept([claim(number + i, lane) for i, lane in enumerate(lanes)])
        number += len(lanes)
    waiting = [(one.lane, one.id) for one in workload.waiting]
    assert waiting == sorted(waiting)


@given(st.lists(st.integers(0, 20), unique=True), st.lists(st.integers(0, 20)))
def test_taking_out_some_leaves_the_others_in_order(all_ids: list[int], wanted: list[int]) -> None:
    workload = Workload(4, 100)
    workload.accept(claim(id_) for id_ in all_ids)
    taken = ids(workload.take(TaskId(id_) for id_ in wanted))
    assert taken == [id_ for id_ in all_ids if id_ in wanted]
    assert ids(workload.waiting) == [id_ for id_ in all_ids if id_ not in wanted]


def test_giving_up_what_has_not_begun_empties_the_hands() -> None:
    workload = Workload(4, 100)
    workload.accept([claim(1), claim(2)])
    assert not workload.empty
    assert ids(workload.take_unstarted()) == [1, 2]
    assert workload.empty


def test_hands_are_empty_only_when_nothing_waits_runs_or_is_to_be_settled() -> None:
    workload = Workload(4, 100)
    workload.running[TaskId(1)] = claim(1)
    assert not workload.empty
    workload.running.clear()
    workload.answers.append((claim(1), Done()))
    assert not workload.empty
    workload.answers.clear()
    workload.busy = 1
    assert not workload.empty
    workload.busy = 0
    assert workload.empty
