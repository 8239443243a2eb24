"""The one seam through which a run acts: arguments are checked, origins found, the policy asked, the ledger kept."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import orjson
from pydantic import ValidationError

from gristmill.agents.effects import (
    Allow,
    Begun,
    Effect,
    EffectFailed,
    EffectResult,
    EffectRow,
    Ledger,
    Verdict,
    list_delegation_calls,
)
from gristmill.agents.policy import CopiedWords, Policy, Proposal, Target, is_named, judge, load_policy
from gristmill.agents.provenance import Origin, RunWords, find_copied, find_origin, lower_ascii
from gristmill.agents.runs import ReadText, keep_text
from gristmill.agents.tools.model import AnyTool, Arguments, PreparedEffect, ToolContext, ToolResult
from gristmill.errors import Permanent, Refused, Transient, Unreachable
from gristmill.settings import explain_reason

LONGEST_RESULT = 60_000  # characters that a model is shown
DELEGATION = re.compile(r"delegation ([\w-]+)")  # of the plan: d1 of d1, of d1~general and of d1.2


@dataclass(frozen=True)
class PastCall:
    """A call that a run made at a place of its plan before it was interrupted, and what came of it."""

    tool: str
    arguments: Mapping[str, Any]
    result: ToolResult


ERROR = "the error of"  # somebody outside may have written it


class Toolbox:
    """The tools of one run. `at(place)` gives the calls at one place of the plan their keys."""

    def __init__(self, context: ToolContext, ledger: Ledger, tools: Iterable[AnyTool], words: RunWords) -> None:
        self._context = context
        self._ledger = ledger
        self._kit = {tool.name: tool for tool in tools}
        self._tools = self._kit  # of the kit, those that are offered here
        self._words = words

    @property
    def context(self) -> ToolContext:
        return self._context

    def select(self, names: Iterable[str]) -> "Toolbox":
        """The same toolbox with fewer tools, for one specialist; what it reads, all know."""
        return self._copy_with(self._kit, {name: self._tools[name] for name in names})

    def add(self, tool: AnyTool) -> "Toolbox":
        """The same toolbox with one tool more; what it reads, all know."""
        return self._copy_with({**self._kit, tool.name: tool}, {**self._tools, tool.name: tool})

    def _copy_with(self, kit: dict[str, AnyTool], tools: dict[str, AnyTool]) -> "Toolbox":
        copied = Toolbox(self._context, self._ledger, [], self._words)
        copied._kit, copied._tools = kit, tools
        return copied

    @property
    def tools(self) -> Mapping[str, AnyTool]:
        return self._tools

    @property
    def kit(self) -> Mapping[str, AnyTool]:
        """All tools of the run, also those that are not offered here: calls from before may have used them."""
        return self._kit

    def at(self, place: str) -> "Calls":
        return Calls(self, self._ledger, place)

    async def read(self, read: ReadText) -> None:
        """A text comes in that no person said: from now on its words are nobody's orders."""
        self._words.read.append(read)
        async with self._context.db.transaction() as tx:
            await keep_text(tx, self._context.run.id, read)

    def is_watched(self, name: str) -> bool:
        return name in self._tools and self._tools[name].is_watched

    async def call(self, name: str, arguments: Mapping[str, Any] | str, key: str) -> ToolResult:
        """Call a tool as a model asks for it. A mistake is a result; what waits for a person raises WaitingForUser."""
        return await self._call(self._tools, name, arguments, key)

    async def resume(self, row: EffectRow) -> ToolResult:
        """Bring a call from before to its end, also if its tool is not offered here any more."""
        return await self._call(self._kit, row.tool, row.arguments, row.key)

    async def _call(
        self, tools: Mapping[str, AnyTool], name: str, arguments: Mapping[str, Any] | str, key: str
    ) -> ToolResult:
        tool = tools.get(name)
        if tool is None:
            return _complain(f"There is no tool “{name}”: use one of {', '.join(sorted(tools))}.")
        try:
            checked = tool.arguments.model_validate(_read_arguments(arguments))
        except ValidationError as error:
            return _complain(f"The arguments of {name} are wrong: {'; '.join(_explain_all(error))}.")
        except ValueError as error:
            return _complain(f"The arguments of {name} are no JSON object: {error}.")
        result = await self._call_checked(tool, checked, key)
        if not result.is_error or result.source:
            said = leave_out_arguments(checked, result.text) if result.source.startswith(ERROR) else result.text
            await self.read(ReadText(result.source or f"the result of {name}", said))
        return _shorten(result)

    async def _call_checked(self, tool: AnyTool, arguments: Arguments, key: str) -> ToolResult:
        try:
            if not tool.is_watched:
                return await tool.call(arguments, self._context)
            return await self._call_watched(tool, arguments, key)
        except Unreachable:
            raise  # the database: the run is tried again
        except EffectFailed as error:
            source = f"{ERROR} {tool.name}" if tool.changes == "outside" and not error.is_refused else ""
            return ToolResult(str(error), is_error=True, is_refused=error.is_refused, source=source)
        except Refused as error:
            return _complain(str(error))  # our own words
        except Permanent as error:
            return replace(_complain(str(error)), source=f"{ERROR} {tool.name}")
        except Transient as error:
            if tool.changes != "nothing":
                raise  # the ledger says how the next attempt goes on
            return replace(_complain(str(error)), source=f"{ERROR} {tool.name}")

    async def _call_watched(self, tool: AnyTool, arguments: Arguments, key: str) -> ToolResult:
        known = await self._ledger.find(key)
        prepared = _restore_prepared(known) if known else await tool.prepare(arguments, self._context)
        async with self._context.db.reading() as tx:
            policy = await load_policy(tx, self._context.place)
        targets = await self._find_targets(tool, arguments, policy)
        proposal = Proposal(
            tool.name,
            tool.changes,
            targets,
            prepared.files,
            prepared.branch,
            prepared.pushes,
            self._find_copied(tool, arguments) if tool.name in policy.tools else (),
            await self._has_reached(tool, targets, key),
        )
        if known is None and tool.changes == "nothing" and isinstance(judge(proposal, policy), Allow):
            return await tool.call(arguments, self._context)

        def decide(changed_before: Sequence[str]) -> Verdict:
            return judge(proposal, policy, changed_before)

        async def act(begun: Begun) -> EffectResult:
            found = await tool.call(arguments, self._context.at_work_on(begun))
            return EffectResult(found.text, {"data": dict(found.data), "source": found.source})

        effect = _make_effect(tool, arguments, key, prepared, proposal.targets)
        done = await self._ledger.perform(effect, act, decide)
        return ToolResult(done.text, done.data.get("data", {}), done.data.get("source", ""))

    async def _find_targets(self, tool: AnyTool, arguments: Arguments, policy: Policy) -> list[Target]:
        """The values that choose whom or what the call reaches, each with the one who said it."""
        words = self._words
        if "path" in tool.targets.values():
            words = words.in_workspace(await (await self._context.files()).list_files())
        found: list[Target] = []
        for name, kind in tool.targets.items():
            for value in _list_values(getattr(arguments, name)):
                target = Target(name, kind, value, find_origin(kind, value, words))
                is_open = not target.origin.is_trusted and target.origin.who != "denied"
                is_policys = is_open and is_named(target, policy)
                found.append(Target(name, kind, value, Origin("policy")) if is_policys else target)
        return found

    def _find_copied(self, tool: AnyTool, arguments: Arguments) -> list[CopiedWords]:
        """The free texts of a call that have words of texts that were read."""
        given = arguments.model_dump(mode="json")
        free = [(name, text) for name in given if name not in tool.targets for text in _list_strings(given[name])]
        found = [CopiedWords(name, find_copied(text, self._words)) for name, text in free]
        return [one for one in found if one.sources]

    async def _has_reached(self, tool: AnyTool, targets: Sequence[Target], key: str) -> bool:
        """Whether another call for the same piece of work has reached, or may have reached, the same targets."""
        if tool.changes != "outside" or tool.sets_state:
            return False
        rows = await self._list_rivals(key.rpartition("#")[0])
        begun = [row for row in rows if row.key != key and row.tool == tool.name and row.may_have_acted]
        return any(are_same_targets(tool, targets, row) for row in begun)

    async def _list_rivals(self, place: str) -> list[EffectRow]:
        """The effects for the same piece of work: for a delegation of the plan, those of all its agents and parts."""
        found = DELEGATION.match(place)
        if found is None:
            return await self._ledger.list_calls(place)
        async with self._context.db.reading() as tx:
            return await list_delegation_calls(tx, self._context.run.id, found[1])


