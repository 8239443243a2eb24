"""The marks of the lanes: hints that save a walk, and never hide a task for long."""

from engine import Grind
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.ids import TaskId
from gristmill.queue.claim import Claim
from gristmill.queue.letters import POSITIONED, Envelope, lane, lane_of
from gristmill.queue.worker.lane_marks import Lane, LaneMarks

NORMAL, PEOPLE = lane_of(None, 0, False), lane_of(None, 0, True)


def claim(seq: int, where: int = NORMAL, queue: str = "mill") -> Claim:
    return Claim(TaskId(seq), seq, where, queue, 1, "mill.grind", "{}", None, True)


def seen(marks: LaneMarks, *queues: str) -> dict[Lane, int]:
    return dict(marks.lanes(queues or ("mill",)))


def test_without_a_word_of_a_ready_task_no_lane_is_known() -> None:
    assert LaneMarks().lanes(["mill"]) == []
    assert LaneMarks().lanes([]) == []


def test_a_mark_stands_at_the_lowest_seq_that_was_told() -> None:
    marks = LaneMarks()
    for seq in (7, 3, 9):
        marks.note_ready("mill", NORMAL, seq)
    assert seen(marks) == {Lane("mill", NORMAL): 3}


def test_a_claim_moves_the_mark_to_the_last_it_was_handed() -> None:
    marks = LaneMarks()
    marks.note_ready("mill", NORMAL, 3)
    marks.lanes(["mill"])
    marks.advance([claim(10), claim(11), claim(12)])
    assert seen(marks) == {Lane("mill", NORMAL): 12}


def test_what_was_told_while_a_claim_was_under_way_is_not_forgotten() -> None:
    marks = LaneMarks()
    marks.note_ready("mill", NORMAL, 3)
    marks.lanes(["mill"])
    marks.note_ready("mill", NORMAL, 5)
    marks.advance([claim(10)])
    assert seen(marks) == {Lane("mill", NORMAL): 5}


def test_a_claim_that_found_nothing_moves_no_mark() -> None:
    marks = LaneMarks()
    marks.note_ready("mill", NORMAL, 3)
    marks.lanes(["mill"])
    marks.advance([])
    assert seen(marks) == {Lane("mill", NORMAL): 3}


def test_a_better_position_than_the_last_is_looked_for_as_soon_as_it_is_told() -> None:
    marks = LaneMarks()
    marks.note_ready("mill", POSITIONED, 40)
    marks.lanes(["mill"])
    marks.advance([claim(40, POSITIONED)])
    assert seen(marks) == {Lane("mill", POSITIONED): 40}  # others may stand at 40, too
    marks.note_ready("mill", POSITIONED, -7)
    assert seen(marks) == {Lane("mill", POSITIONED): -7}


def test_lanes_come_in_the_order_of_claim_over_all_queues() -> None:
    marks = LaneMarks()
    for queue in ("mill", "oven"):
        for where in (NORMAL, PEOPLE, POSITIONED):
            marks.note_ready(queue, where, 1)
    order = [key.lane for key, _ in marks.lanes(["mill", "oven"])]
    assert order == [POSITIONED, POSITIONED, PEOPLE, PEOPLE, NORMAL, NORMAL]


def test_queues_take_turns_at_being_first() -> None:
    marks = LaneMarks()
    for queue in ("a", "b", "c"):
        marks.note_ready(queue, NORMAL, 1)
    firsts = [marks.lanes(["a", "b", "c"])[0][0].queue for _ in range(6)]
    assert sorted(firsts[:3]) == ["a", "b", "c"]
    assert firsts[:3] == firsts[3:]


def test_lanes_of_other_queues_are_left_alone() -> None:
    marks = LaneMarks()
    marks.note_ready("mill", NORMAL, 1)
    marks.note_ready("oven", NORMAL, 1)
    assert list(seen(marks, "oven")) == [Lane("oven", NORMAL)]


steps = st.lists(
    st.tuples(st.just("note"), st.integers(1, 50)) | st.tuples(st.just("claim"), st.integers(1, 5)), max_size=40
)


@settings(max_examples=300)
@given(steps)
def test_one_worker_alone_never_marks_past_a_ready_task_it_was_told_of(steps: list[tuple[str, int]]) -> None:
    marks, ready = LaneMarks(), set[int]()
    for step, n in steps:
        if step == "note":
            ready.add(n)
            marks.note_ready("mill", NORMAL, n)
        else:
            known = seen(marks)
            mark = known.get(Lane("mill", NORMAL), 51)
            handed = sorted(seq for seq in ready if seq >= mark)[:n]
            ready -= set(handed)
            marks.advance([claim(seq) for seq in handed])
        assert all(seq >= seen(marks).get(Lane("mill", NORMAL), 51) for seq in ready)


# --- lanes

ENVELOPES = st.builds(
    Envelope,
    st.just(Grind()),
    position=st.none() | st.integers(),
    foreground=st.booleans(),
    priority=st.integers(-100, 100),
)


@given(ENVELOPES, ENVELOPES)
def test_lanes_rank_position_then_people_then_priority(one: Envelope, other: Envelope) -> None:
    def rank(envelope: Envelope) -> tuple[bool, bool, int]:
        if envelope.position is not None:
            return (False, False, 0)
        return (True, not envelope.foreground, -envelope.priority)

    assert (lane(one) < lane(other)) == (rank(one) < rank(other))


@given(ENVELOPES, ENVELOPES)
def test_a_retry_overtakes_its_own_lane_and_no_better_one(one: Envelope, other: Envelope) -> None:
    retried = lane(one) & ~1
    assert retried <= lane(one)
    if lane(other) < lane(one):
        assert lane(other) < retried
