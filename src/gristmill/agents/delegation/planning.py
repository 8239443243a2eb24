"""Plans delegations: the shape that a model fills in, and the rules that a plan must keep before anything is done."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pydantic import BaseModel, Field, create_model

from gristmill.agents.delegation.model import (
    DEEPEST,
    AgentCapability,
    DelegationMessage,
    DomainType,
    ExecutionPlan,
)

MOST_DELEGATIONS = 12  # of one plan
NAME = re.compile(r"[A-Za-z0-9][\w-]{0,39}")  # a part of the keys of effects; d1.2 is the second part of d1
SINGLE = "d1"

Agents = Mapping[str, AgentCapability]


@dataclass(frozen=True)
class Order:
    """The request behind a plan, as every delegation of it needs it."""

    request: str
    language: str = "en"  # of the answer, ISO 639-1
    client: str = ""
    project: str = ""
    said: str = ""  # what persons have said about the request since

    def write_request(self, longest: int | None = None) -> str:
        """The request, cut to so many characters, and all that persons have said about it since."""
        return "\n".join(filter(None, (self.request[:longest], self.said)))


class DelegationDraft(BaseModel):
    """A delegation as the model plans it."""

    id: str = Field(max_length=40, description="A short name: d1, d2, …")
    agent: str = Field(description="Who does it.")
    task: str = Field(max_length=1_500, description="What this agent shall do, complete in itself.")
    expected_output: str = Field(default="", max_length=400, description="What it shall answer.")
    constraints: list[str] = Field(default_factory=list, max_length=6, description="What it must keep to.")


class PlanDraft(BaseModel):
    """A plan as the model writes it; the shape for some agents names them."""

    domain: DomainType
    delegations: list[DelegationDraft] = Field(min_length=1, max_length=MOST_DELEGATIONS)
    parallel_groups: list[list[str]] = Field(
        default_factory=list[list[str]],
        max_length=MOST_DELEGATIONS,
        description="Ids in groups: groups follow each other, members of a group need nothing of each other.",
    )


def make_shape(agents: Agents) -> type[PlanDraft]:
    """The shape of a plan for these agents: a grammar then knows no others."""
    return _make_shape(tuple(agents))


@lru_cache(maxsize=16)
def _make_shape(agents: tuple[str, ...]) -> type[PlanDraft]:
    make: Any = create_model  # no type checker knows a type that is made at run time
    one = make("Delegation", __base__=DelegationDraft, agent=(Literal[agents], ...))
    most = Field(min_length=1, max_length=MOST_DELEGATIONS)
    return make("Plan", __base__=PlanDraft, delegations=(list[one], most))


def describe_agents(agents: Agents) -> str:
    """The agents as a model is told of them."""
    return "\n".join(f"- {name}: {one.description}" for name, one in agents.items())


def make_plan(draft: PlanDraft, order: Order) -> ExecutionPlan:
    """The plan of a draft. Without groups, the delegations follow each other as they are written."""
    delegations = [
        _make_message(one.id.strip(), one.agent, one.task, order, one.expected_output, one.constraints)
        for one in draft.delegations
    ]
    groups = [[id_.strip() for id_ in group] for group in draft.parallel_groups if group]
    return ExecutionPlan(
        delegations=delegations,
        parallel_groups=groups or [[one.delegation_id] for one in delegations],
        domain=draft.domain,
    )


def make_single(agent: str, order: Order, domain: DomainType = DomainType.RESEARCH) -> ExecutionPlan:
    """One delegation for everything: what is left when no plan can be used."""
    message = _make_message(SINGLE, agent, order.write_request(), order)
    return ExecutionPlan(delegations=[message], parallel_groups=[[SINGLE]], domain=domain)


def _make_message(
    id_: str, agent: str, task: str, order: Order, expected: str = "", constraints: Sequence[str] = ()
) -> DelegationMessage:
    return DelegationMessage(
        delegation_id=id_ or "?",
        agent_name=agent,
        task_summary=task.strip(),
        constraints=[one for one in constraints if one.strip()],
        expected_output=expected,
        response_language=order.language,
        client_id=order.client,
        project_id=order.project or None,
    )


# --- the rules


def find_complaints(plan: ExecutionPlan, agents: Agents) -> list[str]:
    """Everything that is wrong with a plan, in sentences for its author; empty if it may be carried out."""
    return [
        *_check_delegations(plan, agents),
        *_check_groups(plan),
        *_check_parents(plan, agents),
    ]


def _check_delegations(plan: ExecutionPlan, agents: Agents) -> Iterator[str]:
    if not plan.delegations:
        yield "The plan has no delegations."
    if len(plan.delegations) > MOST_DELEGATIONS:
        yield f"The plan has {len(plan.delegations)} delegations: {MOST_DELEGATIONS} are the most."
    for id_, count in Counter(one.delegation_id for one in plan.delegations).items():
        if count > 1:
            yield f"The id {id_} stands for {count} delegations: each needs an id of its own."
        if not NAME.fullmatch(id_):
            yield f"“{id_}” is no id: use letters and digits, such as d1."
    for one in plan.delegations:
        if one.agent_name not in agents:
            yield f"There is no agent “{one.agent_name}” ({one.delegation_id}): use one of {', '.join(agents)}."
        elif one.depth > agents[one.agent_name].max_depth:
            yield f"{one.agent_name} may not stand at depth {one.depth} ({one.delegation_id})."
        if not one.task_summary:
            yield f"The delegation {one.delegation_id} has no task."
        if not 1 <= one.depth <= DEEPEST:
            yield f"The delegation {one.delegation_id} has the depth {one.depth}: it must be 1 to {DEEPEST}."


def _check_groups(plan: ExecutionPlan) -> Iterator[str]:
    known = {one.delegation_id for one in plan.delegations}
    placed = Counter(id_ for group in plan.parallel_groups for id_ in group)
    for id_ in placed:
        if id_ not in known:
            yield f"The groups name {id_}, which is no delegation."
        if placed[id_] > 1:
            yield f"The delegation {id_} stands in the groups {placed[id_]} times: it must be there once."
    for id_ in sorted(known - placed.keys()):
        yield f"The delegation {id_} is in no group."


def _check_parents(plan: ExecutionPlan, agents: Agents) -> Iterator[str]:
    known = {one.delegation_id: one for one in plan.delegations}
    group_of = {id_: n for n, group in enumerate(plan.parallel_groups) for id_ in group}
    for one in plan.delegations:
        id_, parent = one.delegation_id, known.get(one.parent_delegation_id or "")
        if one.parent_delegation_id is None:
            if one.depth != 1:
                yield f"The delegation {id_} has no parent: its depth must be 1."
            continue
        if parent is None:
            yield f"The parent {one.parent_delegation_id} of {id_} is no delegation."
            continue
        stack = find_stack(plan, one)
        if stack is None:
            yield f"The delegation {id_} is its own ancestor."
            continue
        if one.depth != parent.depth + 1:
            yield f"The delegation {id_} has the depth {one.depth}: it must be one more than that of its parent."
        if group_of.get(parent.delegation_id, -1) >= group_of.get(id_, len(known)):
            yield f"The delegation {id_} must stand in a later group than its parent {parent.delegation_id}."
        if parent.agent_name in agents and not agents[parent.agent_name].can_sub_delegate:
            yield f"{parent.agent_name} may not delegate ({parent.delegation_id} to {id_})."
        if one.agent_name in stack:
            yield f"{one.agent_name} stands twice on the stack of {id_}: {' → '.join([*stack, one.agent_name])}."


def find_stack(plan: ExecutionPlan, message: DelegationMessage) -> list[str] | None:
    """The agents above a delegation, the topmost first; None if it is its own ancestor."""
    known = {one.delegation_id: one for one in plan.delegations}
    stack: list[str] = []
    seen = {message.delegation_id}
    at = known.get(message.parent_delegation_id or "")
    while at is not None:
        if at.delegation_id in seen:
            return None
        seen.add(at.delegation_id)
        stack.insert(0, at.agent_name)
        at = known.get(at.parent_delegation_id or "")
    return stack


# --- below a delegation


def list_helpers(message: DelegationMessage, stack: Sequence[str], agents: Agents) -> list[str]:
    """The agents that may help with a delegation: none if its agent may not delegate, or stands too deep.

    `stack` has the agents above it. No agent stands twice on a stack: it would wait for itself.
    """
    own = agents.get(message.agent_name)
    depth = message.depth + 1
    if own is None or not own.can_sub_delegate or depth > DEEPEST:
        return []
    taken = {*stack, message.agent_name}
    return [name for name, one in agents.items() if name not in taken and depth <= one.max_depth]


def make_sub_delegation(message: DelegationMessage, number: int, agent: str, task: str) -> DelegationMessage:
    """A part of a delegation for another agent; `number` counts the parts."""
    return DelegationMessage(
        delegation_id=f"{message.delegation_id}.{number}",
        parent_delegation_id=message.delegation_id,
        depth=message.depth + 1,
        agent_name=agent,
        task_summary=task.strip(),
        constraints=list(message.constraints),
        response_language=message.response_language,
        client_id=message.client_id,
        project_id=message.project_id,
    )
