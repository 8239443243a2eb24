"""The smallest complete use: a letter, what answers it, and a worker that runs until nothing is left."""

import asyncio
from dataclasses import dataclass
from typing import ClassVar

from gristmill.db import open_database
from gristmill.queue import Done, Worker, bind, current, on, send
from gristmill.settings import load


@dataclass(frozen=True)
class Greet:
    kind: ClassVar[str] = "hello.greet"  # the queue is the part before the dot
    name: str


async def greet(letter: Greet) -> Done:
    print(f"Hello, {letter.name}! (task {current().id}, attempt {current().attempt})")
    return Done(result={"greeted": letter.name})


handlers = bind(on(Greet, greet))  # also what `gristmill worker --app examples/hello.py:handlers` serves


async def main() -> None:
    async with open_database(load()) as db:  # embedded, or what GRISTMILL_DATABASE_URL names
        async with db.transaction() as tx:  # letters are sent when your transaction commits
            for name in ("world", "miller", "grain"):
                await send(tx, Greet(name))
        await Worker(db, handlers, until_idle=True).run()


if __name__ == "__main__":
    asyncio.run(main())
