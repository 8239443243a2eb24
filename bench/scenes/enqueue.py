"""How many jobs one process sends in a second, 25,000 a transaction."""

from statistics import median

from bench.contenders import OURS
from bench.report import Figures, Show
from bench.scenes.sizes import Sizes
from bench.stage import Stage


def measure(stage: Stage, sizes: Sizes, figures: Figures, show: Show) -> None:
    with figures.attempt("enqueue_per_s"):
        rates = []
        for turn in range(sizes.rounds):
            show.step(f"bulk enqueue, round {turn + 1} of {sizes.rounds}: {sizes.enqueue:,} jobs")
            with stage.database(OURS) as url:
                stage.calm(url)
                rates.append(float(stage.run(OURS, "enqueue", url, str(sizes.enqueue))))
        figures.set("enqueue_per_s", median(rates))
