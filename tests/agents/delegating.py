"""Agents, answers and plans for tests of the delegation graph."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from workbench import Workbench

from gristmill.agents.delegation.model import AgentCapability, DelegationMessage, DomainType
from gristmill.agents.delegation.store import Delegation, list_delegations
from gristmill.agents.run_handle import RunHandle
from gristmill.models import FakeLlm

CODE, RESEARCH = DomainType.CODE, DomainType.RESEARCH
Reply = Any


def check_nothing(output: Any, acted: Any) -> Sequence[str]:
    return ()


@dataclass(frozen=True)
class MadeUpAgent:
    """An agent that a test makes up."""

    capability: AgentCapability
    instructions: str
    check: Callable[[Any, Any], Sequence[str]]


def make_agent(
    name: str, *tools: str, domains: Sequence[DomainType] = (CODE,), check: Any = check_nothing, **more: Any
) -> MadeUpAgent:
    capability = AgentCapability(
        name=name, description=f"Does {name}.", domains=list(domains), tool_names=list(tools), **more
    )
    return MadeUpAgent(capability, f"You are {name}.", check)


FILES = ("read_file", "write_file", "patch_file")
AGENTS = {
    one.capability.name: one
    for one in (
        make_agent("coding", *FILES, can_sub_delegate=True),
        make_agent("git", "git_branch", "git_commit", "git_push"),
        make_agent("test", "read_file", "run_tests", can_sub_delegate=True),
        make_agent("research", "search_knowledge", "read_document", domains=[RESEARCH], can_sub_delegate=True),
        make_agent("email", "send_mail", domains=[DomainType.COMMUNICATION]),
    )
}


def use(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"thought": "next", "move": {"tool": tool, "arguments": arguments}}


def report(result: str, status: str = "1", **more: str) -> dict[str, Any]:
    """The answer of an agent in the form that it was asked for."""
    lines = [f"STATUS: {status}", f"RESULT: {result}"]
    lines += [f"{name.upper()}: {value}" for name, value in {"needs_verification": "false", **more}.items()]
    return use("answer", text="\n".join(lines))


def message(id_: str = "d1", agent: str = "coding", task: str = "Mend add.", **more: Any) -> DelegationMessage:
    return DelegationMessage(delegation_id=id_, agent_name=agent, task_summary=task, **more)


@dataclass
class Script:
    """Answers by who is asked: each agent, and each node that asks, has answers of its own, given one after another.

    The last answer is given again. So members of a group may ask in any order.
    """

    replies: Mapping[str, Sequence[Reply]]
    asked: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._given: dict[str, int] = {}

    def answer(self, words: str) -> Reply:
        who = next((name for name in self.replies if name in words), None)
        assert who is not None, f"nobody answers:\n{words[:1_500]}"
        self.asked.append(who)
        n = self._given.get(who, 0)
        self._given[who] = n + 1
        reply = self.replies[who][min(n, len(self.replies[who]) - 1)]
        return reply(words) if callable(reply) else reply

    def make_llm(self) -> FakeLlm:
        return FakeLlm(self.answer)


NODES = {
    "plan": "You plan how a request",
    "merge": "You put the results",
    "translate": "You translate into",
    "everybody": "Your tools:",
    "intake": "Say which category",
}
UNDERSTOOD = {"category": "SINGLE_TASK", "goal": "Do what was asked for.", "is_clear": True, "question": ""}


def script(**replies: Reply) -> Script:
    """`coding=[…]` answers whoever is told “You are coding.”; `plan`, `merge` and `translate` answer nodes."""
    listed: dict[str, list[Reply]] = {
        name: value if isinstance(value, list) else [value] for name, value in replies.items()
    }
    listed.setdefault("intake", [UNDERSTOOD])
    return Script({NODES.get(name, f"You are {name}."): value for name, value in listed.items()})


def plan(*delegations: tuple[str, str, str], groups: Sequence[Sequence[str]] = (), domain: str = "code") -> Reply:
    """A plan as a model writes it: id, agent and task of each delegation."""
    drafts = [{"id": id_, "agent": agent, "task": task} for id_, agent, task in delegations]
    return {"domain": domain, "delegations": drafts, "parallel_groups": [list(group) for group in groups]}


def find_asked(llm: FakeLlm, node: str) -> list[str]:
    """What a node or an agent was told."""
    return [one for one in llm.questions if NODES.get(node, f"You are {node}.") in one]


def set_flags(handle: RunHandle, **flags: Any) -> RunHandle:
    """The handle with other settings of agents."""
    context = handle.toolbox.context
    agents = context.settings.agents.model_copy(update=flags)
    settings = context.settings.model_copy(update={"agents": agents})
    toolbox = handle.toolbox.select(handle.toolbox.tools)
    toolbox._context = replace(context, settings=settings)  # pyright: ignore[reportPrivateUsage]
    return replace(handle, toolbox=toolbox)


def open_handle(bench: Workbench, scripted: Script | FakeLlm | None, **flags: Any) -> RunHandle:
    llm = scripted.make_llm() if isinstance(scripted, Script) else scripted
    return set_flags(bench.make_handle(llm), **flags)


async def look(bench: Workbench) -> dict[str, Delegation]:
    async with bench.db.reading() as tx:
        return {one.delegation: one for one in await list_delegations(tx, bench.run)}
