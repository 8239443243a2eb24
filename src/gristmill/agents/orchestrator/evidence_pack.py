"""The node that gathers what is known: passages that fit, the memory of the item, and what is remembered."""

from gristmill.agents.orchestrator.knowing import find_evidence, recall_item
from gristmill.agents.orchestrator.prompts import load_said
from gristmill.agents.orchestrator.state import OrchestratorState, Update
from gristmill.agents.remembering import recall_for
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import Stepping


async def evidence_pack(state: OrchestratorState, handle: RunHandle, step: Stepping) -> Update:
    said = [one.answer for one in await load_said(handle)]
    evidence = await find_evidence(handle, step, " ".join([state.get("goal", ""), handle.run.title, *said]).strip())
    known = "\n\n".join(one for one in (await recall_item(handle), await recall_for(handle)) if one)
    step.output = {
        "passages": [{name: one[name] for name in ("number", "document", "page", "title")} for one in evidence],
        "known": known,
    }
    return {"evidence": evidence, "known": known}
