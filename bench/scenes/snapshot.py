"""What is left of the speed when another session holds a snapshot, so that vacuum may remove nothing."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from bench.contenders import OURS
from bench.report import Figures, Show
from bench.scenes.sizes import Sizes
from bench.scenes.throughput import drained
from bench.stage import NotMeasuredError, Stage, Workers

MOST = 6_000_000
SPARE = 1.25  # the line must not run dry, so it is made longer than the expected work


def measure(stage: Stage, sizes: Sizes, figures: Figures, show: Show) -> None:
    with figures.attempt("held_snapshot_ratio", "free_per_s", "held_per_s"):
        expected = figures.get("jobs_per_s") or drained(stage, OURS, sizes.jobs // 2)
        jobs = min(MOST, int(expected * (sizes.hold + 1.5 * sizes.last) * SPARE))
        with stage.database(OURS) as url, stage.workers(OURS, url) as workers:
            show.step(f"held snapshot: sending {jobs:,} jobs")
            stage.load(OURS, url, jobs)
            stage.calm(url)
            workers.release()
            workers.rate(sizes.last / 2)
            show.step(f"held snapshot: {sizes.last:.0f} s free")
            free = workers.rate(sizes.last)
            show.step(f"held snapshot: {sizes.hold:.0f} s held")
            with held(url):
                workers.rate(sizes.hold - sizes.last)
                last = workers.rate(sizes.last)
            refuse_dry(workers, jobs)
        figures.set("free_per_s", free)
        figures.set("held_per_s", last)
        figures.set("held_snapshot_ratio", last / free)


@contextmanager
def held(url: str) -> Iterator[None]:
    """A transaction with a snapshot and an id of its own."""
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT 1")
        connection.execute("SELECT pg_current_xact_id()")
        yield
        connection.rollback()


def refuse_dry(workers: Workers, jobs: int) -> None:
    if workers.board.total() >= jobs:
        raise NotMeasuredError(f"the line of {jobs:,} jobs ran dry before the snapshot was let go")
