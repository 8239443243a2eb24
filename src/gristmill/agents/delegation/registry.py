"""The agents that a run may delegate to: the specialists if the settings say so, and always the general one."""

from collections.abc import Mapping

from gristmill.agents.delegation.model import AgentCapability
from gristmill.agents.specialists import GENERAL, SPECIALISTS, Specialist
from gristmill.settings import AgentsSettings


def list_agents(settings: AgentsSettings) -> dict[str, Specialist]:
    """By name, in the order in which a plan is offered them; the general one is the last resort."""
    chosen: Mapping[str, Specialist] = SPECIALISTS if settings.use_specialist_agents else {}
    return {**chosen, GENERAL.capability.name: GENERAL}


def list_capabilities() -> list[AgentCapability]:
    """What every agent is able to do, whether the settings use it or not."""
    return [one.capability for one in (*SPECIALISTS.values(), GENERAL)]
