"""A router as a process of its own that tells its port and ends with its parent."""

import asyncio
import os
import sys

import structlog
import uvloop

from gristmill.router.server import open_router
from gristmill.settings import load


async def main() -> None:
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(file=sys.stderr))
    async with open_router(load().router) as served:
        print(served.port, flush=True)  # noqa: T201 how the parent learns the port
        await asyncio.get_running_loop().run_in_executor(None, os.read, 0, 1)
    os._exit(0)


if __name__ == "__main__":
    uvloop.run(main())
