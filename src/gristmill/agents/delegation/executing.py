"""Carries delegations out: each is tried by its agent, judged, and settled once, also if a worker is killed between."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from typing import Any, Literal, assert_never

from pydantic import Field, create_model

from gristmill.agents.acting import NO_ANSWER, Acted, act, name_artifacts
from gristmill.agents.budgets import cut_text
from gristmill.agents.delegation.briefing import DELEGATE, Agent, add_task, make_brief, summarise
from gristmill.agents.delegation.judging import (
    Accept,
    AskPerson,
    GiveUp,
    ObservedWork,
    OtherAgent,
    RetryAgent,
    Verdict,
    judge_output,
)
from gristmill.agents.delegation.model import (
    AgentCapability,
    AgentOutput,
    DelegationMessage,
    DelegationStatus,
    get_budget,
)
from gristmill.agents.delegation.planning import list_helpers, make_sub_delegation
from gristmill.agents.delegation.protocol import fail_output, parse_output
from gristmill.agents.delegation.store import (
    Delegation,
    begin_delegation,
    count_visits,
    interrupt_delegation,
    list_delegations,
    note_attempt,
    settle_delegation,
)
from gristmill.agents.effects import EffectRow, list_delegation_calls
from gristmill.agents.orchestrator.finalize import describe_limit
from gristmill.agents.run_handle import RunHandle
from gristmill.agents.runs import Cost, QuestionToAsk, Stepping, UserAnswer, WaitingForUser, load_answers
from gristmill.agents.specialists import GENERAL
from gristmill.agents.tools import Arguments, PastCall, Tool, ToolContext, ToolResult
from gristmill.ids import StepId

MOST_PARTS = 5  # sub-delegations of one delegation
SHARE = 2 / 3  # of its budget, that the context of a delegation may fill
APPROVE, REFUSE = "approve", "refuse"
ACCEPT, AGAIN, LEAVE_OUT = "accept", "try again", "leave it out"


@dataclass(frozen=True)
class AgentAttempt:
    """What came of one attempt of an agent."""

    output: AgentOutput
    work: ObservedWork
    cost: Cost


class Delegator:
    """Carries out the delegations of one run; `known` is what all of them may read: passages, memory, results."""

    def __init__(self, handle: RunHandle, agents: Mapping[str, Agent], known: str = "") -> None:
        self._handle = handle
        self._agents = agents
        self._known = known
        self._capabilities: Mapping[str, AgentCapability] = {name: one.capability for name, one in agents.items()}

    async def carry_group(
        self, group: Sequence[DelegationMessage], stacks: Mapping[str, Sequence[str]], parent: StepId | None = None
    ) -> list[Delegation]:
        """All members of a group, side by side if the settings say so; one that waits for a person stops no other."""
        work = (self.carry(one, stacks.get(one.delegation_id, ()), parent) for one in group)
        if self._handle.settings.agents.use_dag_execution:
            found = await asyncio.gather(*work, return_exceptions=True)
        else:  # each is begun when the one before has ended: what ends the run leaves none behind
            found = [await _catch_waiting(one) for one in work]
        errors = [one for one in found if isinstance(one, BaseException)]
        for error in sorted(errors, key=lambda one: isinstance(one, WaitingForUser)):
            raise error
        return [one for one in found if isinstance(one, Delegation)]

    async def carry(
        self, message: DelegationMessage, stack: Sequence[str] = (), parent: StepId | None = None
    ) -> Delegation:
        """One delegation until it is over. What was over before is not done again."""
        handle = self._handle
        async with handle.db.transaction() as tx:
            row = await begin_delegation(tx, handle.run.id, handle.fence, message)
        try:
            while not row.is_over:
                row = await self._go_on(message, row, stack, parent)
        except WaitingForUser:
            async with handle.db.transaction() as tx:
                await interrupt_delegation(tx, handle.run.id, handle.fence, row.delegation)
            raise
        return row

    async def _go_on(
        self, message: DelegationMessage, row: Delegation, stack: Sequence[str], parent: StepId | None
    ) -> Delegation:
        """The next thing that happens: a person's answer, or an attempt and its verdict."""
        if row.question is not None:
            return await self._hear(row, row.question)
        if limit := await self._find_limit():
            return await self._end(row, limit)
        tried = await self._try(message, row, stack, parent)
        row = replace(row, attempts=row.attempts + 1, output=tried.output.model_dump(mode="json"))
        others = self._list_others(row, stack)
        verdict = judge_output(tried.output, tried.work, attempts=row.attempts, others=others, asked=row.asked)
        return await self._follow(verdict, row, tried)

    async def _follow(self, verdict: Verdict, row: Delegation, tried: AgentAttempt) -> Delegation:
        match verdict:
            case Accept(notes=notes):
                return await self._settle(row, tried.output, DelegationStatus.COMPLETED, notes, tried.cost)
            case GiveUp(complaints=complaints):
                return await self._settle(row, tried.output, DelegationStatus.FAILED, complaints, tried.cost)
            case RetryAgent(complaints=complaints):
                return await self._note(replace(row, complaints=complaints), tried.cost)
            case OtherAgent(agent=agent, complaints=complaints):
                given_up = [*row.tried, row.agent]
                return await self._note(
                    replace(row, agent=agent, attempts=0, earlier=0, tried=given_up, complaints=complaints), tried.cost
                )
            case AskPerson(sentence=sentence):
                return await self._note(replace(row, question=sentence), tried.cost)
            case _:
                assert_never(verdict)

    def _list_others(self, row: Delegation, stack: Sequence[str]) -> list[str]:
        """Agents that may take a delegation over: they serve the same domain, or are the general one."""
        own = self._capabilities.get(row.agent)
        taken = {row.agent, *row.tried, *stack}
        return [
            name
            for name, one in self._capabilities.items()
            if name not in taken
            and row.depth <= one.max_depth
            and (not one.domains or (own is not None and set(one.domains) & set(own.domains)))
        ]

    async def _find_limit(self) -> str:
        """The sentence with which the run ends if it has visited as many nodes as it may; all delegations count."""
        most = self._handle.settings.agents.max_iterations
        async with self._handle.db.reading() as tx:
            visits = await count_visits(tx, self._handle.run.id)
        return describe_limit(most) if visits >= most else ""

    # --- what is written down

    async def _note(self, row: Delegation, cost: Cost | None = None) -> Delegation:
        handle = self._handle
        async with handle.db.transaction() as tx:
            await note_attempt(tx, handle.run.id, handle.fence, row, cost or Cost())
        return row

    async def _settle(
        self,
        row: Delegation,
        output: AgentOutput,
        state: DelegationStatus,
        notes: Sequence[str],
        cost: Cost | None = None,
    ) -> Delegation:
        handle = self._handle
        is_success = state == DelegationStatus.COMPLETED and output.success
        summary = summarise(output, state, notes)
        over = replace(row, state=state, success=is_success, summary=summary, complaints=list(notes), question=None)
        async with handle.db.transaction() as tx:
            await settle_delegation(tx, handle.run.id, handle.fence, over, cost or Cost())
            (settled,) = [one for one in await list_delegations(tx, handle.run.id) if one.delegation == row.delegation]
        return settled

    async def _end(self, row: Delegation, limit: str) -> Delegation:
        """End a delegation with what it has: the run has reached its limit."""
        names = {"delegation_id": row.delegation, "agent_name": row.agent}
        output = row.read_output() or fail_output(limit, **names)
        row = replace(row, output=output.model_dump(mode="json"))
        return await self._settle(row, output, DelegationStatus.FAILED, [limit, *row.complaints])

    async def _hear(self, row: Delegation, sentence: str) -> Delegation:
        """What a person says about a delegation; WaitingForUser until somebody says it."""
        output = row.read_output()
        assert output is not None, "a question is asked about an output"
        is_done = output.success
        asked = QuestionToAsk(
            f"{name_questions(row.delegation)}{row.asked + 1}",
            "clarify",
            sentence,
            choices=(ACCEPT if is_done else LEAVE_OUT, AGAIN),
            details={"delegation": row.delegation, "agent": row.agent, "task": row.task, "result": output.result},
        )
        (answer,) = await self._handle.ask(asked)
        if answer.choice == AGAIN:
            earlier = row.earlier + row.attempts
            return await self._note(replace(row, asked=row.asked + 1, question=None, attempts=0, earlier=earlier))
        if is_done:
            return await self._settle(row, output, DelegationStatus.COMPLETED, [f"{answer.by} accepted it."])
        return await self._settle(row, output, DelegationStatus.FAILED, [f"{answer.by} left it out.", *row.complaints])

    # --- an attempt

    async def _try(
        self, message: DelegationMessage, row: Delegation, stack: Sequence[str], parent: StepId | None
    ) -> AgentAttempt:
        # the settings may not know the agent any more that a plan was made for
        agent = self._agents.get(row.agent, GENERAL)
        context = self._cut_context(message)
        message = message.model_copy(update={"agent_name": row.agent, "context": context})
        said = await self._load_said(row.delegation)
        given = {
            **message.model_dump(mode="json"),
            "attempt": row.earlier + row.attempts + 1,
            "complaints": list(row.complaints),
            "said": [one.answer for one in said],
        }
        title = f"{row.delegation} {row.agent}: {message.task_summary}"
        async with self._handle.step("delegation", title=title, input=given, parent=parent) as step:
            helpers = list_helpers(message, stack, self._capabilities)
            parts = await self._finish_parts(message, stack, step)
            handle = self._equip(message, stack, helpers, step, parts)
            brief = make_brief(message, row, agent, handle, helpers, said)
            acted = await act(handle, replace(brief, past=[replay_part(one) for one in parts]), step)
            output = await self._read(row, acted)
            changing = {name for name, tool in handle.toolbox.tools.items() if tool.changes != "nothing"}
            complaints = list(agent.check(add_task(output, message, said), acted))
            step.output = {
                "output": output.model_dump(mode="json"),
                "acted": acted.describe(),
                "complaints": complaints,
            }
            cost = step.cost
        changes = [name for one in await self._list_changes(row.delegation) for name in name_artifacts(one)]
        work = ObservedWork(
            acted.calls, acted.changed_files, acted.artifacts, changes, acted.is_complete, complaints, changing
        )
        return AgentAttempt(output, work, cost)

    async def _read(self, row: Delegation, acted: Acted) -> AgentOutput:
        """The output that an agent gave, and what our own code knows of it beside."""
        names = {"delegation_id": row.delegation, "agent_name": row.agent}
        if not acted.is_complete and acted.text.startswith(NO_ANSWER):
            output = fail_output(acted.text, **names)
        else:
            output = parse_output(acted.text, **names)
        parts = [one.delegation for one in await self._list_parts(row.delegation)]
        artifacts = list(dict.fromkeys([*acted.artifacts, *output.artifacts]))
        known = {"changed_files": list(acted.changed_files), "artifacts": artifacts, "sub_delegations": parts}
        return output.model_copy(update=known)

    async def _load_said(self, delegation: str) -> list[UserAnswer]:
        """What persons have said about a delegation when they let its agent try again."""
        async with self._handle.db.reading() as tx:
            answers = await load_answers(tx, self._handle.run.id)
        return [one for one in answers if one.key.startswith(name_questions(delegation)) and one.answer]

    def _cut_context(self, message: DelegationMessage) -> str:
        """What is known."""
        whole = "\n\n".join(filter(None, (message.context, self._known)))
        return cut_text(whole, int(self._handle.budget(get_budget(message.depth)) * SHARE))

    # --- below a delegation

    async def _finish_parts(
        self, message: DelegationMessage, stack: Sequence[str], step: Stepping
    ) -> Sequence[Delegation]:
        """The parts that were given away before this attempt, each brought to its end."""
        done: list[Delegation] = []
        for one in await self._list_parts(message.delegation_id):
            number = int(one.delegation.rpartition(".")[2])
            part = make_sub_delegation(message, number, one.agent, one.task)
            done.append(one if one.is_over else await self.carry(part, [*stack, message.agent_name], step.id))
        return done

    async def _ask_about(self, part: DelegationMessage, before: Sequence[Delegation]) -> ToolResult | None:
        """A person says whether an agent that has reached the outside is given another part after a restart.

        The model may only have worded the same part anew: nobody but a person knows. None: it goes on.
        """
        same = [one for one in before if one.agent == part.agent_name]
        if not same or any(one.delegation == part.delegation_id for one in before):
            return None
        done = [
            one for one in same if any(row.changes == "outside" for row in await self._list_changes(one.delegation))
        ]
        if not done:
            return None
        words = sha256(" ".join(part.task_summary.split()).casefold().encode()).hexdigest()[:12]
        sentence = (
            f"{part.agent_name} has done this before: “{done[-1].task}”. After an interruption it is to do this: "
            f"“{part.task_summary}”. Is it something else, and shall it be done, too?"
        )
        details = {"delegation": part.delegation_id, "agent": part.agent_name, "done": done[-1].summary}
        asked = QuestionToAsk(f"part {part.delegation_id} {words}", "clarify", sentence, (APPROVE, REFUSE), details)
        (answer,) = await self._handle.ask(asked)
        if answer.choice == APPROVE:
            return None
        said = f"{answer.by} said no: it was done before. {answer.answer}".strip()
        return ToolResult(f"{said}\n{done[-1].summary}", is_error=True, is_refused=True)

    def _equip(
        self,
        message: DelegationMessage,
        stack: Sequence[str],
        helpers: Sequence[str],
        step: Stepping,
        before: Sequence[Delegation] = (),
    ) -> RunHandle:
        """A handle with one tool more, by which an agent gives a part of its task away."""
        if not helpers:
            return self._handle

        async def delegate(arguments: Any, context: ToolContext) -> ToolResult:
            del context
            part = await self._find_part(message, arguments.agent, arguments.task)
            if part is None:
                return ToolResult(f"You have given away {MOST_PARTS} parts: do the rest yourself.", is_error=True)
            if (refused := await self._ask_about(part, before)) is not None:
                return refused
            done = await self.carry(part, [*stack, message.agent_name], step.id)
            data = {"delegation": done.delegation, "success": done.success}
            return ToolResult(done.summary, data, f"the agent {done.agent}", is_error=done.state == "failed")

        described = "; ".join(f"{name}: {self._capabilities[name].description}" for name in helpers)
        shape = make_arguments(tuple(helpers))
        sentence = f"Let another agent do a part of the task. {described}"
        tool = Tool[Any](DELEGATE, sentence, shape, delegate, gives_away=True)
        return replace(self._handle, toolbox=self._handle.toolbox.add(tool))

    async def _find_part(self, message: DelegationMessage, agent: str, task: str) -> DelegationMessage | None:
        """The part with this task, the same as before an interruption; None if there are too many."""
        rows = await self._list_parts(message.delegation_id)
        wanted = " ".join(task.split()).casefold()
        same = next((one for one in rows if " ".join(one.task.split()).casefold() == wanted), None)
        if same is None and len(rows) >= MOST_PARTS:
            return None
        number = int(same.delegation.rpartition(".")[2]) if same else len(rows) + 1
        return make_sub_delegation(message, number, agent, task)

    async def _list_changes(self, delegation: str) -> list[EffectRow]:
        """The effects of a delegation and of its parts that have changed something, or may have."""
        async with self._handle.db.reading() as tx:
            rows = await list_delegation_calls(tx, self._handle.run.id, delegation)
        return [one for one in rows if one.may_have_acted]

    async def _list_parts(self, delegation: str) -> list[Delegation]:
        async with self._handle.db.reading() as tx:
            return [one for one in await list_delegations(tx, self._handle.run.id) if one.parent == delegation]


def name_questions(delegation: str) -> str:
    """How the keys of questions to a person about a delegation begin."""
    return f"delegation {delegation}/"


def replay_part(part: Delegation) -> PastCall:
    """A part that is over, as the call by which it was given away."""
    data = {"delegation": part.delegation, "success": part.success}
    result = ToolResult(part.summary, data, f"the agent {part.agent}", is_error=part.state == "failed")
    return PastCall(DELEGATE, {"agent": part.agent, "task": part.task}, result)


@lru_cache(maxsize=64)  # the same agents give parts to the same helpers, in run after run
def make_arguments(helpers: tuple[str, ...]) -> type[Arguments]:
    """The arguments of the tool that gives a part of a task to one of these agents."""
    make: Any = create_model  # no type checker knows a type that is made at run time
    task = (str, Field(min_length=1, max_length=4_000, description="What it shall do, complete in itself."))
    return make("Delegate", __base__=Arguments, agent=(Literal[helpers], ...), task=task)


async def _catch_waiting(work: Any) -> Delegation | WaitingForUser:
    try:
        return await work
    except WaitingForUser as waiting:
        return waiting
