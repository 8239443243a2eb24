"""Jobs per second, end to end: from the release of two waiting workers until all is done."""

from statistics import median

from bench.contenders import BARE, GRAPHILE, OURS, PGQUEUER, PROCRASTINATE, Contender
from bench.report import Figures, Show
from bench.scenes.sizes import Sizes
from bench.stage import NotMeasuredError, Stage


def measure(stage: Stage, sizes: Sizes, figures: Figures, show: Show) -> None:
    """Rounds are interleaved, so that a slow minute of the machine is shared by all; the median counts."""
    rates: dict[Contender, list[float]] = {}
    for turn in range(sizes.rounds):
        for contender in (BARE, OURS, PGQUEUER, GRAPHILE, PROCRASTINATE):
            if key(contender) in figures.reasons:  # it failed in an earlier round
                continue
            jobs = sizes.slow_jobs if contender is PROCRASTINATE else sizes.jobs
            show.step(f"throughput, round {turn + 1} of {sizes.rounds}: {jobs:,} jobs by {contender.name}")
            with figures.attempt(key(contender)):
                rates.setdefault(contender, []).append(drained(stage, contender, jobs))
                figures.set(key(contender), median(rates[contender]))


def key(contender: Contender) -> str:
    return "jobs_per_s" if contender is OURS else f"{contender.key}_jobs_per_s"


def drained(stage: Stage, contender: Contender, jobs: int) -> float:
    if reason := contender.missing():
        raise NotMeasuredError(reason)
    with stage.database(contender) as url, stage.workers(contender, url) as workers:
        stage.load(contender, url, jobs)
        stage.calm(url)
        begin = workers.release()
        workers.handled(jobs)
        return jobs / (stage.emptied(contender, url) - begin)
