"""The worlds that connectors live in: each puts, changes, removes and spoils items at a real or fake place outside."""

import asyncio
import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from calendar_server import Radicale
from confluence_server import SPACES, ConfluenceServer
from confluence_server import USER as CONFLUENCE_USER
from dovecot import Dovecot
from fake_server import FakeServer, serve
from farm import a_mail
from feed import FEED, FeedServer, a_feed
from github_server import REPOSITORY, GitHubServer
from gitlab_server import PROJECT, GitLabServer
from jira_server import USER as JIRA_USER
from jira_server import JiraServer

from gristmill.sources.kinds import KINDS
from gristmill.sources.model import Kind

BEGINNING = datetime(2026, 3, 2, 10, tzinfo=UTC)  # of the commits in a repository


class World(ABC):
    """A place outside with items. What a world cannot do is named, and the sentence that asks for it is left out."""

    kind: Kind
    options: dict[str, Any]
    can_change = True  # an item can get other bytes under the same id
    can_spoil = True  # there can be an item that nobody can read

    @abstractmethod
    async def put(self, key: str, text: str = "Hello.") -> None:
        """Add an item, or change it."""

    @abstractmethod
    async def drop(self, key: str) -> None: ...

    @abstractmethod
    def urn(self, key: str) -> str: ...

    async def spoil(self, key: str) -> bytes:
        """Add an item that nobody can read; its bytes."""
        raise AssertionError

    async def vanish(self) -> None:
        """Take everything away."""
        raise AssertionError


class FeedWorld(World):
    kind = FEED

    def __init__(self, server: FeedServer) -> None:
        self.server = server
        self.options = {"url": server.url}

    async def put(self, key: str, text: str = "Hello.") -> None:
        self.server.put(key, text)

    async def drop(self, key: str) -> None:
        self.server.drop(key)

    def urn(self, key: str) -> str:
        return f"feed::{key}"

    async def spoil(self, key: str) -> bytes:
        self.server.put(key, body=b"\xff{garbage")
        return b"\xff{garbage"

    async def vanish(self) -> None:
        self.server.posts.clear()


class EmlWorld(World):
    kind = KINDS["eml"]

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.options = {"path": str(folder)}
        folder.mkdir()

    async def put(self, key: str, text: str = "Hello.") -> None:
        (self.folder / f"{key}.eml").write_bytes(a_mail(key, text))

    async def drop(self, key: str) -> None:
        (self.folder / f"{key}.eml").unlink()

    def urn(self, key: str) -> str:
        return f"email::{key}@acme.test"

    async def spoil(self, key: str) -> bytes:
        (self.folder / f"{key}.eml").write_bytes(b"\0\1\2 no mail")
        return b"\0\1\2 no mail"

    async def vanish(self) -> None:
        shutil.rmtree(self.folder)
        self.folder.mkdir()


class MaildirWorld(EmlWorld):
    kind = KINDS["maildir"]
    can_change = False  # a mail that was delivered never changes

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._make()

    def _make(self) -> None:
        for part in ("cur", "new", "tmp"):
            (self.folder / part).mkdir()

    async def put(self, key: str, text: str = "Hello.") -> None:
        (self.folder / "new" / key).write_bytes(a_mail(key, text))

    async def drop(self, key: str) -> None:
        (self.folder / "new" / key).unlink()

    async def spoil(self, key: str) -> bytes:
        (self.folder / "new" / key).write_bytes(b"\0\1\2 no mail")
        return b"\0\1\2 no mail"

    async def vanish(self) -> None:
        await super().vanish()
        self._make()


