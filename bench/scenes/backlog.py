"""Whether a long line slows the workers: the same work while 1,000 and while 1,000,000 jobs are pending.

Every job sends its successor in the transaction that completes it. So the line keeps its length, both cases
carry the same load, and no feeder can starve the short line, which would make the long one look good. That the
short line does not run empty is sampled after the clock has stopped, as looking slows the workers.
"""

from statistics import mean, median

from bench.contenders import OURS
from bench.report import Figures, Show
from bench.scenes.sizes import Sizes
from bench.stage import NotMeasuredError, Stage

IN_HAND = 3_000  # what two workers hold beyond what is pending, as sampled
LOOKS = 16
PENDING = "SELECT count(*) FROM ticket WHERE worker IS NULL AND NOT suspect"


def measure(stage: Stage, sizes: Sizes, figures: Figures, show: Show) -> None:
    names = ("backlog_ratio", "backlog_few_per_s", "backlog_many_per_s", "backlog_few_pending")
    with figures.attempt(*names):
        few: list[float] = []
        waiting: list[int] = []
        show.step(f"backlog: {sizes.few:,} pending")
        few.append(fed(stage, sizes.few, sizes.window, waiting))
        show.step(f"backlog: {sizes.many:,} pending")
        many = fed(stage, sizes.many, sizes.window, [])
        show.step(f"backlog: {sizes.few:,} pending again")  # what the machine does to one, it does to the other
        few.append(fed(stage, sizes.few, sizes.window, waiting))
        if min(waiting) == 0 or median(waiting) < sizes.few / 2:
            raise NotMeasuredError(f"the short line was starved: {sorted(waiting)} jobs were pending")
        for name, value in zip(names, (many / mean(few), mean(few), many, median(waiting)), strict=True):
            figures.set(name, value)


def fed(stage: Stage, pending: int, seconds: float, waiting: list[int]) -> float:
    """Jobs per second while the line keeps its length; adds to `waiting` how long it then is, several times."""
    with stage.database(OURS) as url, stage.workers(OURS, url) as workers:
        stage.run(OURS, "chains", url, str(pending + IN_HAND))
        stage.calm(url)
        workers.release()
        workers.rate(seconds / 4)  # until it runs evenly
        rate = workers.rate(seconds)
        for _ in range(LOOKS):
            workers.rate(0.1)
            waiting.append(int(stage.ask(url, PENDING)))
        return rate
