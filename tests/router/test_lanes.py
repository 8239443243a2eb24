"""The policy, one decision at a time."""

from dataclasses import replace

import pytest

from gristmill.router.breaker import BackendFailure, BreakerState
from gristmill.router.pool import LeasePhase, Ticket
from gristmill.router.priority import Priority

from .world import World, cpu, gpu

P0, P1, P2, P3 = Priority


def where(ticket: Ticket) -> str | None:
    return ticket.lease.backend.name if ticket.lease is not None else None


def test_background_takes_the_gpu_when_it_is_free_and_the_cpu_otherwise() -> None:
    world = World.of(gpu(slots=1), cpu()).with_resident("bg7").with_resident("bg7", name="cpu")
    first, second = world.submit(P3, "bg7"), world.submit(P3, "bg7")
    assert (where(first), where(second)) == ("gpu", "cpu")


def test_critical_preempts_one_background_request_per_place_it_needs() -> None:
    world = World.of(gpu(slots=2)).with_resident("bg7")
    world.submit(P3, "bg7"), world.submit(P3, "bg7")
    urgent = world.submit(P0, "bg7")
    assert len(world.leaving) == 1
    assert urgent.lease is None
    world.confirm(world.leaving[0])
    assert where(urgent) == "gpu"
    assert len(world.running) == 2


def test_critical_swaps_the_model_set_at_once_whatever_the_residency() -> None:
    world = World.of(gpu(), cpu(), min_residency=1e6).with_resident("bg7", "bg14")
    background = world.submit(P3, "bg7")
    urgent = world.submit(P0, "orch")
    assert where(background) == "cpu"  # run anew elsewhere, not lost
    world.settle_memory()
    assert where(urgent) == "gpu"
    assert set(world.lanes.backends["gpu"].resident) == {"orch"}


def test_a_slot_is_free_only_when_the_backend_confirmed_that_it_stopped() -> None:
    world = World.of(gpu(slots=1), cpu()).with_resident("bg7")
    world.submit(P3, "bg7")
    urgent = world.submit(P0, "bg7")
    world.pass_time(5)
    assert where(urgent) is None
    world.confirm(world.leaving[0])
    assert where(urgent) == "gpu"


def test_critical_takes_no_place_from_coding_or_vision() -> None:
    world = World.of(gpu(slots=2)).with_resident("bg7")
    coding, vision = world.submit(P1, "bg7"), world.submit(P2, "bg7")
    urgent = world.submit(P0, "bg7")
    assert world.preempted == []
    assert where(urgent) is None
    world.finish(coding.lease)
    assert where(urgent) == "gpu"
    assert where(vision) == "gpu"


def test_an_answer_that_has_begun_may_end_within_the_bound() -> None:
    world = World.of(gpu(slots=1), finish_grace=2.0).with_resident("bg7")
    begun = world.submit(P3, "bg7")
    world.lanes.commit(begun)
    urgent = world.submit(P0, "bg7")
    world.pass_time(1.0)
    assert world.cut_off == []
    world.finish(begun.lease)
    assert where(urgent) == "gpu"
    assert world.answered == [begun]


def test_an_answer_that_has_begun_and_does_not_end_in_time_is_cut_off_once() -> None:
    world = World.of(gpu(slots=1), finish_grace=2.0).with_resident("bg7")
    begun = world.submit(P3, "bg7")
    world.lanes.commit(begun)
    urgent = world.submit(P0, "bg7")
    world.pass_time(2.0), world.pass_time(2.0)
    assert world.cut_off == [begun]
    assert begun.ended
    world.confirm(world.leaving[0])
    assert where(urgent) == "gpu"


def test_a_request_is_preempted_only_so_often() -> None:
    world = World.of(gpu(slots=1), max_preemptions=2).with_resident("bg7")
    moved = world.submit(P3, "bg7")
    for _ in range(3):
        urgent = world.submit(P0, "bg7")
        world.settle_memory()
        world.finish(urgent.lease)
        world.do(world.lanes.release("s", world.now))
    assert world.preempted == [moved] * 3
    assert world.refused == [moved]


