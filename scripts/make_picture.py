"""Two pictures of the documentation, from embedded and from simulated data.

    python scripts/make_picture.py

docs/picture.png and picture-narrow.png, of the README and of the site's home: what a random forest said about 1,797
handwritten digits, what happened, and whether that could be chance. docs/uncertainty.png: an estimate that lies above
its interval.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt
import numpy as np

import calibrary as cal
from calibrary import plots

OUT = Path(__file__).parent.parent / "docs" / "picture.png"
BLUE, ORANGE, GREY = "#0173b2", "#d55e00", "#c9ced6"


def draw(path: Path, narrow: bool = False) -> None:
    """Two panels side by side, or one above the other for telephones."""
    y, p, _ = cal.datasets.digits()
    if narrow:
        fig, (left, right) = plt.subplots(2, 1, figsize=(5, 8.4), layout="constrained", height_ratios=(1.5, 1))
    else:
        fig, (left, right) = plt.subplots(1, 2, figsize=(10.5, 4.7), layout="constrained", width_ratios=(1, 1.15))
    bins = plots.reliability_data(y, p, n_bins=10)
    left.plot([0, 1], [0, 1], "--", color="#555c66", lw=1)
    ends = (bins.outcome - bins.low, bins.high - bins.outcome)
    left.errorbar(bins.confidence, bins.outcome, ends, fmt="o-", color=BLUE, ms=6, lw=1.2, capsize=3)
    left.set(
        xlim=(0, 1), ylim=(0, 1.02), xlabel="confidence of the model", ylabel="how often it was right", aspect="equal"
    )
    middle = abs(bins.confidence - 0.55).argmin()
    left.annotate(
        f"confidence {bins.confidence[middle]:.0%},\nright {bins.outcome[middle]:.0%} of the time",
        (bins.confidence[middle], bins.outcome[middle]), (0.63, 0.42), color=BLUE,
        arrowprops={"arrowstyle": "-", "color": BLUE},
    )  # fmt: skip
    left.text(0.30, 0.24, "calibrated", rotation=45, color="#555c66", ha="center", va="center")

    null = cal.expected_by_chance("ece", y, p, rng=0)
    found = cal.interval("ece", y, p, rng=0)
    right.hist(null.values, 40, color=GREY)
    top = right.get_ylim()[1]
    right.plot([found.low, found.high], [0.30 * top] * 2, color=ORANGE, lw=5, solid_capstyle="butt")
    right.plot(found.value, 0.30 * top, "o", color=ORANGE, ms=9, mec="white")
    words = f"estimate {found.value:.3f}\n95% interval {found.low:.3f} to {found.high:.3f}"
    right.text(found.value, 0.40 * top, words, color=ORANGE, ha="center")
    right.text(
        float(null.mean) + 0.008, 0.92 * top, "what a calibrated model\nwould show by chance", color="#555c66", va="top"
    )
    right.set(xlim=(0, 1.08 * found.high), xlabel="expected calibration error", yticks=[])
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    right.spines["left"].set_visible(False)
    left.set_title("Under-confident", loc="left", weight="bold")
    right.set_title("and more so than by chance", loc="left", weight="bold")
    fig.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(fig)


def draw_above(path: Path) -> None:
    """A calibrated model in bins that are too many for its rows."""
    rng = np.random.default_rng(1)
    p = rng.random(300)
    y = (rng.random(300) < p).astype(int)
    null = cal.expected_by_chance("ece", y, p, n_bins=50, rng=0)
    found = cal.interval("ece", y, p, n_bins=50, rng=0)
    fig, ax = plt.subplots(figsize=(7.2, 2.9), layout="constrained")
    ax.hist(null.values, 40, color=GREY)
    top = ax.get_ylim()[1]
    ax.plot([found.low, found.high], [0.4 * top] * 2, color=ORANGE, lw=5, solid_capstyle="butt")
    ax.text(0.002, 0.5 * top, f"interval of the true error:\n{found.low:.0f} to {found.high:.3f}", color=ORANGE)
    ax.plot(found.value, 0.4 * top, "o", color=BLUE, ms=9, mec="white")
    ax.annotate(
        f"estimate {found.value:.3f}", (found.value, 0.4 * top), (0.062, 0.75 * top), color=BLUE,
        arrowprops={"arrowstyle": "-", "color": BLUE},
    )  # fmt: skip
    ax.text(0.152, 0.6 * top, "estimates that a\ncalibrated model\nshows by chance", color="#555c66")
    ax.set(xlim=(-0.002, 0.19), xlabel="expected calibration error, 50 bins, 300 rows (the true error is 0)", yticks=[])
    ax.spines[["top", "right", "left"]].set_visible(False)
    fig.savefig(path, dpi=110, metadata={"Software": None})
    plt.close(fig)


if __name__ == "__main__":
    draw(OUT)
    draw_above(OUT.with_name("uncertainty.png"))
    draw(OUT.with_name("picture-narrow.png"), narrow=True)
