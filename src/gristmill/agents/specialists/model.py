"""What a specialist is: what it is able to do, how it works, and how its result is checked by rule."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gristmill.agents.acting import Acted
from gristmill.agents.delegation.model import DEEPEST, AgentCapability, AgentOutput, DomainType
from gristmill.agents.delegation.protocol import PROTOCOL

HONESTY = "Say only what your tools have shown. What could not be done, say so: a true 0 is better than a false 1."

Check = Callable[[AgentOutput, Acted], Sequence[str]]  # sentences about what is wrong; none: nothing is


@dataclass(frozen=True)
class Specialist:
    """An agent for one kind of work. Its tools are the fewest with which it can do it."""

    capability: AgentCapability
    instructions: str
    check: Check

    @property
    def name(self) -> str:
        return self.capability.name


def make_specialist(
    name: str,
    description: str,
    domains: Sequence[DomainType],
    tools: Sequence[str],
    instructions: str,
    check: Check,
    *,
    delegates: bool = False,
) -> Specialist:
    """A specialist whose instructions end with the protocol of answers. One that delegates leaves room below itself."""
    capability = AgentCapability(
        name=name,
        description=description,
        domains=list(domains),
        can_sub_delegate=delegates,
        max_depth=DEEPEST - 1 if delegates else DEEPEST,
        tool_names=list(tools),
    )
    return Specialist(capability, f"{instructions.strip()}\n\n{HONESTY}\n\n{PROTOCOL}", check)