def are_same_targets(tool: AnyTool, targets: Sequence[Target], row: EffectRow) -> bool:
    """Whether a call would reach what an effect of the same tool has reached; one recipient of several is enough."""
    now = {(one.argument, lower_ascii(one.value.strip())) for one in targets}
    before = {(one["argument"], lower_ascii(str(one["value"]).strip())) for one in row.origins}
    recipients = [name for name, kind in tool.targets.items() if kind == "recipient"]
    if recipients:
        return bool({value for name, value in now if name in recipients} & {value for _, value in before})
    return now == before


class Calls:
    """The calls at one place of the plan. Those that may change something are numbered: the number is their key."""

    def __init__(self, toolbox: Toolbox, ledger: Ledger, place: str) -> None:
        self._toolbox = toolbox
        self._ledger = ledger
        self._place = place
        self._number = 0

    async def call(self, name: str, arguments: Mapping[str, Any] | str) -> ToolResult:
        key = f"{self._place}#{self._number}"
        if self._toolbox.is_watched(name):
            self._number += 1
        return await self._toolbox.call(name, arguments, key)

    async def resume(self) -> list[PastCall]:
        """The calls that were made here before an interruption, each brought to its end; the next ones come after them.

        For a loop whose model would not ask for exactly the same again: it is told what it has done already.
        """
        past: list[PastCall] = []
        for row in await self._ledger.list_calls(self._place):
            result = await self._toolbox.resume(row)
            past.append(PastCall(row.tool, row.arguments, result))
            self._number = max(self._number, int(row.key.rpartition("#")[2]) + 1)
        return past

    async def has_asked_for(self, tool: str) -> bool:
        """Whether an effect of this tool was intended here before."""
        return any(row.tool == tool for row in await self._ledger.list_calls(self._place))

    async def list_done(self) -> list[EffectRow]:
        """The effects of this place that were done, whoever did them."""
        return [row for row in await self._ledger.list_calls(self._place) if row.state == "done"]


