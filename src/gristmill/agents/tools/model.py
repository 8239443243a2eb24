"""What a tool is: typed arguments, a sentence for the model, what it changes, and who chose its target."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Generic, Protocol, TypeVar

from pydantic import ConfigDict, Field

from gristmill.agents.blanks import WordedModel
from gristmill.agents.effects import Begun, Changes
from gristmill.agents.provenance import TargetKind
from gristmill.agents.runs import Run
from gristmill.agents.workspaces import Workspace
from gristmill.db import Database
from gristmill.errors import Refused
from gristmill.knowledge import Embedders, Hits
from gristmill.processes import ProcessPool
from gristmill.scopes import Scope
from gristmill.settings import Settings
from gristmill.sources import Fetcher


class Arguments(WordedModel):
    """The arguments of a tool; what it does not know is refused, so that no argument is passed over in silence."""

    model_config = ConfigDict(frozen=True, extra="forbid")


A = TypeVar("A", bound=Arguments)
# the length is no part of the pattern: to count letters of all languages, it takes 50 ms to compile in each process
BranchName = Annotated[str, Field(pattern=r"^\w[\w./-]*$", max_length=151)]


class Search(Protocol):
    """Finds passages: `knowledge.Finder.find`, or `search` with the models of a worker."""

    async def __call__(self, query: str, scope: Scope, *, limit: int = 10) -> Hits: ...


@dataclass(frozen=True)
class ToolContext:
    """What the tools of one run work with."""

    db: Database
    settings: Settings
    run: Run
    search: Search
    embedders: Embedders
    fetcher: Fetcher
    processes: ProcessPool  # in which pages of strangers are read
    open_files: Callable[[], Awaitable[Workspace]]  # the workspace, made when it is needed first
    effect: Begun | None = None  # what is being done now, by a tool that changes something

    @property
    def place(self) -> Scope:
        """The project whose knowledge, sources and policy count."""
        return self.run.place

    async def files(self) -> Workspace:
        return await self.open_files()

    @property
    def begun(self) -> Begun:
        if self.effect is None:
            raise Refused("This tool changes something: it is called by the toolbox, which keeps the ledger.")
        return self.effect

    def at_work_on(self, begun: Begun) -> "ToolContext":
        return replace(self, effect=begun)


@dataclass(frozen=True)
class ToolResult:
    """What a tool says. Whatever it says was read somewhere: it is data, never an instruction."""

    text: str
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    source: str = ""  # where its text was read; none: the tool itself says it
    is_error: bool = False
    is_refused: bool = False  # a person said no to it


@dataclass(frozen=True)
class PreparedEffect:
    """What a tool finds out before it acts. It is kept with the effect: what is approved is what happens."""

    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    files: Sequence[str] = ()  # of the workspace that it changes
    branch: str | None = None  # that it writes
    pushes: bool = False


NOTHING_PREPARED = PreparedEffect()


def say_nothing(_: Any) -> str:
    return ""


async def prepare_nothing(_: Any, context: ToolContext) -> PreparedEffect:
    return NOTHING_PREPARED


@dataclass(frozen=True)
class Tool(Generic[A]):
    """A tool. `repeatable` says that a call which may have reached the other side can be made again with its key."""

    name: str
    sentence: str  # for the model
    arguments: type[A]
    call: Callable[[A, ToolContext], Awaitable[ToolResult]]
    changes: Changes = "nothing"
    targets: Mapping[str, TargetKind] = field(default_factory=dict[str, TargetKind])
    repeatable: bool = True
    gives_away: bool = False  # another agent does it, whose own calls may change something
    sets_state: bool = False  # a state, a version or a branch outside: two calls leave no more behind than the last one
    summarise: Callable[[A], str] = say_nothing  # one sentence for a person who is asked
    prepare: Callable[[A, ToolContext], Awaitable[PreparedEffect]] = prepare_nothing

    @property
    def is_watched(self) -> bool:
        """Whether its calls may need the ledger: it changes something, or says something to a place outside."""
        return self.changes != "nothing" or bool(self.targets)

    @property
    def may_change(self) -> bool:
        """Whether something may be different after a call, so that what was read before is old."""
        return self.changes != "nothing" or self.gives_away


AnyTool = Tool[Any]
