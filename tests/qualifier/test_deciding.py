"""The decision tree, table by table: what an item becomes, and by which rules."""

from datetime import timedelta
from itertools import product

import pytest
from cases import (
    AMOUNT,
    GREETING,
    INVOICE,
    MENTION,
    NOISE,
    NOW,
    ORDER,
    convene,
    in_days,
    make_case,
    owe,
)
from hypothesis import given
from hypothesis import strategies as st

from gristmill.ids import WorkItemId
from gristmill.qualifier.deciding import (
    RANK,
    Advice,
    Case,
    Former,
    RelatedItem,
    decide,
    is_settled,
    list_allowed,
)
from gristmill.qualifier.model import URGENCIES, ChildItem, Identifier
from gristmill.qualifier.reasons import ReasonWords


def rules_of(case: Case) -> list[str]:
    return [step.rule for step in decide(case).path]


@pytest.mark.parametrize(
    ("case", "to", "urgency", "rules"),
    [
        (make_case(), "info_only", "normal", ["information"]),
        (make_case(has_text=False), "info_only", "normal", ["empty"]),
        (make_case(has_text=False, is_whole=False), "now", "normal", ["unread"]),
        (make_case(is_whole=False), "now", "normal", ["partly_unread"]),
        (make_case(asks=True, facts={"noise": (NOISE,)}), "info_only", "low", ["noise_newsletter"]),
        (make_case(asks=True), "now", "normal", ["actionable", "no_deadline"]),
        (make_case(asks=True, urgency="critical"), "now", "critical", ["actionable", "no_deadline"]),
        (make_case(asks=True, mine=True), "now", "high", ["actionable", "assigned"]),
        (make_case(asks=True, mine=True, deadline=in_days(30)), "now", "high", ["actionable", "assigned"]),
        (make_case(mine=True), "info_only", "normal", ["information"]),
        (make_case(asks=True, deadline=in_days(1.9)), "now", "normal", ["actionable", "deadline_near"]),
        (make_case(asks=True, deadline=in_days(2)), "now", "normal", ["actionable", "deadline_near"]),
        (make_case(asks=True, deadline=in_days(2.1)), "later", "normal", ["actionable", "deadline_far"]),
        (make_case(asks=True, deadline=in_days(-1)), "now", "high", ["actionable", "overdue"]),
        (make_case(deadline=in_days(9)), "info_only", "normal", ["information"]),
        (make_case(facts={"payment": owe()}), "now", "normal", ["payment_due", "no_deadline"]),
        (make_case(facts={"payment": owe()}, deadline=in_days(14)), "later", "normal", ["payment_due", "deadline_far"]),
        (make_case(facts={"payment": owe(), "noise": (NOISE,)}), "now", "normal", ["payment_due", "no_deadline"]),
        (make_case(facts={"mentions": (MENTION,)}), "now", "normal", ["mention", "no_deadline"]),
        (make_case(facts={"mentions": (MENTION,), "noise": (NOISE,)}), "now", "normal", ["mention", "no_deadline"]),
        (make_case(facts={"mentions": (GREETING,)}), "info_only", "normal", ["information"]),
        (
            make_case(facts={"amounts": (AMOUNT,), "references": (INVOICE,)}, deadline=in_days(14)),
            "later",
            "normal",
            ["maybe_bill", "deadline_far"],
        ),
        (make_case(facts={"amounts": (AMOUNT,)}, deadline=in_days(14)), "info_only", "normal", ["information"]),
        (make_case(is_wish=True), "now", "normal", ["wish", "no_deadline"]),
        (
            make_case(asks=True, deadline=in_days(9), is_due=True),
            "now",
            "normal",
            ["actionable", "deadline_far", "due"],
        ),
    ],
)
def test_the_tree(case: Case, to: str, urgency: str, rules: list[str]):
    found = decide(case)
    assert (found.route.to, found.route.urgency) == (to, urgency)
    assert rules_of(case) == rules


