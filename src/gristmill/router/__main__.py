"""`python -m gristmill.router`: the router by itself."""

import asyncio
import sys

from gristmill.errors import Refused
from gristmill.router.server import serve
from gristmill.settings import load


def main() -> int:
    try:
        settings = load().router
        if sys.platform == "win32":
            asyncio.run(serve(settings))
        else:
            import uvloop  # noqa: PLC0415 not to be had on Windows

            uvloop.run(serve(settings))
    except Refused as refused:
        sys.stderr.write(f"{refused}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