def _read_arguments(arguments: Mapping[str, Any] | str) -> Any:
    return orjson.loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments)


def _explain_all(error: ValidationError) -> Iterator[str]:
    for one in error.errors():
        yield f"{'.'.join(map(str, one['loc'])) or 'it'}: {explain_reason(one)}"


def _list_values(value: Any) -> list[str]:
    if value is None or value == "":
        return []
    return [str(one) for one in cast(list[Any], value)] if isinstance(value, list) else [str(value)]


def _complain(sentence: str) -> ToolResult:
    return ToolResult(sentence, is_error=True)


def leave_out_arguments(arguments: Arguments, complaint: str) -> str:
    """An error without what the model said itself: only the words that came in with it are somebody else's."""
    for value in sorted(_list_strings(arguments.model_dump()), key=len, reverse=True):
        complaint = complaint.replace(value, "…")
    return complaint


def _list_strings(value: Any) -> Iterator[str]:
    match value:
        case str():
            if value:
                yield value
        case dict():
            for one in value.values():  # pyright: ignore[reportUnknownVariableType] JSON
                yield from _list_strings(one)
        case list() | tuple():
            for one in value:  # pyright: ignore[reportUnknownVariableType] JSON
                yield from _list_strings(one)
        case _:
            pass


def _shorten(result: ToolResult) -> ToolResult:
    if len(result.text) <= LONGEST_RESULT:
        return result
    text = f"{result.text[:LONGEST_RESULT]}\n… ({len(result.text) - LONGEST_RESULT:,} more characters)"
    return replace(result, text=text)


def _make_effect(
    tool: AnyTool, arguments: Arguments, key: str, prepared: PreparedEffect, targets: Sequence[Target]
) -> Effect:
    kept = {"data": dict(prepared.data), "branch": prepared.branch, "pushes": prepared.pushes}
    origins = [
        {
            "argument": one.argument,
            "value": one.value,
            "who": one.origin.who,
            "sources": list(one.origin.sources),
            "sentence": str(one.origin),
        }
        for one in targets
    ]
    return Effect(
        key,
        tool.name,
        arguments.model_dump(mode="json"),
        tool.summarise(arguments) or f"{tool.name}.",
        tool.changes,
        tool.repeatable,
        kept,
        list(prepared.files),
        origins,
    )


def _restore_prepared(row: EffectRow) -> PreparedEffect:
    kept = row.prepared
    return PreparedEffect(kept.get("data", {}), list(row.files), kept.get("branch"), bool(kept.get("pushes")))
