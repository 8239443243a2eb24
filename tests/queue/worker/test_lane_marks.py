"""The marks of the line: hints that save a walk, and never hide a task for long."""

from engine import Grind
from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.ids import TaskId
from gristmill.queue.claim import Claim
from gristmill.queue.letters import POSITIONED, Envelope, lane, lane_of
from gristmill.queue.worker.lane_marks import Lane, Line

NORMAL, PEOPLE = lane_of(None, 0, False), lane_of(None, 0, True)


def claim(seq: int, where: int = NORMAL, queue: str = "mill") -> Claim:
    return Claim(TaskId(seq), seq, where, queue, 1, "mill.grind", "{}", None, True)


def marks(line: Line, *queues: str) -> dict[Lane, int]:
    return dict(line.lanes(queues or ("mill",)))


def test_a_line_that_nobody_told_of_has_no_lanes() -> None:
    assert Line().lanes(["mill"]) == []
    assert Line().lanes([]) == []


def test_a_mark_stands_at_the_lowest_seq_that_was_told() -> None:
    line = Line()
    for seq in (7, 3, 9):
        line.note("mill", NORMAL, seq)
    assert marks(line) == {Lane("mill", NORMAL): 3}


def test_a_claim_moves_the_mark_to_the_last_it_was_handed() -> None:
    line = Line()
    line.note("mill", NORMAL, 3)
    line.lanes(["mill"])
    line.handed([claim(10), claim(11), claim(12)])
    assert marks(line) == {Lane("mill", NORMAL): 12}


def test_what_was_told_while_a_claim_was_under_way_is_not_forgotten() -> None:
    line = Line()
    line.note("mill", NORMAL, 3)
    line.lanes(["mill"])
    line.note("mill", NORMAL, 5)
    line.handed([claim(10)])
    assert marks(line) == {Lane("mill", NORMAL): 5}


def test_a_claim_that_found_nothing_moves_no_mark() -> None:
    line = Line()
    line.note("mill", NORMAL, 3)
    line.lanes(["mill"])
    line.handed([])
    assert marks(line) == {Lane("mill", NORMAL): 3}


def test_a_better_position_than_the_last_is_looked_for_as_soon_as_it_is_told() -> None:
    line = Line()
    line.note("mill", POSITIONED, 40)
    line.lanes(["mill"])
    line.handed([claim(40, POSITIONED)])
    assert marks(line) == {Lane("mill", POSITIONED): 40}  # others may stand at 40, too
    line.note("mill", POSITIONED, -7)
    assert marks(line) == {Lane("mill", POSITIONED): -7}


def test_lanes_come_in_the_order_of_claim_over_all_queues() -> None:
    line = Line()
    for queue in ("mill", "oven"):
        for where in (NORMAL, PEOPLE, POSITIONED):
            line.note(queue, where, 1)
    order = [key.lane for key, _ in line.lanes(["mill", "oven"])]
    assert order == [POSITIONED, POSITIONED, PEOPLE, PEOPLE, NORMAL, NORMAL]


def test_queues_take_turns_at_being_first() -> None:
    line = Line()
    for queue in ("a", "b", "c"):
        line.note(queue, NORMAL, 1)
    firsts = [line.lanes(["a", "b", "c"])[0][0].queue for _ in range(6)]
    assert sorted(firsts[:3]) == ["a", "b", "c"]
    assert firsts[:3] == firsts[3:]


def test_lanes_of_other_queues_are_left_alone() -> None:
    line = Line()
    line.note("mill", NORMAL, 1)
    line.note("oven", NORMAL, 1)
    assert list(marks(line, "oven")) == [Lane("oven", NORMAL)]


steps = st.lists(
    st.tuples(st.just("note"), st.integers(1, 50)) | st.tuples(st.just("claim"), st.integers(1, 5)), max_size=40
)


@settings(max_examples=300)
@given(steps)
def test_one_worker_alone_never_marks_past_a_ready_task_it_was_told_of(steps: list[tuple[str, int]]) -> None:
    line, ready = Line(), set[int]()
    for step, n in steps:
        if step == "note":
            ready.add(n)
            line.note("mill", NORMAL, n)
        else:
            known = marks(line)
            mark = known.get(Lane("mill", NORMAL), 51)
            handed = sorted(seq for seq in ready if seq >= mark)[:n]
            ready -= set(handed)
            line.handed([claim(seq) for seq in handed])
        assert all(seq >= marks(line).get(Lane("mill", NORMAL), 51) for seq in ready)


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
