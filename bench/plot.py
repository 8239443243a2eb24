"""Draws the comparison as bars."""

from pathlib import Path

import matplotlib as mpl
from bench.report import PEERS, Figures

mpl.use("svg")
mpl.rcParams["svg.hashsalt"] = "gristmill"  # the same figures give the same file

from matplotlib import pyplot as plt  # noqa: E402 the backend is chosen first

OWN_COLOUR, PEER_COLOUR = "#b5651d", "#9aa5b1"


def draw(path: Path, figures: Figures) -> None:
    """Jobs per second on the left, pick-up latency on the right; who was not measured is left out."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.6), width_ratios=(3, 2))
    _bars(left, figures, "jobs_per_s", "jobs per second (more is better)")
    _bars(right, figures, "pickup_p50_ms", "pick-up p50 in ms (less is better)")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _bars(axes: plt.Axes, figures: Figures, name: str, title: str) -> None:
    values = {peer: figures.get(prefix + name) for peer, prefix in PEERS.items()}
    known = {peer: value for peer, value in reversed(values.items()) if value is not None}
    bars = axes.barh(list(known), list(known.values()))
    for bar, peer in zip(bars, known, strict=True):
        bar.set_color(OWN_COLOUR if peer == "gristmill" else PEER_COLOUR)
    axes.bar_label(bars, [figures.shown(PEERS[peer] + name) for peer in known], padding=3, fontsize=8)
    axes.set_title(title, fontsize=9)
    axes.tick_params(labelsize=8)
    axes.margins(x=0.15)
    axes.spines[["top", "right"]].set_visible(False)
