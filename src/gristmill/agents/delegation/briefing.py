"""Puts a delegation into words: the brief for its agent, and the summary of its output for its parent."""

from collections.abc import Callable, Sequence
from typing import Protocol

from gristmill.agents.acting import Acted, Brief, describe_tools, narrow_tools
from gristmill.agents.budgets import cut_text
from gristmill.agents.delegation.model import (
    AgentCapability,
    AgentOutput,
    DelegationMessage,
    DelegationStatus,
    DomainType,
    get_budget,
)
from gristmill.agents.delegation.protocol import PROTOCOL
from gristmill.agents.delegation.store import Delegation
from gristmill.agents.orchestrator.execute_step import TOOLS_OF
from gristmill.agents.orchestrator.goals import guess_kind
from gristmill.agents.orchestrator.intake import is_order
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import UserAnswer
from gristmill.models import fence_text, tokens

DELEGATE = "delegate"  # the tool that gives a part away
SUMMARY = 400  # tokens of a result that a parent sees
MOST_DESCRIBED = 1 / 3  # of its budget, that the tools of an agent may take
LANGUAGE = "Write in English: the whole answer is translated at its end. Quote names, numbers and wording as they are."
HELPERS = "You may give a part of the task to another agent by the tool delegate. Say everything that it needs to know."
FORM = "The text of your answer has the form that begins with STATUS."


class Agent(Protocol):
    """Whoever does a delegation: a specialist, or the general agent."""

    @property
    def capability(self) -> AgentCapability: ...

    @property
    def instructions(self) -> str:
        """Who it is and how it works."""
        ...

    @property
    def check(self) -> Callable[[AgentOutput, Acted], Sequence[str]]:
        """What is wrong with an output of it, by rules of its own."""
        ...


def add_task(output: AgentOutput, message: DelegationMessage, said: Sequence[UserAnswer]) -> AgentOutput:
    """An output as the rules of its agent look at it: what the agent was told, it may repeat."""
    words = "\n".join([message.task_summary, *(one.answer for one in said), message.context])
    return output.model_copy(update={"structured_data": {**output.structured_data, "task": words}})


def make_brief(
    message: DelegationMessage,
    row: Delegation,
    agent: Agent,
    handle: RunHandle,
    helpers: Sequence[str],
    said: Sequence[UserAnswer] = (),
) -> Brief:
    """What the agent is told. Effects have the id of the delegation as their key, in all attempts of an agent."""
    capability = agent.capability
    wanted = "\n".join([message.task_summary, *(one.answer for one in said)])
    own = narrow_tools([name for name in capability.tool_names if name in handle.toolbox.tools], wanted)
    is_cramped = fills_prompt(own, message, handle)
    tools = choose_fitting(own, wanted) if is_cramped else own
    form = FORM if PROTOCOL in agent.instructions else f"{FORM} {PROTOCOL}"
    role = [agent.instructions.strip(), LANGUAGE, *([HELPERS] if helpers else []), form]
    place = f"delegation {row.delegation}"
    return Brief(
        place=f"{place}~{row.agent}" if row.tried else place,
        role="\n".join(role),
        task=describe_task(message, row.complaints, said),
        context=message.context,
        tools=[*tools, DELEGATE] if helpers else tools,
        expects_change=is_cramped and is_order(message.task_summary) and guess_kind(message.task_summary) != "research",
        budget=handle.budget(get_budget(message.depth)),
        rounds=handle.settings.agents.max_rounds,
        coding=capability.domains[:1] == [DomainType.CODE],
        earlier=row.earlier + row.attempts,
    )


def fills_prompt(tools: Sequence[str], message: DelegationMessage, handle: RunHandle) -> bool:
    """Whether to describe these tools would fill the prompt of a small model."""
    room = int(handle.budget(get_budget(message.depth)) * MOST_DESCRIBED)
    return tokens.count(describe_tools({name: handle.toolbox.tools[name] for name in tools})) > room


def choose_fitting(tools: Sequence[str], task: str) -> list[str]:
    """Those that a task needs by its words; all of them if none is left."""
    fitting = TOOLS_OF[guess_kind(task)]
    return [name for name in tools if name in fitting] or list(tools)


def describe_task(message: DelegationMessage, complaints: Sequence[str] = (), said: Sequence[UserAnswer] = ()) -> str:
    """The task with what is expected, what must be kept to, what was wrong the last time, and what persons have said.

    The words of a person are an order: they stand outside of the fence around what was wrong.
    """
    parts = [message.task_summary]
    if message.expected_output:
        parts.append(f"Expected: {message.expected_output}")
    parts += [f"Keep to this: {one}" for one in message.constraints]
    if complaints:
        parts.append(fence_text("\n".join(complaints), "list of what was wrong with the last attempt"))
    parts += [f"A person said: {one.answer}" for one in said]
    return "\n".join(parts)


def summarise(output: AgentOutput, state: DelegationStatus, notes: Sequence[str] = ()) -> str:
    """What a parent sees of an output."""
    how = "failed" if state == DelegationStatus.FAILED else "done" if output.success else "done in part"
    parts = [f"{output.delegation_id} ({output.agent_name}), {how}: {cut_text(output.result, SUMMARY) or 'no result'}"]
    if output.artifacts:
        parts.append(f"Artifacts: {', '.join(output.artifacts[:20])}")
    if issues := list(dict.fromkeys([*output.issues, *notes])):
        parts.append(f"Issues: {' '.join(issues)[:600]}")
    return "\n".join(parts)