def test_a_request_that_was_moved_often_enough_goes_where_no_critical_work_comes() -> None:
    world = World.of(gpu(slots=1), cpu(), max_preemptions=1).with_resident("bg7")
    moved = world.submit(P3, "bg7")
    world.submit(P0, "bg7")
    assert where(moved) == "cpu"


def test_coding_waits_for_the_running_request_and_goes_before_background() -> None:
    world = World.of(gpu(slots=1)).with_resident("bg7")
    running = world.submit(P3, "bg7")
    late, coding = world.submit(P3, "bg7"), world.submit(P1, "bg7")
    assert world.preempted == []
    world.finish(running.lease)
    assert (where(coding), where(late)) == ("gpu", None)


def test_coding_takes_a_cpu_when_its_patience_is_over() -> None:
    world = World.of(gpu(slots=1), cpu()).with_resident("bg7").with_resident("bg7", name="cpu")
    world.submit(P1, "bg7")
    waiting = world.submit(P1, "bg7")
    assert where(waiting) is None
    world.pass_time(31)
    assert where(waiting) == "cpu"


def test_vision_never_runs_on_a_cpu_while_a_gpu_serves_its_model() -> None:
    world = World.of(gpu(slots=1), cpu()).with_resident("eyes").with_resident("eyes", name="cpu")
    world.submit(P1, "eyes")
    vision = world.submit(P2, "eyes")
    world.pass_time(300)
    assert where(vision) is None


def test_a_critical_session_holds_its_gpu_and_gives_it_back_after_idling() -> None:
    world = World.of(gpu(), background=("bg7",), orchestrator=frozenset({"orch"})).with_resident("orch")
    world.finish(world.submit(P0, "orch").lease)
    held_off = world.submit(P3, "bg14")
    world.pass_time(299)
    assert where(held_off) is None
    world.pass_time(2)
    world.settle_memory()
    assert where(held_off) == "gpu"


def reserved(slots: int = 2, **settings: object) -> World:
    """A GPU of 24 GB that a P0 session holds, with 5 GB of it in use."""
    world = World.of(gpu(slots=slots, **settings), trickle=1e9).with_resident("bg7")
    world.finish(world.submit(P0, "bg7").lease)
    return world


@pytest.mark.parametrize("priority", [P1, P2, P3])
def test_what_fits_beside_the_model_of_a_session_is_loaded_and_runs(priority: Priority) -> None:
    world = reserved()
    guest = world.submit(priority, "embed", session="other")
    world.settle_memory()
    assert where(guest) == "gpu"
    assert set(world.lanes.backends["gpu"].resident) == {"bg7", "embed"}


@pytest.mark.parametrize("priority", [P1, P2, P3])
def test_a_reserved_gpu_keeps_its_last_slot_and_no_more(priority: Priority) -> None:
    world = reserved(slots=3)
    guests = [world.submit(priority, "bg7", session="other") for _ in range(3)]
    assert [where(guest) for guest in guests] == ["gpu", "gpu", None]
    assert where(world.submit(P0, "bg7")) == "gpu"
    assert world.preempted == []


def test_the_last_slot_of_a_reserved_gpu_is_lent_to_the_trickle_and_taken_back() -> None:
    world = World.of(gpu(slots=2), trickle=10.0).with_resident("bg7")
    world.finish(world.submit(P0, "bg7").lease)
    first, second = world.submit(P3, "bg7", session="other"), world.submit(P3, "embed", session="other")
    assert (where(first), where(second)) == ("gpu", None)
    world.pass_time(11)
    world.settle_memory()
    assert where(second) == "gpu"
    urgent = world.submit(P0, "bg7")
    world.settle_memory()
    assert where(urgent) == "gpu"


def test_a_critical_request_takes_back_the_memory_that_guests_were_lent() -> None:
    world = reserved()
    guest = world.submit(P3, "bg14", session="other")
    world.settle_memory()
    assert where(guest) == "gpu"
    urgent = world.submit(P0, "orch")
    world.settle_memory()
    assert where(urgent) == "gpu"
    assert world.preempted == [guest]


