"""A study with simulated data that resemble your own predictions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.numbers import number, percent
from calibrary.data.checks import Array
from calibrary.data.lens import Lens
from calibrary.data.predictions import predictions
from calibrary.study.construction import BiasByConstruction, one_view
from calibrary.study.panel import binary_panel
from calibrary.study.presets import Preset, Size
from calibrary.study.result import StudyResult
from calibrary.study.runs import run
from calibrary.study.world import CalibrationCurve, Law, World, beta_law, with_ones

#: The multiples of your error that a metric must rank.
_AMPLITUDES = (0.0, 0.5, 1.0, 1.5)
#: The largest sample size; larger samples take more time without changing the result.
_MOST_ROWS = 100_000


@dataclass(frozen=True)
class Mine:
    """The performance of metrics on predictions like yours; print the result as a table.

    Attributes
    ----------
    world : the fitted simulation model
    n : number of rows of every sample
    l1 : the true L1 error of the fitted model
    rows : for each number: ``value`` on your data; ``null``, ``null_sd`` and ``bar``, mean, standard deviation and
        95% quantile if such predictions were calibrated; ``mean`` in the fitted model; ``power``, how often an error
        like yours is above ``bar``; ``orders``, the share of pairs of models with 0, 0.5, 1 and 1.5 times your error in
        the right order
    study : the whole study
    """

    world: BiasByConstruction
    n: int
    l1: float
    rows: dict[str, dict[str, Any]]
    study: StudyResult

    def __str__(self) -> str:
        lines = [
            f"The simulation model fitted to your predictions: {self.world!r}",
            f"Its true error: {number(self.l1)}; samples of {self.n:,} rows.",
            "Value: of your data. Chance, 95%: mean and 95% quantile if such predictions were calibrated. Power: how "
            "often an",
            "error like yours is detected. Order: pairs of models of different error in the right order.",
            f"{'metric':24} {'value':>9} {'chance':>10} {'95%':>9} {'power':>8} {'order':>7}",
        ]
        for name, row in sorted(self.rows.items(), key=lambda item: -(item[1]["power"] or 0.0)):
            lines.append(
                f"{name:24} {number(row['value']) or '-':>9} {number(row['null']) or '-':>10} "
                f"{number(row['bar']) or '-':>9} "
                f"{percent(row['power']) or '-':>8} {percent(row['orders']) or '-':>7}"
            )
        return "\n".join(lines)


def mine(
    y_true: Any,
    y_prob: Any = None,
    *,
    metrics: Any = None,
    sample_weight: Any = None,
    lens: str | Lens = "auto",
    draws: int = 20,
    seed: int = 0,
    watch: Any = None,
) -> Mine:
    """Simulate how well metrics work on predictions like yours.

    A beta distribution and a calibration curve are fitted (:meth:`BiasByConstruction.fit`). Samples with as many rows
    as yours are drawn from this model, from its calibrated version, and with half and one and a half times its error.

    Parameters
    ----------
    y_true, y_prob, sample_weight
        As for every metric.
    metrics : optional
        Ids, functions of (labels, confidences), or a mapping of names to either; by default all metrics that take less
        than a tenth of a second.
    lens : str or Lens
        "auto" is "binary" for one column of probabilities and "top-label" for more.
    draws : int
        Number of samples of every setting; four times as many if it is calibrated.
    seed : int

    Examples
    --------
    >>> from calibrary import study
    >>> y, p = study.World("wide", "temperature 0.4").sample(300, rng=0)
    >>> found = study.mine(y, p, metrics=["ece", "spiegelhalter"], draws=10)
    >>> found.rows["ece"]["power"] > 0.9
    True
    """
    view = one_view(predictions(y_true, y_prob, sample_weight=sample_weight), lens, "study")
    fitted = BiasByConstruction.fit(view)
    n = min(view.n, _MOST_ROWS)
    worlds = {a: World(_law(fitted), _curve(fitted, a)) for a in _AMPLITUDES}
    preset = Preset(
        "mine", "the simulation model fitted to your predictions", tuple(worlds.values()), (Size(n, draws, 4 * draws),)
    )
    study = run(preset, metrics=metrics, seed=seed, watch=watch)
    numbers = {x.name: x for x in binary_panel(metrics, binnings=False)}
    rows = {}
    for name, measured in numbers.items():
        if name in study.found["sizes"][str(n)]:
            value, _ = measured(view)
            row = study.row(name, n)
            rows[name] = {
                "value": None if np.isnan(value) else value,
                "null": row.get("null"),
                "null_sd": row.get("null_sd"),
                "bar": next(iter(row.get("null_q95", {}).values()), None),
                "mean": study.means(name, n).get(worlds[1.0].name),
                "power": row.get("power_by_family", {}).get(worlds[1.0].family),
                "orders": row.get("within"),
            }
    return Mine(fitted, n, worlds[1.0].truth().l1, rows, study)


def _law(fitted: BiasByConstruction) -> Law:
    inside = beta_law(fitted.alpha, fitted.beta)
    return Law("yours", 20_000, with_ones(inside, 1.0 - fitted.p1), "your confidences")


def _curve(fitted: BiasByConstruction, amplitude: float) -> CalibrationCurve:
    """The fitted curve with a multiple of its error; each multiple is a separate family, so that power is separate."""
    name = f"your error x {amplitude:g}"

    def truth(c: Array) -> Array:
        return c + amplitude * (fitted.calibration(c) - c)

    return CalibrationCurve(name, 20_000 + round(1000 * amplitude), name if amplitude else "calibrated", truth)
