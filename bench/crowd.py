"""People and programs who call the console and the API: one at a time, or two hundred at once."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import quantiles
from time import perf_counter

import httpx


@dataclass
class Answers:
    """How long each address took, in milliseconds until all of it was there, and what went wrong."""

    times: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    errors: list[str] = field(default_factory=list)

    def note(self, address: str, began: float, status: int) -> None:
        self.times[address].append((perf_counter() - began) * 1000)
        if status >= 400:
            self.errors.append(f"{status} {address}")

    @property
    def p95(self) -> float:
        return find_p95([one for times in self.times.values() for one in times])

    def list_slowest(self) -> list[tuple[float, str]]:
        """The 95th percentile of each address, the slowest first."""
        return sorted(((find_p95(times), address) for address, times in self.times.items()), reverse=True)


def find_p95(times: list[float]) -> float:
    return quantiles(times, n=20, method="inclusive")[-1] if len(times) > 1 else times[0]


async def look_once(client: httpx.AsyncClient, address: str, answers: Answers) -> None:
    began = perf_counter()
    try:
        async with client.stream("GET", address) as answer:
            async for _ in answer.aiter_bytes():
                if "event-stream" in answer.headers.get("content-type", ""):
                    break  # it goes on for ever: the first data counts
            answers.note(address, began, answer.status_code)
    except httpx.HTTPError as error:
        answers.errors.append(f"{type(error).__name__} {address}")


async def look_alone(client: httpx.AsyncClient, addresses: Sequence[str], rounds: int) -> Answers:
    """One after the other; the first look at each is not counted, as nobody's cache is warm."""
    cold, answers = Answers(), Answers()
    for turn in range(rounds + 1):
        for address in addresses:
            await look_once(client, address, answers if turn else cold)
    return answers


async def crowd(
    clients: Sequence[httpx.AsyncClient], addresses: Sequence[str], seconds: float, pause: float
) -> Answers:
    """Every client looks at one address after the other, with a pause between."""
    answers, numbers = Answers(), count()
    until = perf_counter() + seconds

    async def use(place: int) -> None:
        await asyncio.sleep(pause * place / len(clients))
        while perf_counter() < until:
            await look_once(clients[place], addresses[next(numbers) % len(addresses)], answers)
            await asyncio.sleep(pause)

    await asyncio.gather(*(use(place) for place in range(len(clients))))
    return answers