def test_the_model_of_a_session_is_never_replaced_by_a_guest() -> None:
    world = World.of(gpu(), trickle=10.0).with_resident("orch")
    world.finish(world.submit(P0, "orch").lease)
    too_large = world.submit(P1, "bg14", session="other")
    world.pass_time(250)
    assert where(too_large) is None
    assert world.loads == []
    assert [why for _, why in world.lanes.explain(world.now)] == ["its model does not fit beside that of a P0 session"]


def test_nothing_is_loaded_beside_a_session_when_nobody_said_how_much_fits() -> None:
    world = reserved(vram=None)
    assert where(world.submit(P3, "embed", session="other")) is None
    assert world.loads == []


def test_every_critical_request_of_the_session_renews_its_reservation_up_to_the_hard_limit() -> None:
    world = World.of(gpu()).with_resident("orch")
    backend = world.lanes.backends["gpu"]
    for _ in range(9):
        world.finish(world.submit(P0, "orch").lease)
        world.pass_time(200)
        assert list(backend.reservations) == (["s"] if world.now < 1060 + 1800 else [])
    assert backend.reservations == {}


def test_after_a_release_the_background_set_is_loaded() -> None:
    world = World.of(gpu(), background=("bg7", "bg14"), orchestrator=frozenset({"orch"})).with_resident("orch")
    world.finish(world.submit(P0, "orch", session="chat").lease)
    world.do(world.lanes.release("chat", world.now))
    world.settle_memory()
    assert set(world.lanes.backends["gpu"].resident) == {"bg7", "bg14"}


def test_with_two_gpus_both_sets_live_side_by_side_and_nothing_is_swapped() -> None:
    world = World.of(
        gpu("gpu0", role="orchestrator"),
        gpu("gpu1", role="background"),
        orchestrator=frozenset({"orch"}),
        background=("bg7", "bg14"),
    )
    world.do(world.lanes.start(world.now))
    world.settle_memory()
    loads = list(world.loads)
    assert sorted(loads) == [("gpu0", "orch"), ("gpu1", "bg14"), ("gpu1", "bg7")]
    for _ in range(20):
        urgent, background = world.submit(P0, "orch"), world.submit(P3, "bg7")
        assert (where(urgent), where(background)) == ("gpu0", "gpu1")
        world.finish(urgent.lease), world.finish(background.lease)
        world.pass_time(50)
    assert world.loads == loads
    assert world.preempted == []


def test_a_model_is_loaded_once_however_many_wait_for_it() -> None:
    world = World.of(gpu(slots=4))
    tickets = [world.submit(P3, "bg7") for _ in range(6)]
    assert world.loads == [("gpu", "bg7")]
    world.loaded()
    assert [where(ticket) for ticket in tickets] == ["gpu"] * 4 + [None] * 2


def test_requests_for_the_model_in_memory_are_collated_until_another_has_waited_long_enough() -> None:
    world = World.of(gpu(slots=1), aging=30.0, trickle=1e9).with_resident("orch")
    other = world.submit(P1, "orch")
    stranger = world.submit(P3, "bg14")
    same = world.submit(P3, "orch")
    world.finish(other.lease)
    assert where(same) == "gpu"  # younger, but its model is there
    world.pass_time(31)
    newcomer = world.submit(P3, "orch")
    world.finish(same.lease)
    world.settle_memory()
    assert (where(stranger), where(newcomer)) == ("gpu", None)


def test_a_model_stays_for_its_minimum_residency() -> None:
    world = World.of(gpu(), min_residency=10.0)
    world.submit(P1, "orch")
    world.loaded()
    world.finish(world.running[0])
    other = world.submit(P1, "bg14")
    assert world.unloading == []
    world.pass_time(10)
    world.settle_memory()
    assert where(other) == "gpu"


def test_models_that_fit_side_by_side_are_not_swapped() -> None:
    world = World.of(gpu(slots=3)).with_resident("bg7", "bg14")
    world.submit(P3, "embed")
    assert world.unloading == []
    world.loaded()
    assert set(world.lanes.backends["gpu"].resident) == {"bg7", "bg14", "embed"}


