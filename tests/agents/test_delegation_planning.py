"""A plan is carried out only if it is a graph that comes to an end; whatever is wrong with it is said."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gristmill.agents.delegation.model import AgentCapability, DelegationMessage, DomainType, ExecutionPlan
from gristmill.agents.delegation.planning import (
    MOST_DELEGATIONS,
    DelegationDraft,
    Order,
    PlanDraft,
    find_complaints,
    find_stack,
    list_helpers,
    make_plan,
    make_shape,
    make_single,
    make_sub_delegation,
)

ORDER = Order("Mend the mill.", "de", "acme", "mill")
AGENTS = {
    name: AgentCapability(name=name, description=f"{name}.", can_sub_delegate=can, max_depth=depth)
    for name, can, depth in [
        ("lead", True, 4),
        ("coding", True, 4),
        ("test", True, 4),
        ("git", False, 4),
        ("research", True, 4),
        ("mail", False, 1),
    ]
}


def message(
    id_: str, agent: str = "coding", parent: str | None = None, depth: int = 1, **more: Any
) -> DelegationMessage:
    given: dict[str, Any] = {"task_summary": "Do it.", **more}
    return DelegationMessage(delegation_id=id_, agent_name=agent, parent_delegation_id=parent, depth=depth, **given)


def plan(delegations: Sequence[DelegationMessage], groups: list[list[str]] | None = None) -> ExecutionPlan:
    order = groups if groups is not None else [[one.delegation_id] for one in delegations]
    return ExecutionPlan(delegations=list(delegations), parallel_groups=order, domain=DomainType.CODE)


CHAIN = [
    message("a", "lead"),
    message("b", "coding", "a", 2),
    message("c", "test", "b", 3),
    message("d", "research", "c", 4),
]
GOOD = {
    "one": plan([message("a")]),
    "one after another": plan([message("a"), message("b", "git")]),
    "side by side": plan([message("a"), message("b", "git"), message("c", "test")], [["a", "b"], ["c"]]),
    "the same agent twice, side by side": plan([message("a"), message("b")], [["a", "b"]]),
    "four deep": plan(CHAIN),
    "two children": plan(
        [message("a", "lead"), message("b", "coding", "a", 2), message("c", "git", "a", 2)], [["a"], ["b", "c"]]
    ),
}
BAD = {
    "nothing": (plan([]), "has no delegations"),
    "too many": (plan([message(f"d{n}") for n in range(MOST_DELEGATIONS + 1)]), "are the most"),
    "the same id twice": (plan([message("a"), message("a", "git")], [["a"]]), "stands for 2 delegations"),
    "an id that makes no key": (plan([message("a#1")]), "is no id"),
    "an id of a sub-delegation": (plan([message("a.1")]), "is no id"),
    "an agent that nobody knows": (plan([message("a", "wizard")]), "no agent “wizard”"),
    "no task": (plan([message("a", task_summary="")]), "has no task"),
    "an agent that stands too deep": (
        plan([message("a", "lead"), message("b", "mail", "a", 2)]),
        "mail may not stand at depth 2",
    ),
    "depth zero": (plan([message("a", depth=0)]), "has the depth 0"),
    "a group of an unknown one": (plan([message("a")], [["a"], ["z"]]), "name z, which is no delegation"),
    "two groups": (plan([message("a")], [["a"], ["a"]]), "stands in the groups 2 times"),
    "twice in a group": (plan([message("a")], [["a", "a"]]), "stands in the groups 2 times"),
    "no group": (plan([message("a"), message("b")], [["a"]]), "b is in no group"),
    "an unknown parent": (plan([message("a", parent="z", depth=2)]), "parent z of a is no delegation"),
    "its own parent": (plan([message("a", parent="a", depth=2)]), "a is its own ancestor"),
    "a circle": (
        plan([message("a", parent="b", depth=2), message("b", "git", "a", 2)]),
        "a is its own ancestor",
    ),
    "a child beside its parent": (
        plan([message("a", "lead"), message("b", "coding", "a", 2)], [["a", "b"]]),
        "later group than its parent",
    ),
    "a child before its parent": (
        plan([message("a", "lead"), message("b", "coding", "a", 2)], [["b"], ["a"]]),
        "later group than its parent",
    ),
    "a depth that is not that of its place": (
        plan([message("a", "lead"), message("b", "coding", "a", 3)]),
        "one more than that of its parent",
    ),
    "a depth without a parent": (plan([message("a", depth=2)]), "its depth must be 1"),
    "too deep": (plan([*CHAIN, message("e", "git", "d", 5)]), "has the depth 5"),
    "an agent twice on a stack": (
        plan([message("a", "lead"), message("b", "coding", "a", 2), message("c", "lead", "b", 3)]),
        "lead stands twice on the stack of c: lead → coding → lead",
    ),
    "a parent that may not delegate": (
        plan([message("a", "git"), message("b", "coding", "a", 2)]),
        "git may not delegate",
    ),
}


@pytest.mark.parametrize("good", GOOD.values(), ids=GOOD.keys())
def test_a_good_plan_has_no_complaints(good: ExecutionPlan) -> None:
    assert find_complaints(good, AGENTS) == []


@pytest.mark.parametrize(("bad", "sentence"), BAD.values(), ids=BAD.keys())
def test_whatever_is_wrong_with_a_plan_is_said(bad: ExecutionPlan, sentence: str) -> None:
    found = find_complaints(bad, AGENTS)
    assert any(sentence in one for one in found), found


IDS = st.sampled_from(["a", "b", "c", "d"])


@given(
    st.lists(
        st.builds(message, IDS, st.sampled_from([*AGENTS, "wizard"]), st.none() | IDS, st.integers(0, 6)), max_size=6
    ),
    st.lists(st.lists(IDS, max_size=3), max_size=5),
)
def test_a_plan_without_complaints_comes_to_an_end(
    delegations: list[DelegationMessage], groups: list[list[str]]
) -> None:
    """By another way: every delegation once, every parent before its child, no agent above itself."""
    made = plan(delegations, groups)
    if find_complaints(made, AGENTS):
        return
    order = [id_ for group in groups for id_ in group]
    assert sorted(order) == sorted(one.delegation_id for one in delegations)
    for one in delegations:
        stack = find_stack(made, one)
        assert stack is not None
        assert len(stack) == one.depth - 1 <= 3
        assert len({*stack, one.agent_name}) == one.depth


def test_a_draft_becomes_a_plan() -> None:
    draft = PlanDraft(
        domain=DomainType.CODE,
        delegations=[
            DelegationDraft(id=" d1 ", agent="coding", task="Mend it.", constraints=["no new files", " "]),
            DelegationDraft(id="d2", agent="test", task="Try it.", expected_output="what failed"),
        ],
        parallel_groups=[["d1"], [], ["d2 "]],
    )
    made = make_plan(draft, ORDER)
    assert find_complaints(made, AGENTS) == []
    assert made.parallel_groups == [["d1"], ["d2"]]
    first = made.delegations[0]
    assert (first.response_language, first.client_id, first.project_id) == ("de", "acme", "mill")
    assert first.constraints == ["no new files"]


def test_a_draft_without_groups_is_carried_out_in_its_order() -> None:
    draft = PlanDraft(
        domain=DomainType.CODE,
        delegations=[DelegationDraft(id=f"d{n}", agent="coding", task="Do it.") for n in (1, 2)],
    )
    assert make_plan(draft, ORDER).parallel_groups == [["d1"], ["d2"]]


def test_the_shape_of_a_plan_knows_no_other_agents() -> None:
    schema = make_shape(AGENTS).model_json_schema()
    assert schema["$defs"]["Delegation"]["properties"]["agent"]["enum"] == list(AGENTS)


def test_a_single_delegation_is_a_good_plan() -> None:
    made = make_single("coding", ORDER)
    assert find_complaints(made, AGENTS) == []
    assert made.delegations[0].task_summary == "Mend the mill."


@pytest.mark.parametrize(
    ("agent", "depth", "stack", "helpers"),
    [
        ("lead", 1, [], ["coding", "test", "git", "research"]),  # mail may stand at depth 1 only
        ("coding", 2, ["lead"], ["test", "git", "research"]),
        ("git", 1, [], []),  # it may not delegate
        ("research", 4, ["lead", "coding", "test"], []),  # nobody stands below depth 4
        ("wizard", 1, [], []),
    ],
)
def test_who_may_help_with_a_delegation(agent: str, depth: int, stack: list[str], helpers: list[str]) -> None:
    assert list_helpers(message("a", agent, depth=depth), stack, AGENTS) == helpers


def test_a_sub_delegation_stands_one_deeper_under_an_id_of_its_own() -> None:
    made = make_sub_delegation(message("d1", constraints=["short"], client_id="acme"), 2, "git", " Commit it. ")
    assert (made.delegation_id, made.parent_delegation_id, made.depth) == ("d1.2", "d1", 2)
    assert (made.task_summary, made.constraints, made.client_id) == ("Commit it.", ["short"], "acme")
