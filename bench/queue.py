"""Measures the queue beside its peers, all on one embedded PostgreSQL in one run: `make bench-queue`."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)  # or this file would stand in for the standard library's queue

import argparse  # noqa: E402

from bench.plot import draw  # noqa: E402
from bench.report import Figures, Show, machine, write_page  # noqa: E402
from bench.scenes import backlog, enqueue, group, pickup, snapshot, throughput, writing  # noqa: E402
from bench.scenes.sizes import QUICK, Sizes  # noqa: E402
from bench.stage import Stage  # noqa: E402

SCENES = {
    "throughput": throughput.measure,
    "pickup": pickup.measure,
    "enqueue": enqueue.measure,
    "writing": writing.measure,
    "group": group.measure,
    "backlog": backlog.measure,
    "snapshot": snapshot.measure,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of everything, for trying; changes no page")
    parser.add_argument("--only", choices=SCENES, action="append", help="this alone; changes no page")
    options = parser.parse_args()
    sizes = QUICK if options.quick else Sizes()
    figures = Figures()
    show = Show(figures)
    with Stage() as stage, show.running():
        for name in options.only or SCENES:
            SCENES[name](stage, sizes, figures, show)
    if not options.quick and not options.only:
        draw(ROOT / "docs/img/bench-queue.svg", figures)
        write_page(ROOT / "docs/benchmarks.md", figures, machine())
    print(figures.json())


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
