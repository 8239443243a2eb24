"""`gristmill agents`: everybody who may do something, and what each has cost and managed."""

from typing import Any

from desk import within

from gristmill.agents import RunWish, start_run
from gristmill.agents.delegation.model import AgentOutput, DelegationMessage, DelegationStatus
from gristmill.agents.delegation.store import begin_delegation, settle_delegation
from gristmill.agents.runs import Cost, take_over
from gristmill.db import Tx


async def delegate_once(tx: Tx) -> None:
    run = await start_run(tx, RunWish("Look.", "anna"))
    fence = await take_over(tx, run)
    assert fence is not None
    message = DelegationMessage(delegation_id="d1", agent_name="research", task_summary="Look.")
    row = await begin_delegation(tx, run, fence, message)
    output = AgentOutput(delegation_id="d1", agent_name="research", success=True, result="Seen.")
    over = vars(row) | {"state": DelegationStatus.COMPLETED, "success": True, "output": output.model_dump(mode="json")}
    await settle_delegation(tx, run, fence, type(row)(**over), Cost("small", 40, 2, 3))


def test_every_agent_is_listed_with_its_figures(cli: Any, url: str) -> None:
    within(url, delegate_once)
    found = {one["name"]: one for one in cli("agents", "--json").json}
    assert len(found) == 20
    assert (found["research"]["delegations"], found["research"]["succeeded"]) == (1, 1)
    assert (found["research"]["tokens"], found["research"]["calls"]) == (42, 3)
    assert found["coding"]["delegations"] == 0
    assert found["general"]["tool_names"]
    assert "research" in cli("agents").out
