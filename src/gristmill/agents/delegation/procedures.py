"""Follows a procedure where one fits the request, and learns one from a run that succeeded."""

from collections.abc import Sequence
from dataclasses import dataclass

from gristmill.agents.delegation.model import DomainType, ExecutionPlan
from gristmill.agents.delegation.planning import (
    MOST_DELEGATIONS,
    Agents,
    DelegationDraft,
    Order,
    PlanDraft,
    find_complaints,
    make_plan,
)
from gristmill.agents.delegation.store import Delegation
from gristmill.agents.memory import (
    ProcedureNode,
    ProcedureStep,
    grasp,
    learn,
    note_use,
    write_procedure,
)
from gristmill.agents.remembering import REMEMBERED, find_fitting
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import ReadText
from gristmill.models import fence_text

LONGEST_ACTION = 200  # characters of a task that is learned
LONGEST_REQUEST = 1_000  # characters of a request that stands below a step of a procedure


@dataclass(frozen=True)
class Followed:
    """A procedure, and the plan that it gives."""

    id: int
    plan: ExecutionPlan


async def follow_procedure(handle: RunHandle, order: Order, agents: Agents) -> Followed | None:
    """The plan of the first procedure that fits and can be carried out by these agents, if the settings say so.

    A run that no person asked for follows none: its request is a text that was read, and could choose one.
    """
    for one in await find_fitting(handle):
        plan = plan_procedure(one, order, agents)
        if plan is not None:
            if one.source == "learned":
                await handle.toolbox.read(ReadText(REMEMBERED, write_procedure(one)))
            return Followed(one.id, plan)
    return None


def plan_procedure(one: ProcedureNode, order: Order, agents: Agents) -> ExecutionPlan | None:
    """The steps of a procedure as delegations one after another; None if its agents are not there."""
    if len(one.procedure_steps) > MOST_DELEGATIONS:
        return None
    drafts = [
        DelegationDraft.model_construct(
            id=f"d{n}",
            agent=step.agent,
            task=describe_step(step, order.write_request(LONGEST_REQUEST), is_stated=one.source == "user_defined"),
        )
        for n, step in enumerate(one.procedure_steps, 1)
    ]
    first = agents.get(one.procedure_steps[0].agent) if one.procedure_steps else None
    domain = first.domains[0] if first and first.domains else DomainType.RESEARCH
    plan = make_plan(PlanDraft.model_construct(domain=domain, delegations=drafts, parallel_groups=[]), order)
    return None if find_complaints(plan, agents) else plan


def describe_step(step: ProcedureStep, request: str, *, is_stated: bool) -> str:
    """A step as a task. Only what a person stated is an order: what was learned are words of a model, which had read
    texts of others before it wrote them.
    """
    said = f"{step.action}{''.join(f'{chr(10)}{name}: {value}' for name, value in step.parameters.items())}"
    part = said if is_stated else f"Do your part of it.\n{fence_text(said, 'note of how it was done before')}"
    return f"{part}\nIt is a part of this request: {request}"


async def learn_procedure(
    handle: RunHandle, plan: ExecutionPlan, rows: Sequence[Delegation], followed: int | None
) -> None:
    """Count the use of the procedure that was followed, or learn one if every delegation succeeded."""
    if not handle.settings.agents.use_procedural_memory or not plan.delegations:
        return
    by_id = {one.delegation: one for one in rows}
    planned = [by_id[one.delegation_id] for one in plan.delegations if one.delegation_id in by_id]
    succeeded = len(planned) == len(plan.delegations) and all(one.success for one in planned)
    if followed is not None:
        async with handle.db.transaction() as tx:
            await note_use(tx, followed, handle.run, succeeded=succeeded)
    elif succeeded:
        steps = [ProcedureStep(one.agent, one.task[:LONGEST_ACTION]) for one in planned]
        meaning = await grasp(handle.toolbox.context.embedders, handle.run.request)
        async with handle.db.transaction() as tx:
            await learn(tx, handle.run, steps, meaning=meaning)