def test_critical_stops_a_load_for_background_work() -> None:
    world = World.of(gpu(slots=2))
    background = world.submit(P3, "bg7")
    urgent = world.submit(P0, "orch")
    assert world.loads == [("gpu", "bg7"), ("gpu", "orch")]
    world.loaded()
    assert where(urgent) == "gpu"
    assert where(background) is None
    assert not background.ended


def test_a_load_nobody_waits_for_any_more_is_stopped() -> None:
    world = World.of(gpu())
    world.leave(world.submit(P1, "bg7"))
    assert world.loading == {}
    assert world.lanes.backends["gpu"].switch is None


def test_a_full_queue_refuses_and_says_when_to_come_back() -> None:
    world = World.of(gpu(slots=1), queue_limit=2).with_resident("bg7")
    for _ in range(4):
        world.submit(P3, "bg7")
    assert len(world.refused) == 1
    assert world.lanes.retry_after() >= 1
    urgent = world.submit(P0, "bg7")  # the lanes are bounded apart
    assert urgent not in world.refused


def test_a_request_that_waits_past_its_deadline_is_refused() -> None:
    world = World.of(gpu(slots=1), trickle=1e9).with_resident("bg7")
    world.submit(P1, "bg7")
    late = world.submit(P3, "bg7")
    world.pass_time(601)
    assert world.refused == [late]


def test_an_old_background_request_overtakes_younger_coding_work() -> None:
    world = World.of(gpu(slots=1), trickle=1e9, aging=30.0).with_resident("bg7")
    running = world.submit(P1, "bg7")
    old = world.submit(P3, "bg7")
    world.pass_time(61)
    young = world.submit(P1, "bg7")
    world.finish(running.lease)
    assert (where(old), where(young)) == ("gpu", None)


def test_the_trickle_lets_one_background_request_through() -> None:
    world = World.of(gpu(slots=1), trickle=10.0, aging=1e9).with_resident("bg7")
    running = world.submit(P1, "bg7")
    trickled, other = world.submit(P3, "bg7"), world.submit(P3, "bg7")
    coding = world.submit(P1, "bg7")
    world.pass_time(11)
    world.finish(running.lease)
    assert where(trickled) == "gpu"
    world.finish(trickled.lease)
    assert (where(coding), where(other)) == ("gpu", None)


def test_a_failed_attempt_is_tried_elsewhere() -> None:
    world = World.of(gpu(), cpu()).with_resident("bg7").with_resident("bg7", name="cpu")
    ticket = world.submit(P3, "bg7")
    world.fail(ticket.lease)
    assert where(ticket) == "cpu"


def test_a_request_that_failed_everywhere_is_refused() -> None:
    world = World.of(gpu(), cpu()).with_resident("bg7").with_resident("bg7", name="cpu")
    ticket = world.submit(P3, "bg7")
    world.fail(ticket.lease), world.fail(ticket.lease)
    assert world.refused == [ticket]


def test_a_backend_that_fails_fast_attracts_no_traffic() -> None:
    world = (
        World.of(gpu("bad", slots=50), gpu("good", slots=50))
        .with_resident("bg7", name="bad")
        .with_resident("bg7", name="good")
    )
    hits = 0
    for _ in range(40):
        ticket = world.submit(P1, "bg7")
        if where(ticket) == "bad":
            hits += 1
            world.fail(ticket.lease)
        world.finish(ticket.lease)
        world.pass_time(0.05)
    assert hits <= 3
    assert len(world.answered) == 40


def test_a_half_open_breaker_lets_one_request_try() -> None:
    world = World.of(gpu(slots=8)).with_resident("bg7")
    breaker = world.lanes.backends["gpu"].breaker
    for _ in range(3):
        world.fail(world.submit(P1, "bg7").lease)
    assert breaker.state is BreakerState.OPEN
    world.submit(P1, "bg7"), world.submit(P1, "bg7")
    assert world.running == []
    world.pass_time(11)
    assert len(world.running) == 1
    world.finish(world.running[0])
    assert breaker.state is BreakerState.CLOSED
    assert len(world.running) == 1


