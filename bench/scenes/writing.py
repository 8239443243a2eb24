"""Jobs whose outcome writes a row of its own, in the transaction that completes the job."""

from statistics import median

from bench.contenders import OURS
from bench.report import Figures, Show
from bench.scenes.sizes import Sizes
from bench.stage import NotMeasuredError, Stage


def measure(stage: Stage, sizes: Sizes, figures: Figures, show: Show) -> None:
    with figures.attempt("writing_jobs_per_s"):
        rates = []
        for turn in range(sizes.rounds):
            show.step(f"writing, round {turn + 1} of {sizes.rounds}: {sizes.writing:,} jobs that write a row")
            rates.append(written(stage, sizes.writing))
        figures.set("writing_jobs_per_s", median(rates))


def written(stage: Stage, jobs: int) -> float:
    with stage.database(OURS) as url, stage.workers(OURS, url) as workers:
        stage.run(OURS, "writes", url, str(jobs))
        stage.calm(url)
        begin = workers.release()
        workers.handled(jobs)
        rate = jobs / (stage.emptied(OURS, url) - begin)
        rows = stage.ask(url, "SELECT (count(*), count(DISTINCT n))::text FROM bench_row")
    if rows != f"({jobs},{jobs})":
        raise NotMeasuredError(f"{jobs} jobs wrote (rows, distinct) = {rows}")
    return rate
