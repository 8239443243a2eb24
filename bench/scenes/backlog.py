"""Whether a long line slows the workers: the same work while 1,000 and while 1,000,000 jobs are pending.

In both cases one feeder replaces every job that was done, so that both carry the same load and differ in
nothing but the length of the line.
"""

from statistics import mean

from bench.contenders import OURS
from bench.report import Figures, Show
from bench.scenes.sizes import Sizes
from bench.stage import Stage

IN_HAND = 1_000  # what two workers hold beyond what is pending


def measure(stage: Stage, sizes: Sizes, figures: Figures, show: Show) -> None:
    with figures.attempt("backlog_ratio", "backlog_few_per_s", "backlog_many_per_s"):
        few, many = [], []
        # few, many, few: what the machine does to one, it does to the other
        for pending, rates in ((sizes.few, few), (sizes.many, many), (sizes.few, few)):
            show.step(f"backlog: {pending:,} pending")
            rates.append(fed(stage, pending, sizes.window))
        figures.set("backlog_few_per_s", mean(few))
        figures.set("backlog_many_per_s", mean(many))
        figures.set("backlog_ratio", mean(many) / mean(few))


def fed(stage: Stage, pending: int, seconds: float) -> float:
    outstanding = pending + IN_HAND
    with stage.database(OURS) as url, stage.workers(OURS, url) as workers:
        stage.load(OURS, url, outstanding)
        stage.calm(url)
        with stage.process(OURS, "feed", url, str(workers.board.path), str(outstanding)) as feeder:
            feeder.until_ready()
            workers.release()
            feeder.release()
            workers.rate(seconds / 4)  # until it runs evenly
            return workers.rate(seconds)
