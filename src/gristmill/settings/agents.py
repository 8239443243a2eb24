"""What agents may use, and how a run goes: the time and memory of commands, a mail server, which graph carries it."""

from datetime import timedelta

from pydantic import Field

from gristmill.settings.mail_server import MailServer
from gristmill.settings.values import Bytes, Duration, Slice


class AgentsSettings(Slice):
    """What agents may use."""

    command_timeout: Duration = Field(
        default=timedelta(minutes=10), description="How long a command in the sandbox may run."
    )
    command_memory: Bytes = Field(
        default=2 * 1024**3, ge=1, description="The memory that a command in the sandbox and its children may use."
    )
    command_processes: int = Field(
        default=200, ge=1, description="How many processes a command in the sandbox may have at once."
    )
    command_disk: Bytes = Field(
        default=5 * 1024**3,
        ge=1,
        description="The disk that a workspace may take, without git's own files: a command beyond it is ended.",
    )
    readable: tuple[str, ...] = Field(
        default=(), description="Folders that commands in the sandbox may read beside /usr: compilers, packages."
    )
    keep_workspaces: Duration = Field(
        default=timedelta(days=7), description="How long the workspace of a run that is over is kept."
    )
    keep_runs: Duration = Field(
        default=timedelta(days=90),
        gt=timedelta(),
        description="How long a run that is over is kept, with its steps, questions and effects.",
    )
    max_iterations: int = Field(
        default=500,
        ge=1,
        description="How many nodes a run visits, and delegations it tries, before it must end with what it has.",
    )
    max_rounds: int = Field(
        default=12, ge=1, description="How often an agent calls a tool within one step before it must answer."
    )
    prompt_tokens: int = Field(
        default=48_000, ge=500, description="The most tokens of one prompt: what the model has room for."
    )
    cloud_model: str = Field(
        default="",
        description="A stronger model for steps at which the usual one fails, if a person agrees.",
    )
    smtp: MailServer | None = Field(
        default=None,
        description="The server that sends mail for agents, as a table in gristmill.toml.",
    )
    use_delegation_graph: bool = Field(
        default=False, description="Whether runs are carried by the delegation graph instead of the standard one."
    )
    use_specialist_agents: bool = Field(
        default=False, description="Whether delegations go to specialists; else one general agent does everything."
    )
    use_dag_execution: bool = Field(
        default=False, description="Whether delegations of the same parallel group run side by side."
    )
    use_procedural_memory: bool = Field(
        default=False, description="Whether runs learn procedures from runs that succeeded, and follow them."
    )