@pytest.mark.parametrize(
    "kind",
    [
        BackendFailure.STATUS,
        BackendFailure.HEADER_TIMEOUT,
        BackendFailure.IDLE_TIMEOUT,
        BackendFailure.CONNECT,
        BackendFailure.BROKEN,
    ],
)
def test_each_kind_of_failure_is_counted_apart(kind: BackendFailure) -> None:
    world = World.of(gpu(slots=8)).with_resident("bg7")
    breaker = world.lanes.backends["gpu"].breaker
    for other in (kind, kind, BackendFailure.PROBE):
        breaker.fail(other, world.now)
    assert breaker.state is BreakerState.CLOSED
    breaker.fail(kind, world.now)
    assert breaker.state is BreakerState.OPEN
    assert breaker.total[kind] == 3


def test_a_throttled_backend_is_left_alone_for_as_long_as_it_asked() -> None:
    world = World.of(gpu(), cpu()).with_resident("bg7").with_resident("bg7", name="cpu")
    ticket = world.submit(P3, "bg7")
    world.running.remove(ticket.lease)
    world.do(world.lanes.fail(ticket.lease, BackendFailure.THROTTLED, world.now, 7.0))
    assert world.lanes.backends["gpu"].breaker.state is BreakerState.CLOSED
    world.pass_time(6)
    assert where(world.submit(P3, "bg7")) == "cpu"
    world.pass_time(2)
    assert where(world.submit(P3, "bg7")) == "gpu"


def test_answering_probes_does_not_close_a_breaker_that_failing_requests_opened() -> None:
    world = World.of(gpu()).with_resident("bg7")
    breaker = world.lanes.backends["gpu"].breaker
    for _ in range(3):
        breaker.fail(BackendFailure.STATUS, world.now)
    world.do(world.lanes.note_probe("gpu", True, world.now))
    assert breaker.state is BreakerState.OPEN


def test_a_backend_that_can_be_reached_again_may_be_tried_at_once() -> None:
    world = World.of(gpu()).with_resident("bg7")
    breaker = world.lanes.backends["gpu"].breaker
    for _ in range(3):
        world.do(world.lanes.note_probe("gpu", False, world.now))
    assert breaker.state is BreakerState.OPEN
    world.do(world.lanes.note_probe("gpu", True, world.now))
    assert breaker.state is BreakerState.HALF_OPEN


def test_critical_work_uses_a_cpu_only_when_no_gpu_is_up() -> None:
    world = World.of(gpu(slots=1), cpu()).with_resident("bg7").with_resident("bg7", name="cpu")
    world.submit(P0, "bg7")
    waiting = world.submit(P0, "bg7")
    assert where(waiting) is None
    world.leave(waiting)
    for _ in range(3):
        world.do(world.lanes.note_probe("gpu", False, world.now))
    assert where(world.submit(P0, "bg7")) == "cpu"


def test_what_ps_says_corrects_what_we_believe() -> None:
    world = World.of(gpu()).with_resident("bg7", "bg14")
    world.do(world.lanes.note_memory("gpu", {"bg14": 10}, world.now, world.now))
    assert {model: item.vram for model, item in world.lanes.backends["gpu"].resident.items()} == {"bg14": 10}


def test_what_ps_said_before_our_own_load_is_old_news() -> None:
    world = World.of(gpu())
    asked = world.now
    world.submit(P3, "bg7")
    world.now += 1
    world.loaded()
    world.do(world.lanes.note_memory("gpu", {}, asked, world.now))
    assert "bg7" in world.lanes.backends["gpu"].resident


def test_a_draining_router_takes_nothing_new_and_does_what_it_accepted() -> None:
    world = World.of(gpu(slots=1)).with_resident("bg7")
    running, waiting = world.submit(P3, "bg7"), world.submit(P3, "bg7")
    world.do(world.lanes.drain(None, True, world.now))
    refused = world.submit(P0, "bg7")
    assert world.refused == [refused]
    world.finish(running.lease)
    assert where(waiting) == "gpu"