def test_later_is_so_long_before_the_deadline_as_the_client_says():
    assert decide(make_case(asks=True, deadline=in_days(9))).route.scheduled_at == in_days(7)
    far = decide(make_case(asks=True, deadline=in_days(9), lead=timedelta(days=5))).route
    assert (far.scheduled_at, far.deadline) == (in_days(4), in_days(9))
    assert decide(make_case(asks=True, deadline=in_days(9), lead=timedelta(days=10))).route.to == "now"


def test_every_step_has_a_sentence_and_the_words_that_it_went_by():
    payment, far = decide(make_case(facts={"payment": owe(in_days(14).date())}, deadline=in_days(14))).path
    assert payment.sentence == "A payment of 1.240,00 € is asked for, due on 2026-05-18."
    assert payment.words == (ReasonWords("1.240,00 €", 40, 50),)
    assert far.sentence == "The deadline is 2026-05-18: it is worked on from 2026-05-16, 2 days before."


# --- conventions


@pytest.mark.parametrize(
    ("case", "to", "urgency"),
    [
        (make_case(asks=True, mine=True, conventions=[convene("ignore")]), "info_only", "high"),
        (make_case(conventions=[convene("now, urgency critical")]), "now", "critical"),
        (make_case(asks=True, urgency="high", conventions=[convene("urgency low")]), "now", "low"),
        (make_case(asks=True, conventions=[convene("handled")]), "handled", "normal"),
        (make_case(conventions=[convene("later by 3 days")]), "later", "normal"),
        (make_case(conventions=[convene("later")]), "now", "normal"),
        (make_case(asks=True, deadline=in_days(1), conventions=[convene("later by 3 days")]), "now", "normal"),
        (make_case(asks=True, conventions=[convene("now"), convene("ignore")]), "now", "normal"),
        (make_case(asks=True, conventions=[convene("urgency high"), convene("ignore")]), "info_only", "high"),
        (make_case(asks=True, deadline=in_days(9), conventions=[convene("lead 10 days")]), "now", "normal"),
    ],
)
def test_conventions_win_over_the_tree(case: Case, to: str, urgency: str):
    found = decide(case)
    assert (found.route.to, found.route.urgency, found.author) == (to, urgency, "convention")


def test_a_wish_to_wait_never_lets_a_deadline_pass():
    waits = decide(make_case(asks=True, deadline=in_days(9), conventions=[convene("later by 30 days")]))
    assert waits.route.scheduled_at == in_days(7)


def test_a_convention_names_who_gets_it():
    found = decide(make_case(conventions=[convene('now, assign "accounting"'), convene('assign "others"')]))
    assert found.assign == "accounting"
    assert found.path[1].sentence == 'Convention 1 (version 1) says: now, assign "accounting".'


# --- what nothing lowers

floors = st.sampled_from([{"payment": owe()}, {"mentions": (MENTION,)}, {"payment": owe(), "noise": (NOISE,)}])
wishes = st.lists(
    st.sampled_from([convene(one) for one in ("ignore", "handled", "now", "later by 5 days", "urgency low")]),
    max_size=3,
)
advices = st.one_of(
    st.none(),
    st.builds(Advice, st.sampled_from(sorted(RANK)), st.just("because"), st.sampled_from(URGENCIES)),
)
formers = st.one_of(
    st.none(),
    st.builds(
        Former, st.sampled_from(sorted(RANK)), st.sampled_from(URGENCIES), st.none(), st.sampled_from([in_days(3)])
    ),
)


@given(floors, wishes, advices, formers, st.booleans(), st.booleans(), st.sampled_from([None, in_days(1), in_days(30)]))
def test_a_due_payment_and_a_direct_mention_are_never_put_away(facts, texts, advice, former, asks, mine, deadline):
    case = make_case(
        asks=asks, mine=mine, deadline=deadline, conventions=texts, facts=facts, advice=advice, former=former
    )
    assert decide(case).route.to in ("now", "later")


def test_the_path_says_when_a_convention_was_not_followed():
    case = make_case(facts={"payment": owe()}, deadline=in_days(14), conventions=[convene("ignore")])
    assert rules_of(case) == ["payment_due", "deadline_far", "convention_1", "floor"]
    assert decide(case).path[-1].sentence == "A payment that is due is never put away: it stays later."


# --- the LLM


