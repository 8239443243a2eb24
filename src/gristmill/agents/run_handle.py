"""What a graph works with: one run, its words, its toolbox, its questions and its steps."""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from gristmill.agents.effects import Ledger
from gristmill.agents.provenance import RunWords, listen
from gristmill.agents.replies import HEARD
from gristmill.agents.runs import (
    Context,
    Level,
    Question,
    QuestionToAsk,
    ReadText,
    Run,
    Stepping,
    UserAnswer,
    WaitingForUser,
    ask,
    begin_step,
    end_step,
    find_question,
    hold_run,
    load_answers,
    load_contexts,
    load_texts,
    note_host,
    note_step,
    note_waiting,
    put_context,
)
from gristmill.agents.thinking import Thinker
from gristmill.agents.tools import AnyTool, Toolbox, ToolContext
from gristmill.agents.workspaces import Workspace, find_repository, host_name, make_place, open_workspace
from gristmill.db import Database, Tx
from gristmill.ids import StepId
from gristmill.settings import Settings


@dataclass(frozen=True)
class RunHandle:
    """One run in the hands of one worker. Whatever a graph does for the run, it does here."""

    db: Database
    run: Run
    fence: int
    toolbox: Toolbox
    thinker: Thinker

    @property
    def settings(self) -> Settings:
        return self.toolbox.context.settings

    def budget(self, wanted: int) -> int:
        """Tokens of a prompt: as many as are wanted, and the model has room for."""
        return min(wanted, self.settings.agents.prompt_tokens)

    async def recall(self, key: str) -> Question | None:
        """A question that this run asked before an interruption: what a person is shown is made once."""
        async with self.db.reading() as tx:
            return await find_question(tx, self.run.id, key)

    async def keep_context(self, level: Level, place: str, summary: str, detail: str = "") -> None:
        """Keep what came of a place in the plan."""
        async with self.db.transaction() as tx:
            await hold_run(tx, self.run.id, self.fence)
            await put_context(tx, self.run.id, level, place, summary, detail)

    async def load_contexts(self) -> list[Context]:
        """What came of the places in the plan so far, the oldest first."""
        async with self.db.reading() as tx:
            return await load_contexts(tx, self.run.id)

    async def ask(self, *asked: QuestionToAsk) -> list[UserAnswer]:
        """The answers of a person, each to its own question; WaitingForUser until all of them are given."""
        async with self.db.transaction() as tx:
            await hold_run(tx, self.run.id, self.fence)
            found = [await ask(tx, self.run.id, one) for one in asked]
        waiting = [one for one in found if one.state == "open"]
        if waiting:
            raise WaitingForUser(f"Question {waiting[0].id} waits for a person: {waiting[0].sentence}")
        return [UserAnswer(one.key, one.sentence, one.choice or "", one.answer, one.answered_by or "") for one in found]

    @asynccontextmanager
    async def step(
        self, node: str, *, title: str = "", input: Any = None, parent: StepId | None = None
    ) -> AsyncGenerator[Stepping]:
        """A visit of a node, with what went in, what came out and what it cost; also if it fails or waits."""
        async with self.db.transaction() as tx:
            id_ = await begin_step(tx, self.run.id, self.fence, node, title=title, input=input, parent=parent)

        async def say(note: str | None) -> None:
            async with self.db.transaction() as tx:
                await note_step(tx, id_, note)

        made = Stepping(id_, say=say)
        try:
            yield made
        except WaitingForUser as waiting:
            async with self.db.transaction() as tx:
                await end_step(tx, id_, output=note_waiting(made.output, str(waiting)), cost=made.cost)
            raise
        except Exception as error:
            async with self.db.transaction() as tx:
                await end_step(tx, id_, output=made.output, error=str(error) or type(error).__name__, cost=made.cost)
            raise
        async with self.db.transaction() as tx:
            await end_step(tx, id_, output=made.output, cost=made.cost)


async def load_words(tx: Tx, run: Run) -> RunWords:
    """Who said what to a run: persons in its request and their answers, and the texts that it read.

    Words beside a choice that lets nothing happen are no person's order: “refuse: http://… is not ours”.
    """
    answers = await load_answers(tx, run.id)
    heard = [one.answer for one in answers if one.choice in HEARD]
    refusals = [one.answer for one in answers if one.choice not in HEARD]
    read = await load_texts(tx, run.id)
    if run.asked_by is None:
        item = ReadText(f"the {run.item_type} that it is done for", run.request)
        return listen(heard, [item, *read], refusals=refusals)
    return listen([run.request, *heard], read, refusals=refusals)


class WorkspaceOpener:
    """Makes the workspace of a run when it is needed first, and remembers on which machine it lies."""

    def __init__(self, db: Database, settings: Settings, run: Run) -> None:
        self._db = db
        self._settings = settings
        self._run = run
        self._opening = asyncio.Lock()
        self._opened: Workspace | None = None

    async def open(self) -> Workspace:
        async with self._opening:
            if self._opened is None:
                await asyncio.to_thread(make_place, self._settings.data, self._run.id)
                async with self._db.transaction() as tx:
                    source = await find_repository(tx, self._run)
                    await note_host(tx, self._run.id, host_name())
                self._opened = await open_workspace(self._settings.data, self._run, source)
            return self._opened


def make_toolbox(context: ToolContext, fence: int, words: RunWords, tools: Iterable[AnyTool]) -> Toolbox:
    return Toolbox(context, Ledger(context.db, context.run.id, fence), tools, words)
