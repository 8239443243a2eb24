"""A workbench for tests: a run with all of its tools on real things: a repository, a mail server, pages of the web."""

import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from desk_work import PROJECT, begin_run, questions, take_again

from gristmill.agents import answer_question
from gristmill.agents.effects import Ledger
from gristmill.agents.policy import set_policy
from gristmill.agents.run_handle import RunHandle, WorkspaceOpener, load_words, make_toolbox
from gristmill.agents.runs import Run, load_run
from gristmill.agents.thinking import RunLlm, Thinker
from gristmill.agents.tools import TOOLS, Toolbox, ToolContext, ToolResult
from gristmill.db import Database
from gristmill.ids import RunId
from gristmill.knowledge import Hits, search
from gristmill.models import FakeEmbedder
from gristmill.processes import ProcessPool
from gristmill.scopes import Scope
from gristmill.settings import Settings
from gristmill.sources import Wanted, add_source
from smtp_server import MailServer, run_mail_server
from web_server import Names, WebServer, make_fetcher, run_web_server

GIT = ("git", "-c", "user.name=Anna", "-c", "user.email=anna@acme.example", "-c", "init.defaultBranch=main")
EVIL = "evil.example"


def run_git(folder: Path, *words: str) -> str:
    return subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def make_repository(folder: Path) -> Path:
    """A bare repository with one commit, as a server has it: a copy of one that is made once, by five processes."""
    return shutil.copytree(make_first_repository(), folder / "upstream.git")


@cache
def make_first_repository() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="upstream-"))  # it goes with all files of the tests
    work, bare = folder / "work", folder / "upstream.git"
    work.mkdir()
    run_git(work, "init", "--quiet")
    (work / "main.py").write_text("def add(a, b):\n    return a - b\n")
    (work / "README.md").write_text("# Mill\n")
    (work / "run.sh").write_text("#!/bin/sh\necho ground\n")
    (work / "run.sh").chmod(0o755)
    run_git(work, "add", ".")
    run_git(work, "commit", "--quiet", "-m", "Begin")
    run_git(folder, "clone", "--quiet", "--bare", str(work), str(bare))
    return bare


@dataclass
class Workbench:
    """One run at a time, as a worker has it; `again` is the next worker."""

    db: Database
    settings: Settings
    mail: MailServer
    web: WebServer
    repository: Path
    processes: ProcessPool
    run: RunId = field(default=RunId(0))
    box: Toolbox = field(init=False)
    context: ToolContext = field(init=False)
    fence: int = field(init=False)

    async def begin(self, request: str, **more: Any) -> None:
        """Begin a run that a person asks for."""
        self.run, fence = await begin_run(self.db, request, **more)
        await self._open(fence)

    async def again(self) -> None:
        """Another worker takes the run over, and knows what is in the database alone."""
        ledger = await take_again(self.db, self.run)
        await self._open(ledger._fence)  # pyright: ignore[reportPrivateUsage]

    async def answer_all(self) -> None:
        """A person who agrees to everything, and has one answer for whatever else is asked."""
        for question in await questions(self.db, self.run):
            choice = question.choices[0] if question.choices else None
            async with self.db.transaction() as tx:
                await answer_question(tx, question.id, choice=choice, answer="Do as you think best.", by="anna")

    async def again_after(self, said: Awaitable[None]) -> None:
        """A person says something, then the next worker goes on."""
        await said
        await self.again()

    async def _open(self, fence: int) -> None:
        async with self.db.reading() as tx:
            run = await load_run(tx, self.run)
            words = await load_words(tx, run)
        self.fence = fence
        self.context = self._make_context(run)
        self.box = make_toolbox(self.context, fence, words, TOOLS.values())
        self.ledger = Ledger(self.db, self.run, fence)

    def _make_context(self, run: Run) -> ToolContext:
        embedders = [FakeEmbedder()]

        async def find(query: str, scope: Scope, *, limit: int = 10) -> Hits:
            return await search(self.db, embedders, query, scope, limit=limit)

        names = Names({EVIL: ["127.0.0.1"], "docs.acme.example": ["127.0.0.1"], "127.0.0.1": ["127.0.0.1"]})
        fetcher = make_fetcher(
            names=names, allowed_hosts=("127.0.0.0/8", EVIL, "docs.acme.example"), ports=(self.web.port,)
        )
        opener = WorkspaceOpener(self.db, self.settings, run)
        return ToolContext(self.db, self.settings, run, find, embedders, fetcher, self.processes, opener.open)

    def make_handle(self, llm: RunLlm | None = None, *, foreground: bool = True) -> RunHandle:
        """What a graph gets: the run with this model, or with none."""
        thinker = Thinker(llm, "small" if llm is not None else "", foreground=foreground)
        return RunHandle(self.db, self.context.run, self.fence, self.box, thinker)

    async def call(self, tool: str, place: str = "1#0", **arguments: Any) -> ToolResult:
        return await self.box.call(tool, arguments, place)

    async def allow(self, **policy: Any) -> None:
        async with self.db.transaction() as tx:
            await set_policy(tx, PROJECT, "anna", **policy)

    @property
    def folder(self) -> Path:
        return self.settings.data / "workspaces" / str(self.run) / "repository"

    def upstream(self, *words: str) -> str:
        return run_git(self.repository, *words)


@asynccontextmanager
async def open_workbench(db: Database, folder: Path, sources: Sequence[Wanted] = ()) -> AsyncIterator[Workbench]:
    """Everything outside is on loopback, and counts what reaches it."""
    repository = make_repository(folder)
    async with db.transaction() as tx:
        await add_source(tx, Wanted("code", "git", {"url": str(repository)}, PROJECT))
        for one in sources:
            await add_source(tx, one)
    async with run_mail_server() as mail, run_web_server() as web:
        smtp = {"host": "127.0.0.1", "port": mail.port, "security": "none", "sender": "agent@acme.example"}
        settings = Settings(data=folder / "data", agents={"smtp": smtp, "command_timeout": "20s"})  # pyright: ignore[reportArgumentType]
        processes = ProcessPool(1)
        try:
            yield Workbench(db, settings, mail, web, repository, processes)
        finally:
            await processes.close()