class MailServerWorld(World):
    """A mailbox of a real Dovecot, filled by IMAP."""

    can_change = False  # a mail that was delivered never changes

    def __init__(self, dovecot: Dovecot, kind: str, port: int) -> None:
        self.dovecot = dovecot
        self.user = f"user{uuid4().hex[:12]}"
        self.kind = KINDS[kind]
        self.options = {"host": "127.0.0.1", "port": port, "security": "none", "user": self.user}
        self.options["password"] = "env:MAIL_PASSWORD"

    async def put(self, key: str, text: str = "Hello.") -> None:
        await asyncio.to_thread(self.append, a_mail(key, text))

    def append(self, mail: bytes, folder: str = "INBOX") -> None:
        with self.dovecot.client(self.user) as client:
            client.append(folder, mail)

    async def drop(self, key: str) -> None:
        await asyncio.to_thread(self._delete, ["HEADER", "Message-ID", f"<{key}@acme.test>"])

    def _delete(self, which: list[str]) -> None:
        with self.dovecot.client(self.user) as client:
            client.select_folder("INBOX")
            client.delete_messages(client.search(which))
            client.expunge()

    def urn(self, key: str) -> str:
        return f"email::{key}@acme.test"

    async def spoil(self, key: str) -> bytes:
        await asyncio.to_thread(self.append, b"nothing of this is a header\r\n")
        return b"nothing of this is a header"

    async def vanish(self) -> None:
        await asyncio.to_thread(self._delete, ["ALL"])


