"""What agents hand to each other keeps its names and limits."""

import pytest
from pydantic import ValidationError

from gristmill.agents.delegation.model import (
    AgentCapability,
    AgentOutput,
    DelegationMessage,
    DelegationState,
    DelegationStatus,
    DomainType,
    ExecutionPlan,
    get_budget,
)
from gristmill.settings import AgentsSettings

FIELDS = {
    DelegationMessage: "delegation_id parent_delegation_id depth agent_name task_summary context constraints "
    "expected_output response_language client_id project_id",
    AgentOutput: "delegation_id agent_name success result structured_data artifacts changed_files sub_delegations "
    "confidence needs_verification",
    ExecutionPlan: "delegations parallel_groups domain",
    AgentCapability: "name description domains can_sub_delegate max_depth tool_names",
}


@pytest.mark.parametrize(("model", "names"), FIELDS.items(), ids=lambda one: getattr(one, "__name__", ""))
def test_a_model_has_the_fields_that_were_asked_for(model: type[DelegationMessage], names: str) -> None:
    assert list(model.model_fields) == names.split()


def test_the_state_has_the_fields_that_no_table_has() -> None:
    assert " ".join(DelegationState.__annotations__) == (
        "execution_plan completed_delegations delegation_results response_language domain"
    )


def test_domains_and_states_are_those_that_were_asked_for() -> None:
    assert " ".join(DomainType.__members__) == (
        "CODE DEVOPS PROJECT_MANAGEMENT COMMUNICATION LEGAL FINANCIAL ADMINISTRATIVE PERSONAL SECURITY RESEARCH "
        "LEARNING"
    )
    assert " ".join(DelegationStatus.__members__) == "PENDING RUNNING COMPLETED FAILED INTERRUPTED"


def test_what_is_handed_on_survives_a_checkpoint() -> None:
    task = DelegationMessage(delegation_id="d1", agent_name="research", task_summary="Look.", constraints=["short"])
    plan = ExecutionPlan(delegations=[task], parallel_groups=[["d1"]], domain=DomainType.RESEARCH)
    assert ExecutionPlan.model_validate(plan.model_dump(mode="json")) == plan


def test_what_nobody_knows_is_refused() -> None:
    with pytest.raises(ValidationError):
        AgentOutput.model_validate({"delegation_id": "d1", "agent_name": "a", "success": True, "result": "", "x": 1})


@pytest.mark.parametrize(("depth", "tokens"), [(0, 48_000), (1, 16_000), (2, 8_000), (3, 4_000), (4, 4_000)])
def test_the_budget_follows_from_the_depth(depth: int, tokens: int) -> None:
    assert get_budget(depth) == tokens


def test_all_four_flags_are_off_unless_somebody_turns_them_on() -> None:
    flags = {name: one.default for name, one in AgentsSettings.model_fields.items() if name.startswith("use_")}
    assert flags == dict.fromkeys(
        ("use_delegation_graph", "use_specialist_agents", "use_dag_execution", "use_procedural_memory"), False
    )
