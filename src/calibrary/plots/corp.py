"""The CORP diagram: isotonic reliability, consistency band, and the score split in three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.errors import one_of
from calibrary.maps.isotonic import pooled_frequencies
from calibrary.metrics.point import score_decomposition
from calibrary.plots import style
from calibrary.plots.data import FigureData, axis_names, binary_view
from calibrary.predictions import Array, Predictions


@dataclass(frozen=True)
class CorpData(FigureData):
    """Isotonic fit at the distinct confidences, a band at the same places, and MCB, DSC, UNC of the Brier score."""

    score: Array
    fit: Array
    weight: Array
    low: Array
    high: Array
    miscalibration: float
    discrimination: float
    uncertainty: float
    brier: float
    n: float
    lens: str
    band: str | None
    level: float


def corp_data(
    y_true: Any,
    y_prob: Any = None,
    *,
    band: str | None = "consistency",
    confidence_level: float = 0.9,
    n_resamples: int = 1000,
    lens: Any = "auto",
    rng: Any = 0,
    **checked: Any,
) -> CorpData:
    """Isotonic regression of the outcome on the confidence, with a band.

    ``band="consistency"`` shows where the fit of a calibrated model would lie (around the diagonal); "confidence"
    how uncertain the fit itself is (labels drawn from it); None draws no band.
    """
    one_of("band", band or "none", ("consistency", "confidence", "none"))
    view, name = binary_view(y_true, y_prob, lens=lens, **checked)
    ties, fit = view.ties, pooled_frequencies(view)
    low, high = fit, fit
    if band is not None:
        draws = n_resamples if view.n <= 20_000 else max(100, int(n_resamples * 20_000 / view.n))
        truth = ties.c if band == "consistency" else fit
        low, high = _band(view, truth, draws, confidence_level, np.random.default_rng(rng))
    parts: Any = score_decomposition(view, lens="binary")
    return CorpData(
        ties.c,
        fit,
        ties.w,
        low,
        high,
        parts.miscalibration,
        parts.discrimination,
        parts.uncertainty,
        parts.score,
        view.total,
        name,
        band,
        confidence_level,
    )


def _band(view: Predictions, truth: Array, draws: int, level: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Pointwise quantiles of isotonic fits to resampled predictions with labels drawn from ``truth``, made monotone."""
    from scipy.optimize import isotonic_regression

    ties = view.ties
    n = max(round(view.total), 1)
    share = ties.w / ties.w.sum()
    fits = np.empty((draws, len(truth)))
    for b in range(draws):
        count = rng.multinomial(n, share)
        used = np.flatnonzero(count)
        positive = rng.binomial(count[used], np.clip(truth[used], 0, 1))
        fitted = isotonic_regression(positive / count[used], weights=count[used].astype(float)).x
        fits[b] = np.interp(ties.c, ties.c[used], fitted)
    low, high = np.quantile(fits, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return np.maximum.accumulate(low), np.minimum.accumulate(high[::-1])[::-1]


def plot_corp(
    y_true: Any,
    y_prob: Any = None,
    *,
    ax: Any = None,
    diagram: str = "reliability",
    caption: bool = True,
    theme: str = "light",
    **options: Any,
) -> Any:
    """Reliability by isotonic regression: no bins and nothing to tune; thick where the fit is constant.

    ``diagram="bias"`` draws fit minus score against score. Returns the matplotlib Axes.
    """
    one_of("diagram", diagram, ("reliability", "bias"))
    data = y_true if isinstance(y_true, CorpData) else corp_data(y_true, y_prob, **options)
    ax = style.new_axes(ax, theme=theme)
    base = data.score if diagram == "bias" else np.zeros_like(data.score)
    if diagram == "bias":
        ax.axhline(0, color=style.GREY, lw=1, ls=(0, (4, 3)))
        ax.set_xlim(-0.02, 1.02)
        ax.set_xlabel(axis_names(data.lens)[0])
        ax.set_ylabel("Observed minus predicted")
    else:
        style.unit_square(ax, *axis_names(data.lens))
    if data.band is not None:
        named = "if calibrated" if data.band == "consistency" else "confidence band"
        ax.fill_between(
            data.score,
            data.low - base,
            data.high - base,
            color=style.GREY,
            alpha=0.2,
            lw=0,
            label=f"{data.level:.0%} {named}",
        )
    ax.plot(data.score, data.fit - base, color=style.GAP, lw=1.2, zorder=3)
    for first, last in _flat(data.fit):
        ax.plot(
            data.score[[first, last]],
            (data.fit - base)[[first, last]],
            color=style.GAP,
            lw=3,
            zorder=4,
            solid_capstyle="round",
        )
    text = f"MCB {data.miscalibration:.4f}\nDSC {data.discrimination:.4f}\nUNC {data.uncertainty:.4f}"
    ax.text(
        0.98,
        0.04,
        text,
        transform=ax.transAxes,
        ha="right",
        va="bottom",
        fontsize=9,
        color=ax.xaxis.label.get_color(),
        linespacing=1.4,
    )
    style.title(ax, "CORP reliability diagram" if diagram == "reliability" else "Bias by isotonic regression")
    style.legend(ax, loc="upper left")
    if caption:
        style.caption(
            ax,
            f"N = {data.n:,.0f}, lens {data.lens}. Brier score {data.brier:.4f} = miscalibration MCB - "
            "discrimination DSC + uncertainty UNC. Outside the grey band the deviation is more than chance there.",
        )
    return ax


def _flat(fit: Array) -> list[tuple[int, int]]:
    """First and last position of every stretch where the fit is constant."""
    starts = np.flatnonzero(np.concatenate(([True], np.diff(fit) != 0)))
    ends = np.append(starts[1:] - 1, len(fit) - 1)
    return [(int(a), int(b)) for a, b in zip(starts, ends, strict=True) if b > a]
