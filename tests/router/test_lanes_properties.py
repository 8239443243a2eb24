"""Whatever happens: slots balance, nothing is lost or answered twice, P0 waits for no background work."""

from hypothesis import given, settings
from hypothesis import strategies as st

from gristmill.router.breaker import BackendFailure
from gristmill.router.priority import Priority

from .world import SIZES, World, cpu, gpu

STEPS = (
    "submit",
    "finish",
    "fail",
    "commit",
    "leave",
    "confirm",
    "loaded",
    "load_failed",
    "unloaded",
    "time",
    "release",
    "probe",
    "observe",
)
step = st.tuples(
    st.sampled_from(STEPS),
    st.integers(0, 3),
    st.sampled_from(sorted(SIZES)),
    st.integers(0, 7),
    st.sampled_from((0.01, 0.5, 3.0, 12.0, 40.0, 400.0)),
)
worlds = st.sampled_from(
    (
        lambda: World.of(gpu(), cpu()),
        lambda: World.of(gpu(slots=1)),
        lambda: World.of(gpu(vram=None), cpu(slots=1)),
        lambda: World.of(
            gpu("gpu0", role="orchestrator"),
            gpu("gpu1", role="background"),
            cpu(),
            orchestrator=frozenset({"orch"}),
            background=("bg7", "bg14"),
        ),
        lambda: World.of(gpu(slots=3), queue_limit=4, background=("bg7", "embed"), orchestrator=frozenset({"orch"})),
        lambda: World.of(gpu(manages=False), cpu(), max_preemptions=0),
    )
)


def happen(world: World, name: str, number: int, model: str, pick: int, seconds: float) -> None:
    """One thing that can happen, if it can happen now."""
    running, unended = world.running, [ticket for ticket in world.tickets if not ticket.ended]
    if name == "submit":
        world.submit(number, model, session=f"s{pick % 2}", embeds=model == "embed")
    elif name == "finish" and running:
        world.finish(running[pick % len(running)])
    elif name == "fail" and running:
        world.fail(running[pick % len(running)], list(BackendFailure)[number])
    elif name == "commit" and running:
        world.lanes.commit(running[pick % len(running)].ticket)
    elif name == "leave" and unended:
        world.leave(unended[pick % len(unended)])
    elif name == "confirm" and world.leaving:
        world.confirm(world.leaving[pick % len(world.leaving)])
    elif name == "loaded" and world.loading:
        world.loaded(next(iter(world.loading)))
    elif name == "load_failed" and world.loading:
        world.load_failed(next(iter(world.loading)))
    elif name == "unloaded" and world.unloading:
        world.unloaded()
    elif name == "time":
        world.pass_time(seconds)
    elif name == "release":
        world.do(world.lanes.release(f"s{pick % 2}", world.now))
    elif name == "probe":
        backends = sorted(world.lanes.backends)
        world.do(world.lanes.note_probe(backends[pick % len(backends)], number > 0, world.now))
    elif name == "observe":
        backend = sorted(world.lanes.backends)[pick % len(world.lanes.backends)]
        busy = {lease.ticket.model for lease in world.running if lease.backend.name == backend}
        listed = {m: i.vram for m, i in world.lanes.backends[backend].resident.items() if m in busy or m != model}
        world.do(world.lanes.note_memory(backend, listed, world.now, world.now))


@given(worlds, st.lists(step, max_size=120))
@settings(max_examples=250)
def test_whatever_happens_slots_balance_and_every_request_has_exactly_one_end(make, steps) -> None:
    world = make()
    world.do(world.lanes.start(world.now))
    for one in steps:
        happen(world, *one)
        world.check()
    for _ in range(400):
        if not any(not ticket.ended for ticket in world.tickets) and not world.leaving:
            break
        world.settle_memory()
        for lease in list(world.running):
            world.finish(lease)
        world.settle_memory()
        world.pass_time(5.0)
        world.check()
    assert all(ticket.ended for ticket in world.tickets), "a request never ended"
    world.outcome_counts()
    assert not any(backend.leases for backend in world.lanes.backends.values())


@given(worlds, st.lists(step, max_size=60))
@settings(max_examples=100)
def test_whenever_the_router_stops_every_request_is_told_once_and_every_slot_given_back(make, steps) -> None:
    world = make()
    world.do(world.lanes.start(world.now))
    for one in steps:
        happen(world, *one)
    world.do(world.lanes.close())
    world.check()
    world.outcome_counts()
    world.settle_memory()
    assert not any(backend.leases for backend in world.lanes.backends.values())


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(("bg7", "eyes", "orch"))), min_size=1, max_size=4),
    st.sampled_from(("bg7", "bg14")),
)
@settings(max_examples=60)
def test_background_work_ends_however_much_more_urgent_work_keeps_coming(urgent, model) -> None:
    world = World.of(gpu(slots=1))
    for priority, other in urgent:  # there is always more urgent work than there are slots
        world.submit(priority, other)
    patient = world.submit(3, model)
    for _ in range(700):
        if patient.ended:
            break
        world.settle_memory()
        for lease in list(world.running):
            ticket = lease.ticket
            world.finish(lease)
            if not ticket.background:
                world.submit(ticket.priority, ticket.model)
        world.pass_time(1.0)
        world.check()
    assert patient.ended
    assert patient in world.answered or patient in world.refused


@given(st.integers(1, 6), st.integers(1, 4), st.booleans())
@settings(max_examples=60)
def test_every_critical_request_runs_as_soon_as_background_work_has_let_go(background, critical, begun) -> None:
    world = World.of(gpu(slots=4)).with_resident("bg7")
    for _ in range(background):
        world.submit(Priority.BACKGROUND, "bg7")
    if begun:
        for lease in world.running:
            world.lanes.commit(lease.ticket)
    tickets = [world.submit(Priority.CRITICAL, "bg7") for _ in range(critical)]
    world.pass_time(2.0)  # the bound for answers that have begun
    for lease in list(world.leaving):
        world.confirm(lease)
    assert all(ticket.lease is not None and ticket.lease in world.running for ticket in tickets)
