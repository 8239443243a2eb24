"""What the robots.txt of an origin allows, remembered for a while (RFC 9309)."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from protego import Protego

from gristmill.errors import Permanent
from gristmill.sources.fetch.answers import NotThere
from gristmill.sources.fetch.location import Location

KEEP = 3600.0  # seconds
MOST = 1_000  # origins that are remembered
LARGEST = 500 * 1024  # bytes that are read: what the standard asks for at least


@dataclass(frozen=True)
class RobotsRules:
    """The rules of one origin."""

    parsed: Protego
    agent: str

    def allows(self, url: str) -> bool:
        return self.parsed.can_fetch(url, self.agent)

    @property
    def crawl_delay(self) -> timedelta | None:
        seconds = self.parsed.crawl_delay(self.agent)
        return timedelta(seconds=seconds) if seconds and seconds > 0 else None


class Robots:
    """Asks each origin once in a while; `load` gives its robots.txt, or raises NotThere."""

    def __init__(self, agent: str, load: Callable[[str], Awaitable[bytes]]) -> None:
        self._agent = agent.partition("/")[0]
        self._load = load
        self._known: OrderedDict[str, tuple[float, RobotsRules]] = OrderedDict()

    async def check(self, location: Location) -> RobotsRules:
        """The rules of the place; Permanent if they do not let us in."""
        rules = await self._find(location.origin)
        if not rules.allows(location.url):
            raise Permanent(f"The robots.txt of {location.host} does not let us fetch {location.shown}.")
        return rules

    async def _find(self, origin: str) -> RobotsRules:
        now = asyncio.get_running_loop().time()
        until, rules = self._known.get(origin, (0.0, None))
        if rules is None or now >= until:
            rules = self._parse(await self._read(origin))
            self._known[origin] = (now + KEEP, rules)
        self._known.move_to_end(origin)
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return rules

    async def _read(self, origin: str) -> bytes:
        try:
            return await self._load(f"{origin}/robots.txt")
        except NotThere:
            return b""  # where there are no rules, everything is allowed; while they cannot be asked for, nothing is

    def _parse(self, text: bytes) -> RobotsRules:
        return RobotsRules(Protego.parse(text[:LARGEST].decode("utf-8", "replace")), self._agent)