class GitWorld(World):
    """A repository in which each item is a branch of its own with one commit."""

    kind = KINDS["git"]
    can_change = False  # a commit never changes
    can_spoil = False  # git would not make one

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.options = {"url": str(folder), "project": "mill"}
        self.hashes: dict[str, str] = {}
        folder.mkdir()
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *words: str) -> str:
        settings = ["-c", "user.name=Anna", "-c", "user.email=anna@acme.test", "-c", "commit.gpgsign=false"]
        settings += ["-c", "core.hooksPath=/dev/null"]
        # a commit that is made again is the same one, as where a branch is pushed again: its hash is made of its time
        dates = {"GIT_AUTHOR_DATE": BEGINNING.isoformat(), "GIT_COMMITTER_DATE": BEGINNING.isoformat()}
        command, env = ["git", *settings, *words], os.environ | dates
        done = subprocess.run(command, cwd=self.folder, env=env, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    async def put(self, key: str, text: str = "Hello.") -> None:
        self.git("checkout", "--quiet", "--orphan", key)
        self.git("rm", "-r", "-f", "--quiet", "--ignore-unmatch", ".")  # or each commit would have all files before it
        (self.folder / f"{key}.txt").write_text(f"{text}\n")
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", f"Add {key}")
        self.hashes[key] = self.git("rev-parse", "HEAD")
        self.git("checkout", "--quiet", "--detach")

    async def drop(self, key: str) -> None:
        self.git("branch", "-D", key)

    def urn(self, key: str) -> str:
        return f"commit::{self.hashes[key]}::mill"

    async def vanish(self) -> None:
        for key in self.hashes:
            self.git("branch", "-D", key)


class TranscriptWorld(EmlWorld):
    kind = KINDS["transcripts"]

    async def put(self, key: str, text: str = "Hello.") -> None:
        (self.folder / f"{key}.txt").write_text(f"[00:00:01] Anna: {text}\n")

    async def drop(self, key: str) -> None:
        (self.folder / f"{key}.txt").unlink()

    def urn(self, key: str) -> str:
        return f"meeting::one/{key}.txt"

    async def spoil(self, key: str) -> bytes:
        (self.folder / f"{key}.json").write_bytes(b"{no transcript")
        return b"{no transcript"


class MarkdownWorld(EmlWorld):
    kind = KINDS["markdown"]

    async def put(self, key: str, text: str = "Hello.") -> None:
        (self.folder / f"{key}.md").write_text(f"# {key}\n\n{text}\n")

    async def drop(self, key: str) -> None:
        (self.folder / f"{key}.md").unlink()

    def urn(self, key: str) -> str:
        return f"wiki::one/{key}.md"

    async def spoil(self, key: str) -> bytes:
        (self.folder / f"{key}.md").write_bytes(b"\0 no page")
        return b"\0 no page"


class IcsWorld(EmlWorld):
    kind = KINDS["ics"]

    async def put(self, key: str, text: str = "Hello.") -> None:
        event = f"UID:{key}\nDTSTART:20260302T100000Z\nSUMMARY:{key}\nDESCRIPTION:{text}"
        body = f"BEGIN:VCALENDAR\nVERSION:2.0\nBEGIN:VEVENT\n{event}\nEND:VEVENT\nEND:VCALENDAR\n"
        (self.folder / f"{key}.ics").write_text(body)

    async def drop(self, key: str) -> None:
        (self.folder / f"{key}.ics").unlink()

    def urn(self, key: str) -> str:
        return f"meeting::{key}"

    async def spoil(self, key: str) -> bytes:
        (self.folder / f"{key}.ics").write_bytes(b"\0 no calendar")
        return b"\0 no calendar"


class CalDavWorld(World):
    """A calendar of a real Radicale."""

    kind = KINDS["caldav"]

    def __init__(self, radicale: Radicale) -> None:
        self.radicale = radicale
        self.calendar = f"c{uuid4().hex[:12]}"
        self.options = {"url": radicale.make(self.calendar), "user": "anna", "password": "env:CALENDAR_PASSWORD"}
        self.keys: set[str] = set()

    async def put(self, key: str, text: str = "Hello.") -> None:
        await asyncio.to_thread(self._put, key, f"UID:{key}\nSUMMARY:{key}\nDESCRIPTION:{text}")

    def _put(self, key: str, facts: str, sort: str = "VEVENT") -> None:
        times = "DTSTAMP:20260301T000000Z\nDTSTART:20260302T100000Z"
        body = f"BEGIN:{sort}\n{facts}\n{times}\nEND:{sort}"
        whole = f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//test//EN\n{body}\nEND:VCALENDAR\n"
        self.radicale.call("PUT", self.calendar, f"{key}.ics", whole)
        self.keys.add(key)

    async def drop(self, key: str) -> None:
        self.keys.discard(key)
        await asyncio.to_thread(self.radicale.call, "DELETE", self.calendar, f"{key}.ics")

    def urn(self, key: str) -> str:
        return f"meeting::{key}"

    async def spoil(self, key: str) -> bytes:
        """What no meeting is, and may lie in a calendar all the same."""
        await asyncio.to_thread(self._put, key, f"UID:{key}\nSUMMARY:garbage", "VTODO")
        return b"SUMMARY:garbage"

    async def vanish(self) -> None:
        for key in list(self.keys):
            await self.drop(key)


class ProviderWorld(World):
    """A fake provider. Its items have names here, and numbers there; a number is kept when an item comes back."""

    server: Any

    def __init__(self, server: FakeServer, kind: str, **options: Any) -> None:
        self.server = server
        self.kind = KINDS[kind]
        self.options = {"url": server.url, "token": "env:PROVIDER_TOKEN", **options}
        self.gone: dict[str, Any] = {}

    @property
    def things(self) -> dict[str, Any]:
        """What is there."""
        return self.server.issues

    @abstractmethod
    def external(self, key: str) -> str:
        """The id of a thing that is there."""

    async def put(self, key: str, text: str = "Hello.") -> None:
        if key in self.gone:
            self.things[key] = self.gone.pop(key)
        self.server.put(key, text)
        self.name(key)

    def name(self, key: str) -> None:
        """Remember what a thing is called there."""
        self.names = {**getattr(self, "names", {}), key: self.things[key]}

    async def drop(self, key: str) -> None:
        self.gone[key] = self.things[key]
        self.server.drop(key)

    async def spoil(self, key: str) -> bytes:
        self.server.put(key, "garbage")
        self.server.issues[key]["title"] = 17
        return b'"garbage"'

    async def vanish(self) -> None:
        self.things.clear()


class JiraWorld(ProviderWorld):
    def urn(self, key: str) -> str:
        return f"jira::{self.names[key]['key']}"

    def external(self, key: str) -> str:
        return self.things[key]["id"]

    async def spoil(self, key: str) -> bytes:
        self.server.put(key, summary=["garbage"])
        return orjson.dumps(["garbage"])


class GitHubWorld(ProviderWorld):
    def urn(self, key: str) -> str:
        return f"github::{REPOSITORY}#{self.names[key]['number']}"

    def external(self, key: str) -> str:
        return f"{REPOSITORY}#{self.things[key]['number']}"


class GitLabWorld(ProviderWorld):
    """Every second item is a merge request."""

    async def put(self, key: str, text: str = "Hello.") -> None:
        if key in self.gone:
            self.things[key] = self.gone.pop(key)
        self.server.put(key, text, sign="!" if len(self.things) % 2 else "#")
        self.name(key)

    def urn(self, key: str) -> str:
        return f"gitlab::{self.names[key]['references']['full']}"

    def external(self, key: str) -> str:
        return self.things[key]["references"]["full"]


class ConfluenceWorld(ProviderWorld):
    @property
    def things(self) -> dict[str, Any]:
        return self.server.contents

    def urn(self, key: str) -> str:
        return f"confluence::{SPACES[self.names[key].space]}::{self.names[key].id}"

    def external(self, key: str) -> str:
        return f"page/{self.things[key].id}"

    async def spoil(self, key: str) -> bytes:
        self.server.put(key, body=["garbage"])
        return orjson.dumps(["garbage"])


def provider_world(
    world: type[ProviderWorld], make_server: Callable[[], FakeServer], kind: str, **options: str
) -> Callable[[Path], AbstractAsyncContextManager[World]]:
    @asynccontextmanager
    async def open_world(folder: Path) -> AsyncGenerator[World]:
        async with serve(make_server()) as server:
            yield world(server, kind, **options)

    return open_world


@asynccontextmanager
async def feed_world(folder: Path) -> AsyncGenerator[World]:
    async with a_feed() as server:
        yield FeedWorld(server)


@asynccontextmanager
async def eml_world(folder: Path) -> AsyncGenerator[World]:
    yield EmlWorld(folder / "world")


@asynccontextmanager
async def maildir_world(folder: Path) -> AsyncGenerator[World]:
    yield MaildirWorld(folder / "world")


@asynccontextmanager
async def git_world(folder: Path) -> AsyncGenerator[World]:
    yield GitWorld(folder / "world")


@asynccontextmanager
async def transcript_world(folder: Path) -> AsyncGenerator[World]:
    yield TranscriptWorld(folder / "world")


@asynccontextmanager
async def markdown_world(folder: Path) -> AsyncGenerator[World]:
    yield MarkdownWorld(folder / "world")


@asynccontextmanager
async def ics_world(folder: Path) -> AsyncGenerator[World]:
    yield IcsWorld(folder / "world")


WORLDS = {
    "feed": feed_world,
    "eml": eml_world,
    "maildir": maildir_world,
    "git": git_world,
    "transcripts": transcript_world,
    "ics": ics_world,
    "markdown": markdown_world,
    "jira": provider_world(JiraWorld, JiraServer, "jira", user=JIRA_USER),
    "jira-server": provider_world(JiraWorld, partial(JiraServer, cloud=False), "jira", user=JIRA_USER, projects="MILL"),
    "github": provider_world(GitHubWorld, GitHubServer, "github", repositories=REPOSITORY),
    "gitlab": provider_world(GitLabWorld, GitLabServer, "gitlab", projects=PROJECT),
    "confluence": provider_world(ConfluenceWorld, ConfluenceServer, "confluence", user=CONFLUENCE_USER, spaces="MILL"),
    "confluence-server": provider_world(
        ConfluenceWorld, partial(ConfluenceServer, cloud=False), "confluence", user=CONFLUENCE_USER
    ),
}
PROVIDERS = ("jira", "jira-server", "github", "gitlab", "confluence", "confluence-server")  # worlds of fake servers
SERVED = ("imap", "pop3", "caldav")  # worlds of real servers


def a_world(name: str, folder: Path, request: pytest.FixtureRequest) -> AbstractAsyncContextManager[World]:
    if name not in SERVED:
        return WORLDS[name](folder)
    if name == "caldav":
        return nullcontext(CalDavWorld(request.getfixturevalue("radicale")))
    dovecot: Dovecot = request.getfixturevalue("dovecot")
    return nullcontext(MailServerWorld(dovecot, name, getattr(dovecot, name)))