@given(wishes, advices, st.booleans(), st.booleans(), st.sampled_from([None, in_days(1), in_days(30)]))
def test_an_llm_only_raises(texts, advice, asks, mine, deadline):
    base = make_case(asks=asks, mine=mine, deadline=deadline, conventions=texts)
    advised = make_case(asks=asks, mine=mine, deadline=deadline, conventions=texts, advice=advice)
    before, after = decide(base), decide(advised)
    assert RANK[after.standing] >= RANK[before.standing]
    assert URGENCIES.index(after.route.urgency) >= URGENCIES.index(before.route.urgency)


def test_an_llm_finds_what_the_rules_missed():
    found = decide(make_case(advice=Advice("now", "It asks for a call", "high")))
    assert (found.route.to, found.route.urgency, found.author) == ("now", "high", "llm")
    assert found.path[-1].sentence == "The LLM says now: It asks for a call."


def test_an_llm_that_would_lower_something_is_heard_and_not_followed():
    case = make_case(asks=True, advice=Advice("info_only", "It is done"))
    assert decide(case).route.to == "now"
    assert rules_of(case) == ["actionable", "no_deadline", "llm", "llm_kept"]


def test_an_llm_does_not_overrule_a_convention():
    assert decide(make_case(conventions=[convene("ignore")], advice=Advice("now", "x"))).route.to == "info_only"


def test_a_later_of_an_llm_needs_a_deadline_that_stands_in_the_text():
    assert decide(make_case(advice=Advice("later", "x"))).route.to == "now"
    later = decide(make_case(advice=Advice("later", "x", deadline=in_days(20)))).route
    assert (later.to, later.scheduled_at) == ("later", in_days(18))


def test_a_silent_llm_is_told_of():
    assert rules_of(make_case(asks=True, is_silent=True))[-1] == "llm_silent"


@pytest.mark.parametrize(
    ("case", "allowed"),
    [
        (make_case(), ("info_only", "later", "now")),
        (make_case(asks=True, deadline=in_days(30)), ("later", "now")),
        (make_case(asks=True), ("now",)),
        (make_case(facts={"payment": owe()}, deadline=in_days(9), conventions=[convene("ignore")]), ("later", "now")),
    ],
)
def test_which_outcomes_an_llm_may_choose(case: Case, allowed: tuple[str, ...]):
    assert list_allowed(case) == allowed


@pytest.mark.parametrize(
    ("case", "settled"),
    [
        (make_case(), False),
        (make_case(asks=True), False),
        (make_case(has_text=False), True),
        (make_case(facts={"noise": (NOISE,)}), True),
        (make_case(facts={"noise": (NOISE,), "payment": owe()}), False),
        (make_case(conventions=[convene("ignore")]), True),
        (make_case(conventions=[convene("urgency high")]), False),
    ],
)
def test_when_an_llm_is_not_asked(case: Case, settled: bool):
    assert is_settled(case) is settled


# --- decided again


@given(st.sampled_from(sorted(RANK)), st.sampled_from(URGENCIES), st.booleans(), st.sampled_from([None, in_days(30)]))
def test_a_decision_that_is_made_again_never_falls(to, urgency, asks, deadline):
    former = Former(to, urgency, None, in_days(3) if to == "later" else None)
    again = decide(make_case(asks=asks, deadline=deadline, former=former))
    assert RANK[again.standing] >= RANK[to]
    assert URGENCIES.index(again.route.urgency) >= URGENCIES.index(urgency)


def test_what_is_decided_again_keeps_the_earlier_time():
    former = Former("later", "normal", in_days(5), in_days(3))
    assert decide(make_case(asks=True, deadline=in_days(30), former=former)).route.scheduled_at == in_days(3)
    assert decide(make_case(asks=True, deadline=in_days(4), former=former)).route.scheduled_at == in_days(2)


@pytest.mark.parametrize(
    ("before", "named", "stays"),
    [
        (in_days(5), None, in_days(5)),
        (in_days(5), in_days(30), in_days(5)),
        (in_days(5), in_days(4), in_days(4)),
        (None, in_days(4), in_days(4)),
    ],
)
def test_what_is_decided_again_keeps_the_nearer_deadline_and_says_so(before, named, stays):
    again = decide(make_case(asks=True, deadline=named, former=Former("now", "normal", before, None)))
    assert again.route.deadline == stays
    assert ("former_deadline" in [step.rule for step in again.path]) is (stays != named)


