"""The grouping diagram: cases with the same confidence that are not alike, which no calibration error can see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.errors import warn
from calibrary.grouping import EqualWidth
from calibrary.plots import style
from calibrary.plots.data import FigureData, axis_names, binary_view
from calibrary.predictions import Array, Indices


@dataclass(frozen=True)
class GroupingData(FigureData):
    """One entry per leaf: its bin, held-out count, mean confidence, frequency, Clopper-Pearson bounds, whether it
    differs from the bin's mean beyond chance; and the mean curve over bins."""

    bin: Indices
    count: Array
    confidence: Array
    frequency: Array
    low: Array
    high: Array
    significant: Array
    bin_confidence: Array
    bin_frequency: Array
    n: float
    lens: str


def grouping_data(
    y_true: Any,
    y_prob: Any,
    features: Any,
    *,
    n_bins: int = 15,
    n_groups: int = 2,
    test_size: float = 0.5,
    lens: Any = "auto",
    rng: Any = 0,
    **checked: Any,
) -> GroupingData:
    """In every confidence bin, split half of the cases by the features where they differ most; judge on the rest.

    Needs scikit-learn (``pip install calibrary[sklearn]``). A regression tree with leaves of at least n/n_groups cases
    is grown on the training half of each bin, and its leaves are measured on the other half.
    """
    try:
        from sklearn.tree import DecisionTreeRegressor
    except ImportError as error:
        raise ImportError("the grouping diagram needs scikit-learn: pip install 'calibrary[sklearn]'") from error
    from scipy.special import betaincinv

    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    x = np.asarray(view.align(features, "features"), dtype=float)
    x = x[:, None] if x.ndim == 1 else x
    index = EqualWidth(n_bins, "right").fit(view.c).assign(view.c)
    shuffled = np.random.default_rng(rng).permutation(view.n)
    training = np.zeros(view.n, dtype=bool)
    training[shuffled[: round((1 - test_size) * view.n)]] = True
    leaves: list[tuple[float, ...]] = []
    curve: list[tuple[float, float]] = []
    for b in range(n_bins):
        learn, judge = np.flatnonzero((index == b) & training), np.flatnonzero((index == b) & ~training)
        least = len(learn) // n_groups
        if least < 1 or len(judge) == 0:
            continue
        tree = DecisionTreeRegressor(min_samples_leaf=least, max_leaf_nodes=max(n_groups, 2), random_state=0)
        leaf = tree.fit(x[learn], view.y[learn]).apply(x[judge])
        everyone = float(view.y[judge].mean())
        curve.append((float(view.c[judge].mean()), everyone))
        for k in np.unique(leaf):
            rows = judge[leaf == k]
            n, hits = len(rows), float(view.y[rows].sum())
            low = betaincinv(hits, n - hits + 1, 0.025) if hits > 0 else 0.0
            high = betaincinv(hits + 1, n - hits, 0.975) if hits < n else 1.0
            apart = len(np.unique(leaf)) > 1 and not low <= everyone <= high
            leaves.append((b, n, float(view.c[rows].mean()), hits / n, low, high, apart))
    if not leaves:
        raise ValueError("no bin holds enough cases to split: use fewer bins (n_bins=) or more data")
    table = np.array(leaves, dtype=float)
    if np.median(table[:, 1]) < 20:
        warn(
            f"half of the leaves hold fewer than 20 held-out cases (median {np.median(table[:, 1]):g}): use fewer bins"
        )
    mean = np.array(curve)
    count, confidence, frequency, low, high = table[:, 1:6].T
    return GroupingData(
        table[:, 0].astype(np.intp),
        count,
        confidence,
        frequency,
        low,
        high,
        table[:, 6].astype(bool),
        mean[:, 0],
        mean[:, 1],
        view.total,
        name,
    )


def plot_grouping(
    y_true: Any,
    y_prob: Any = None,
    features: Any = None,
    *,
    ax: Any = None,
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """Within each confidence bin, two groups of cases found from the features; far apart means grouping loss."""
    data = y_true if isinstance(y_true, GroupingData) else grouping_data(y_true, y_prob, features, **options)
    ax = style.new_axes(ax, theme=theme)
    style.unit_square(ax, *axis_names(data.lens))
    ax.plot(data.bin_confidence, data.bin_frequency, color=style.GREY, lw=1.2, marker=".", label="all cases of the bin")
    for b in np.unique(data.bin):
        at = data.bin == b
        ax.plot(data.confidence[at], data.frequency[at], color=style.LIGHT, lw=1, zorder=2)
    size = 12 + 110 * data.count / data.count.max()
    error = np.maximum([data.frequency - data.low, data.high - data.frequency], 0)
    ax.errorbar(data.confidence, data.frequency, yerr=error, fmt="none", ecolor=style.LIGHT, elinewidth=1, zorder=2)
    for flag, colour, text in ((False, style.MODEL, "group"), (True, style.GAP, "group, differs beyond chance")):
        at = data.significant == flag
        if at.any():
            ax.scatter(
                data.confidence[at],
                data.frequency[at],
                s=size[at],
                color=colour,
                edgecolor="white",
                lw=0.7,
                zorder=3,
                label=text,
            )
    style.title(ax, "Grouping diagram")
    style.legend(ax, loc="upper left")
    if caption:
        style.caption(
            ax,
            f"N = {data.n:,.0f}, lens {data.lens}. Area of a point: held-out cases of the group; bars: 95% "
            "Clopper-Pearson. Points far apart in one bin: the model treats unlike cases alike.",
        )
    return ax
