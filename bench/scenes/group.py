"""What it costs to belong: 10,000 jobs in one group against the same jobs without, in turns."""

from statistics import median

from bench.contenders import OURS
from bench.report import Figures, Show
from bench.scenes.sizes import Sizes
from bench.stage import NotMeasuredError, Process, Stage, Workers

UNFINISHED = "SELECT count(*) FROM task_group WHERE status <> 'completed'"


def measure(stage: Stage, sizes: Sizes, figures: Figures, show: Show) -> None:
    with (
        figures.attempt("group_ratio", "grouped_per_s", "ungrouped_per_s"),
        stage.database(OURS) as url,
        stage.workers(OURS, url) as workers,
        stage.process(OURS, "batches", url, str(sizes.group)) as sender,
    ):
        rates: dict[str, list[float]] = {"plain": [], "grouped": []}
        sender.until_ready()
        workers.release()
        settled(stage, workers, sender, url, sizes.group, "plain")  # the first one pays for plans and caches
        for turn in range(sizes.group_rounds):
            show.step(f"group, round {turn + 1} of {sizes.group_rounds}: {sizes.group:,} children")
            for how in rates:
                rates[how].append(settled(stage, workers, sender, url, sizes.group, how))
        if unfinished := stage.ask(url, UNFINISHED):
            raise NotMeasuredError(f"{unfinished} groups did not complete")
        grouped, plain = median(rates["grouped"]), median(rates["plain"])
        figures.set("grouped_per_s", grouped)
        figures.set("ungrouped_per_s", plain)
        figures.set("group_ratio", grouped / plain)


def settled(stage: Stage, workers: Workers, sender: Process, url: str, jobs: int, how: str) -> float:
    """Jobs per second from their commit, into idle workers, until the last one is settled."""
    before = workers.board.total()
    sender.release(how)
    if not (begin := sender.line()):
        raise NotMeasuredError(sender.complaint())
    workers.handled(before + jobs)
    return jobs / (stage.emptied(OURS, url) - float(begin))
