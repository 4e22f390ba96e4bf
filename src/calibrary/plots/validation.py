"""Figures of a validation: the corrected calibration curve, and how unstable predictions, curves and decisions are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrary.base.errors import one_of
from calibrary.base.numbers import counted, number, percent
from calibrary.data.checks import Array
from calibrary.plots import style
from calibrary.plots.data import FigureData
from calibrary.plots.frame import Said, drawn
from calibrary.plots.pointed import near_words, series, tooltips

if TYPE_CHECKING:
    from calibrary.validation import Validation

KINDS = ("curve", "prediction", "calibration", "classification")
#: Points and lines beyond these numbers hide each other.
_POINTS, _LINES = 20_000, 100
#: Rows predicted within this distance of a place of a curve are counted there.
_REACH = 0.05
#: Entries of the legends.
_CORRECTED, _LIMITS, _REFIT = "corrected for optimism", "95% of the refits", "a refit"


@dataclass(frozen=True)
class ValidationData(FigureData):
    """The data of a figure of a validation.

    Attributes
    ----------
    kind : "curve", "prediction", "calibration" or "classification"
    grid, apparent, corrected, refits : calibration curves; those of the refits one per row
    predicted : the model's predictions, ascending
    low, high : limits that contain 95% of the refits' predictions of a row
    again_x, again_y : predictions of the model and of a refit for the same row, a sample of all pairs
    changed : the share of refits that put each row on the other side of the threshold
    """

    kind: str
    grid: Array
    apparent: Array
    corrected: Array
    refits: Array
    predicted: Array
    low: Array
    high: Array
    again_x: Array
    again_y: Array
    changed: Array
    threshold: float
    overall: float
    n: int
    n_refits: int
    how: str


def validation_data(validation: Validation, kind: str = "curve", *, threshold: float = 0.5) -> ValidationData:
    """The data of :func:`plot_validation`.

    Parameters
    ----------
    validation : the result of :func:`calibrary.validate` for two classes, by bootstrap refits
    kind : "curve", "prediction", "calibration" or "classification"
    threshold : float
        The decision threshold of "classification".

    Examples
    --------
    >>> import calibrary as cal
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrary.plots import validation_data
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> found = cal.validate(GaussianNB(), X, y, metrics="bs", n_resamples=10, rng=0)
    >>> validation_data(found, "prediction").n_refits
    10
    """
    one_of("kind", kind, KINDS)
    curve, found = validation.curve, validation.instability
    order = np.argsort(found.apparent, kind="stable")
    known = np.flatnonzero(~np.isnan(found.predictions).all(axis=0))
    pairs = style.thinned(len(found.predictions) * len(known), _POINTS)
    refit, row = np.divmod(pairs, max(len(known), 1))
    refits = curve.refits[style.thinned(len(curve.refits), _LINES)]
    rows = (column[order] for column in (found.apparent, found.low, found.high))
    again = found.apparent[known[row]], found.predictions[refit, known[row]]
    sizes = float(threshold), found.overall, len(found.apparent), len(curve.refits), validation.how
    curves = curve.grid, curve.apparent, curve.corrected, refits
    values: list[Any] = [kind, *curves, *rows, *again, found.changed(threshold)[order], *sizes]
    return ValidationData(*values)


@drawn(ValidationData, validation_data)
def plot_validation(ax: Any, look: style.Look, data: ValidationData) -> Said:
    """The corrected calibration curve of a validation, or one of three figures of instability.

    Parameters
    ----------
    validation : the result of :func:`calibrary.validate`, or its :class:`ValidationData`
    kind : str
        "curve": the calibration curve of the model on its own rows and corrected for optimism. "prediction": the
        predictions of refits for the same rows. "calibration": the calibration curves of the refits on the original
        rows. "classification": how often a refit puts a row on the other side of the threshold.
    threshold : float
        The decision threshold of "classification".
    ax : matplotlib axes, optional
    caption : bool
        State what was done and how to read it.
    theme : "light" or "dark"

    Returns
    -------
    matplotlib Axes
    """
    title, reading = _DRAWN[data.kind](ax, look, data)
    numbers = f"N = {data.n:,} · {counted(data.n_refits, 'bootstrap refit')}"
    return Said(title, numbers, reading)


def _curve(ax: Any, look: style.Palette, data: ValidationData) -> tuple[str, str]:
    style.unit_square(ax, look)
    ax.plot(data.grid, data.apparent, color=look.gap, lw=1.6, ls=style.DASHED, label="on the model's own rows")
    ax.plot(data.grid, data.corrected, color=look.model, lw=2.0, label=_CORRECTED)
    tooltips(
        ax, data.grid, data.corrected,
        lambda i: f"predicted {percent(data.grid[i])}\nobserved, corrected for optimism: {percent(data.corrected[i])}\n"
        f"on the model's own rows: {percent(data.apparent[i])}\n{_near(data, i)}",
        series=_CORRECTED, curve=True,
    )  # fmt: skip
    _rug(ax, look, data)
    return "Calibration, corrected for optimism", (
        "Local regression of the outcome on the predicted probability. What each refit's curve shows too well on its "
        "own sample is subtracted. Ticks at the lower edge: predictions."
    )


def _near(data: ValidationData, i: int) -> str:
    """How many rows of the model are predicted near a place of the curve."""
    first, last = np.searchsorted(data.predicted, [data.grid[i] - _REACH, data.grid[i] + _REACH])
    return near_words(last - first, data.grid[i], _REACH)


def _prediction(ax: Any, look: style.Palette, data: ValidationData) -> tuple[str, str]:
    style.unit_square(ax, look, "Predicted by the model", "Predicted by a refit")
    ax.plot(
        data.again_x, data.again_y, ".", ms=1.6, color=look.model, alpha=0.15, mew=0, rasterized=True, label="_points"
    )
    with series(ax, _LIMITS):
        for limit, name in ((data.low, _LIMITS), (data.high, "_high")):
            x, y = _running(data.predicted, limit)
            ax.plot(x, y, color=look.gap, lw=1.5, ls=style.DASHED, label=name)
    tooltips(
        ax, data.predicted, data.predicted,
        lambda i: f"predicted {percent(data.predicted[i])}\n"
        f"{_LIMITS}: {percent(data.low[i])} to {percent(data.high[i])}",
        curve=True,
    )  # fmt: skip
    return "Instability of predictions", (
        f"Each row is predicted by every refit; the mean absolute change is {number(data.overall)}. The points of a "
        "stable model lie close to the diagonal."
    )


def _calibration(ax: Any, look: style.Palette, data: ValidationData) -> tuple[str, str]:
    style.unit_square(ax, look)
    with series(ax, _REFIT):
        for j, line in enumerate(data.refits):
            ax.plot(data.grid, line, color=look.gray, lw=0.6, alpha=0.35, label=_REFIT if j == 0 else "_refit")
    ax.plot(data.grid, data.apparent, color=look.model, lw=2.0, label="the model")
    tooltips(
        ax, data.grid, data.apparent,
        lambda i: f"predicted {percent(data.grid[i])}\nobserved, smoothed: {percent(data.apparent[i])}\n"
        f"refits drawn: {percent(np.nanmin(data.refits[:, i]))} to {percent(np.nanmax(data.refits[:, i]))}\n"
        f"{_near(data, i)}",
        curve=True,
    )  # fmt: skip
    _rug(ax, look, data)
    return "Instability of calibration", (
        "The calibration curve of every refit on the original rows. A wide bundle means that the curve depends "
        "on which rows the model was fitted to."
    )


def _classification(ax: Any, look: style.Palette, data: ValidationData) -> tuple[str, str]:
    known = ~np.isnan(data.changed)
    ax.axvline(data.threshold, color=look.gray, lw=1.0, ls=style.DASHED, label=f"threshold {number(data.threshold)}")
    ax.plot(data.predicted[known], data.changed[known], ".", ms=4, color=look.model, alpha=0.5, mew=0, label="a row")
    tooltips(
        ax, data.predicted, data.changed,
        lambda i: f"predicted {percent(data.predicted[i])}\n{percent(data.changed[i])} of the refits disagree",
        series="a row", curve=True,
    )  # fmt: skip
    ax.set(
        xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="Predicted by the model", ylabel="Share of refits that disagree"
    )
    mean = float(data.changed[known].mean())
    return "Instability of decisions", (
        f"How often a refit puts a row on the other side of the threshold {number(data.threshold)}; on average "
        f"{percent(mean)} of the refits do. Above 0.5 most refits disagree with the model."
    )


_DRAWN = {"curve": _curve, "prediction": _prediction, "calibration": _calibration, "classification": _classification}


def _rug(ax: Any, look: style.Palette, data: ValidationData) -> None:
    shown = data.predicted[style.thinned(len(data.predicted), 500)]
    ax.plot(shown, np.full(len(shown), -0.012), "|", color=look.gray, ms=4, mew=0.5, alpha=0.5, label="_rows")


def _running(x: Array, limit: Array, parts: int = 25) -> tuple[Array, Array]:
    """The running mean of the limits over adjacent rows, for a smooth line."""
    pieces = np.array_split(np.arange(len(x)), min(parts, len(x)))
    return np.array([x[i].mean() for i in pieces]), np.array([limit[i].mean() for i in pieces])
