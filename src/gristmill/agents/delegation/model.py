"""What agents hand to each other: a delegation, its output, the plan of all, and what an agent is able to do."""

from enum import StrEnum
from typing import Any, TypedDict

from pydantic import BaseModel, ConfigDict, Field

DEEPEST = 4  # 0 is the orchestrator, 1 to 4 are the agents below it
BUDGETS = (48_000, 16_000, 8_000, 4_000)  # tokens of a prompt by depth; whatever is deeper has the last one


class DomainType(StrEnum):
    """What a request is about: it helps to choose the agents."""

    CODE = "code"
    DEVOPS = "devops"
    PROJECT_MANAGEMENT = "project_management"
    COMMUNICATION = "communication"
    LEGAL = "legal"
    FINANCIAL = "financial"
    ADMINISTRATIVE = "administrative"
    PERSONAL = "personal"
    SECURITY = "security"
    RESEARCH = "research"
    LEARNING = "learning"


class DelegationStatus(StrEnum):
    """How far a delegation is. `INTERRUPTED` waits for a person, or for the next worker."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


class Handed(BaseModel):
    """Something that is handed on: it is never changed, and whatever it does not know is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DelegationMessage(Handed):
    """The work that a parent gives to an agent."""

    delegation_id: str = Field(min_length=1)
    parent_delegation_id: str | None = None
    depth: int = Field(default=1, ge=0)
    agent_name: str
    task_summary: str
    context: str = ""  # cut to the budget of its depth
    constraints: list[str] = Field(default_factory=list)
    expected_output: str = ""
    response_language: str = "en"  # ISO 639-1
    client_id: str = ""
    project_id: str | None = None


class AgentOutput(Handed):
    """The answer of an agent. `structured_data` has its `status` (1, 0 or P), its `issues`, and why it failed."""

    delegation_id: str
    agent_name: str
    success: bool
    result: str  # complete; only what a parent sees of it is cut
    structured_data: dict[str, Any] = Field(default_factory=dict)
    artifacts: list[str] = Field(default_factory=list)
    changed_files: list[str] = Field(default_factory=list)
    sub_delegations: list[str] = Field(default_factory=list)
    confidence: float = Field(default=0.0, ge=0.0, le=1.0)
    needs_verification: bool = False

    @property
    def issues(self) -> list[str]:
        """The problems that the agent names itself."""
        return [str(one) for one in self.structured_data.get("issues", [])]

    @property
    def is_partial(self) -> bool:
        return self.structured_data.get("status") == "P"


class ExecutionPlan(Handed):
    """The delegations of a request. Groups follow each other; the members of a group may run side by side."""

    delegations: list[DelegationMessage]
    parallel_groups: list[list[str]]
    domain: DomainType


class AgentCapability(Handed):
    """What an agent is able to do, and by which tools."""

    name: str
    description: str
    domains: list[DomainType] = Field(default_factory=list)
    can_sub_delegate: bool = False
    max_depth: int = Field(default=DEEPEST, ge=1, le=DEEPEST)  # the deepest place at which it may stand
    tool_names: list[str] = Field(default_factory=list)


class DelegationState(TypedDict, total=False):
    """The fields of the graph's state that delegations need; each is what JSON is made of.

    How far a delegation is, its output and its figures are in its row (`store.Delegation`) alone.
    """

    execution_plan: dict[str, Any] | None
    completed_delegations: list[str]
    delegation_results: dict[str, str]  # what a parent sees, by delegation
    response_language: str
    domain: str | None


def get_budget(depth: int) -> int:
    """The tokens that a prompt at this depth may have."""
    return BUDGETS[min(max(depth, 0), len(BUDGETS) - 1)]
