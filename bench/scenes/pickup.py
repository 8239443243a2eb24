"""Pick-up latency: from the commit of one job into an idle queue until its handler starts."""

from statistics import quantiles

from bench.contenders import GRAPHILE, OURS, PGQUEUER, PROCRASTINATE, Contender
from bench.report import Figures, Show
from bench.scenes.sizes import Sizes
from bench.stage import NotMeasuredError, Stage

WARM_UP = 20  # the first ones pay for plans and caches


def measure(stage: Stage, sizes: Sizes, figures: Figures, show: Show) -> None:
    for contender in (OURS, PGQUEUER, GRAPHILE, PROCRASTINATE):
        prefix = "" if contender is OURS else f"{contender.key}_"
        names = [f"{prefix}pickup_p50_ms", f"{prefix}pickup_p99_ms", f"{prefix}send_to_start_p50_ms"]
        show.step(f"pick-up latency: {sizes.samples:,} jobs one by one, by {contender.name}")
        with figures.attempt(*names):
            pairs = samples(stage, contender, sizes.samples)
            whole, committed = ([pair[i] / 1e6 for pair in pairs] for i in (0, 1))
            for name, value in zip(names, (_p(committed, 50), _p(committed, 99), _p(whole, 50)), strict=True):
                figures.set(name, value)


def samples(stage: Stage, contender: Contender, count: int) -> list[tuple[int, int]]:
    """Nanoseconds from the begin of the send, and from the return of its commit, to the handler's start."""
    if reason := contender.missing():
        raise NotMeasuredError(reason)
    with (
        stage.database(contender) as url,
        stage.workers(contender, url, processes=1) as workers,
        stage.process(contender, "send", url, str(workers.board.path), str(count + WARM_UP)) as sender,
    ):
        sender.until_ready()
        workers.release()
        workers.rate(1.0)  # until it listens and has nothing to do
        sender.release()
        lines = [sender.line() for _ in range(count + WARM_UP)]
        if not lines[-1]:
            raise NotMeasuredError(sender.complaint())
    pairs = [line.split() for line in lines[WARM_UP:]]
    return [(int(whole), int(committed)) for whole, committed in pairs]


def _p(values: list[float], percent: int) -> float:
    return quantiles(values, n=100, method="inclusive")[percent - 1]