def test_a_deadline_of_mere_information_does_not_stay():
    former = Former("info_only", "normal", in_days(5), None)
    assert decide(make_case(asks=True, former=former)).route.deadline is None


# --- together with others, and in parts


def know(shared: Identifier, state="ready_for_execution", scheduled_at=None) -> RelatedItem:
    words = ReasonWords(shared.value, 60, 67)
    return RelatedItem(WorkItemId(5), "An invoice", state, shared, words, scheduled_at)


SAME_INVOICE = Identifier("invoice", "2026-77")
SAME_ORDER = Identifier("order", "4711")
SAME_PAYMENT = Identifier("payment", "2026-77")


@pytest.mark.parametrize(
    ("known", "more", "to"),
    [
        (know(SAME_INVOICE), {}, "consolidate"),
        (know(SAME_ORDER), {}, "consolidate"),
        (know(SAME_PAYMENT), {"facts": {"payment": owe(), "references": (INVOICE,)}}, "consolidate"),
        # a payment is another thing than a question about its invoice, whichever of them came first
        (know(SAME_INVOICE), {"facts": {"payment": owe(), "references": (INVOICE,)}}, "now"),
        (know(SAME_PAYMENT), {}, "now"),
        # the payment is another thing than the order
        (know(SAME_ORDER), {"facts": {"payment": owe(), "references": (ORDER,)}}, "now"),
        (know(SAME_INVOICE, "completed"), {}, "consolidate"),
        (know(SAME_INVOICE), {"former": Former("info_only", "low", None, None)}, "now"),
    ],
)
def test_an_item_joins_another_one_about_the_same_number(known: RelatedItem, more: dict, to: str):
    found = decide(make_case(asks=True, known=[known], **more))
    assert found.route.to == to
    assert found.route.into == (5 if to == "consolidate" else None)
    assert found.standing == "now"


def test_information_joins_nothing():
    assert decide(make_case(known=[know(SAME_INVOICE)])).route.to == "info_only"


def test_the_path_says_which_number_and_whether_it_is_opened_again():
    case = make_case(asks=True, known=[know(SAME_INVOICE, "completed")])
    step = decide(case).path[-1]
    assert step.rule == "reopen"
    assert step.sentence == "Item 5 “An invoice” is about the same invoice 2026-77: it is opened again."
    assert step.words == (ReasonWords("2026-77", 60, 67),)


def test_the_path_says_that_both_pay_the_same_invoice():
    case = make_case(asks=True, known=[know(SAME_PAYMENT)], facts={"payment": owe(), "references": (INVOICE,)})
    sentence = "Item 5 “An invoice” is the payment of invoice 2026-77, too: it has it from now on."
    assert decide(case).path[-1].sentence == sentence


CHILDREN = (ChildItem("a", "Do a"), ChildItem("b", "Do b"))


def test_an_item_falls_into_the_pieces_of_work_that_it_lists():
    route = decide(make_case(asks=True, children=CHILDREN)).route
    assert (route.to, route.children) == ("decompose", CHILDREN)
    assert decide(make_case(children=CHILDREN)).route.to == "info_only"


def test_an_llm_may_name_the_pieces_of_work():
    route = decide(make_case(asks=True, advice=Advice("now", "two tasks", children=CHILDREN))).route
    assert route.to == "decompose"


def test_all_combinations_decide_something_and_say_why():
    times = (None, in_days(-1), in_days(1), in_days(30))
    for asks, mine, whole, text, deadline in product((True, False), (True, False), (True, False), (True, False), times):
        found = decide(make_case(asks=asks, mine=mine, is_whole=whole, has_text=text, deadline=deadline))
        assert found.path
        assert all(step.sentence.endswith(".") for step in found.path)
        assert (found.route.scheduled_at is not None) == (found.route.to == "later")
        assert found.route.scheduled_at is None or found.route.scheduled_at > NOW