def test_a_draining_backend_gets_nothing_new() -> None:
    world = World.of(gpu("a"), gpu("b")).with_resident("bg7", name="a").with_resident("bg7", name="b")
    world.do(world.lanes.drain("a", True, world.now))
    assert {where(world.submit(P1, "bg7")) for _ in range(2)} == {"b"}


def test_everything_that_waits_can_say_why() -> None:
    world = World.of(gpu(slots=1)).with_resident("bg7")
    world.submit(P0, "bg7")
    waiting = world.submit(P3, "bg7")
    assert [(ticket, why) for ticket, why in world.lanes.explain(world.now)] == [
        (waiting, "a P0 session keeps the last slot of this GPU")
    ]


def test_a_request_that_ended_while_it_was_being_stopped_is_answered_once() -> None:
    world = World.of(gpu(slots=1), cpu()).with_resident("bg7")
    ended = world.submit(P3, "bg7")
    lease = ended.lease
    world.submit(P0, "bg7")
    assert lease.phase is LeasePhase.LEAVING
    world.leaving.remove(lease)
    world.running = [other for other in world.running if other.ticket is not ended]
    world.answered.append(ended)
    world.do(world.lanes.finish(lease, world.now))
    world.check()
    assert ended.lease is None


def test_time_in_which_a_request_was_worked_on_is_not_time_that_it_waited() -> None:
    world = World.of(gpu(slots=1)).with_resident("bg7")
    batch = world.submit(3, "bg7")
    world.now = batch.deadline + 1
    world.submit(0, "orch")
    assert world.preempted == [batch]
    world.pass_time(300)
    assert batch in list(world.lanes.waiting)
    world.pass_time(301)
    assert batch in world.refused


def test_a_request_from_before_the_breaker_opened_does_not_let_a_second_trial_in() -> None:
    world = World.of(gpu(slots=4)).with_resident("bg7")
    old, *failing = [world.submit(3, "bg7") for _ in range(4)]
    for lease in [lease for lease in world.running if lease.ticket in failing]:
        world.fail(lease)
    world.pass_time(11)
    trial, second = world.submit(3, "bg7"), world.submit(3, "bg7")
    world.leave(old)
    world.settle_memory()
    assert trial.lease is not None
    assert second in list(world.lanes.waiting)


# ── backends that come and go ───────────────────────────────────────────────


def test_a_backend_that_is_added_takes_what_waits() -> None:
    world = World.of(gpu("a", slots=1)).with_resident("bg7", name="a")
    world.submit(P3, "bg7")
    waiting = world.submit(P3, "bg7")
    assert where(waiting) is None
    world.do(world.lanes.configure([world.lanes.backends["a"], gpu("b")], world.lanes.rules, world.now))
    world.settle_memory()
    assert where(waiting) == "b"
    world.check()


def test_a_backend_that_is_taken_away_ends_what_it_runs_and_gives_back_what_it_loads() -> None:
    world = World.of(gpu("a", slots=3)).with_resident("bg7", name="a")
    running, loading = world.submit(P3, "bg7"), world.submit(P3, "embed")
    old = world.lanes.backends["a"]
    world.loading.clear()  # whoever carries out effects stops a load of a backend that goes
    world.do(world.lanes.configure([gpu("b")], world.lanes.rules, world.now))
    world.settle_memory()
    assert (where(running), where(loading)) == ("a", "b")
    assert running.lease in world.lanes.every_lease()
    world.finish(running.lease)
    assert old.leases == set()
    assert [lease.ticket for lease in world.lanes.every_lease()] == [loading]
    world.check()


def test_new_rules_hold_at_once() -> None:
    world = World.of(gpu(slots=1), aging=1e9, trickle=1e9).with_resident("bg7")
    running = world.submit(P1, "bg7")
    late, coding = world.submit(P3, "bg7"), world.submit(P1, "bg7")
    rules = replace(world.lanes.rules, trickle=10.0)
    world.do(world.lanes.configure(list(world.lanes.backends.values()), rules, world.now))
    world.pass_time(11)
    world.finish(running.lease)
    assert (where(late), where(coding)) == ("gpu", None)
