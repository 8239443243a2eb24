"""How much of everything is measured."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    jobs: int = 200_000
    slow_jobs: int = 3_000
    rounds: int = 3
    samples: int = 500
    few: int = 1_000
    many: int = 1_000_000
    window: float = 8.0
    hold: float = 60.0
    last: float = 10.0
    enqueue: int = 200_000
    writing: int = 60_000
    group: int = 10_000
    group_rounds: int = 7


QUICK = Sizes(
    jobs=20_000,
    slow_jobs=300,
    rounds=1,
    samples=50,
    few=1_000,
    many=100_000,
    window=1.5,
    hold=6.0,
    last=2.0,
    enqueue=20_000,
    writing=6_000,
    group=1_000,
    group_rounds=3,
)
