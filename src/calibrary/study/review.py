"""The review's own studies: a model made more or less confident (9.2), and the three objectives of a map (5.10)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import collected_warnings, whole
from calibrary.base.moved import RenamedFields
from calibrary.data.checks import Array, checked_probabilities, softmax
from calibrary.data.predictions import predictions
from calibrary.data.sample import drawn_labels
from calibrary.lookup import catalogue
from calibrary.maps import fit_map
from calibrary.numerics.draw import addressed, generator
from calibrary.study.measures import spearman
from calibrary.study.presets import PRESETS
from calibrary.study.result import StudyResult
from calibrary.study.world import World

#: The default temperatures, from strongly over-confident to strongly under-confident.
_TEMPERATURES = (0.25, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4, 2.0, 2.8, 4.0)
#: Fast maps that need only labels and confidences.
MAPS = ("bins", "isotonic", "beta", "platt", "loess", "local-linear", "rcs", "pl")


@dataclass(frozen=True)
class TemperatureSweep(RenamedFields):
    """The mean of metrics at several temperatures; at 1 the predictions are calibrated.

    Attributes
    ----------
    temperatures : below 1 the predictions are over-confident, above 1 under-confident
    means : metric -> its mean at every temperature
    best : metric -> the temperature with the best mean; 1 for a metric that identifies the calibrated model
    steady : metric -> whether it gets worse with every step away from 1, in both directions
    n_repeats : number of sets of labels for each mean
    """

    temperatures: Array
    means: Mapping[str, Array]
    best: Mapping[str, float]
    steady: Mapping[str, bool]
    n_repeats: int

    def __str__(self) -> str:
        head = "".join(f"{t:>9.3g}" for t in self.temperatures)
        rows = [f"{id:<16}" + "".join(f"{v:9.4f}" for v in values) for id, values in self.means.items()]
        return "\n".join([f"{'temperature':<16}{head}", *rows])


def temperature_sweep(
    metrics: Sequence[str],
    y_prob: Any,
    *,
    temperatures: Sequence[float] = _TEMPERATURES,
    n_repeats: int = 5,
    rng: Any = None,
    **options: Any,
) -> TemperatureSweep:
    """Change the temperature of calibrated predictions, and compute metrics at each temperature.

    Labels are drawn from ``y_prob``, so that at temperature 1 the predictions are calibrated; at T the logits are
    divided by T. The same labels are used for every temperature and metric. A good metric is smallest at 1 and
    increases on both sides.

    Parameters
    ----------
    metrics : list of str
        Ids of metrics of one number.
    y_prob : array-like of shape (N,) or (N, K)
        The true probabilities.
    temperatures : list of float
        Above 0; 1 must be among them.
    n_repeats : int
        Number of sets of labels to average over.
    rng : int, Generator or None
    **options
        Settings for every metric, such as ``lens``.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrary.study import temperature_sweep
    >>> truth = np.random.default_rng(0).beta(0.8, 0.8, 1000)
    >>> sweep = temperature_sweep(["sce", "mce"], truth, temperatures=[0.25, 0.5, 1, 2, 4], rng=0)
    >>> sweep.best["sce"], sweep.steady["sce"]
    (1.0, True)
    """
    truth = checked_probabilities(y_prob)
    steps = np.sort(np.asarray(temperatures, dtype=np.float64))
    if steps.ndim != 1 or not (steps > 0.0).all() or 1.0 not in steps:
        raise ValueError(f"temperatures={temperatures!r} must be numbers above 0, with 1 among them")
    entries = [catalogue[metric] for metric in metrics]
    models = [_tempered(truth, t) for t in steps]
    source = generator(rng, "labels")
    total = np.zeros((len(entries), len(steps)))
    for _ in range(whole("n_repeats", n_repeats)):
        y = drawn_labels(source.random(len(truth)), truth).astype(np.intp)
        total += [[float(entry(y, model, **options)) for model in models] for entry in entries]
    mean = total / n_repeats
    worse = [_badness(entry, row) for entry, row in zip(entries, mean, strict=True)]
    keys = [entry.key for entry in entries]
    by, one = list(zip(keys, worse, strict=True)), int(np.flatnonzero(steps == 1.0)[0])
    best = {key: float(steps[np.argmin(bad)]) for key, bad in by}
    steady = {key: bool((np.diff(bad[: one + 1]) < 0.0).all() and (np.diff(bad[one:]) > 0.0).all()) for key, bad in by}
    return TemperatureSweep(steps, dict(zip(keys, mean, strict=True)), best, steady, n_repeats)


def _tempered(truth: Array, temperature: float) -> Array:
    """The probabilities with their logits divided by the temperature."""
    columns = np.column_stack([1.0 - truth, truth]) if truth.ndim == 1 else truth
    with np.errstate(divide="ignore"):
        made = softmax(np.log(columns) / temperature)
    return made[:, 1] if truth.ndim == 1 else made


def _badness(entry: Any, values: Array) -> Array:
    """The distance of each value from the best possible value."""
    if entry.better == "perfect":
        return np.asarray(np.abs(values - entry.perfect))
    return -values if entry.better == "higher" else values


def by_temperature(found: StudyResult, n: int = 3000) -> dict[str, dict[str, dict[float, float]]]:
    """Means by law and temperature, from a study of the preset "temperature" (section 9.2).

    A useful metric has its smallest value at temperature 1 and increases on both sides.

    Returns
    -------
    dict
        number -> law -> temperature -> mean, more being worse.
    """
    swept: dict[str, dict[str, dict[float, float]]] = {}
    for name in found.found["sizes"][str(n)]:
        for world, mean in found.means(name, n).items():
            law, curve = world.split(", ")[:2]
            slope = 1.0 if curve == "calibrated" else float(curve.removeprefix("temperature "))
            swept.setdefault(name, {}).setdefault(law, {})[slope] = mean
    return swept


def least_at_one(by_temperature: dict[float, float], slack: float = 0.0) -> bool:
    """Whether the value is smallest for the calibrated model, up to a tolerance."""
    return by_temperature[1.0] <= min(by_temperature.values()) + slack


@dataclass(frozen=True)
class Objectives:
    """The performance of a calibration map by the three objectives of section 5.10.

    Attributes
    ----------
    diagram : mean absolute difference of the fitted map and the true calibration curve
    estimate : mean absolute difference of the implied error and the true L1 error
    ranking : rank correlation of the implied error with the true one over settings, mean over draws
    """

    diagram: float
    estimate: float
    ranking: float


def objectives(
    maps: Sequence[Any] = MAPS, *, worlds: Sequence[World] | None = None, n: int = 1000, draws: int = 5, seed: int = 0
) -> dict[str, Objectives]:
    """Three objectives of a calibration map (section 5.10): the diagram, the estimate, and the ranking of models.

    Parameters
    ----------
    maps : sequence of names or objects
        As :func:`calibrary.maps.fit_map` takes them.
    worlds : sequence of World, optional
        Those of the preset "objectives" unless given.
    n, draws, seed : int
        Rows of a sample, samples of a world, and the seed of the study's streams.

    Examples
    --------
    >>> from calibrary import study
    >>> few = [study.World("wide", curve) for curve in ("calibrated", "temperature 0.6", "temperature 0.4")]
    >>> found = study.objectives(["beta", "isotonic"], worlds=few, n=500, draws=3)
    >>> found["beta"].diagram < found["isotonic"].diagram
    True
    """
    chosen = PRESETS["objectives"].worlds if worlds is None else tuple(worlds)
    n, draws = whole("n", n, 10), whole("draws", draws)
    truth = np.array([np.abs(world.calibration(c) - c).mean() for world in chosen for c in [world.quantiles(2000)]])
    diagram, estimate = (np.empty((len(maps), len(chosen), draws)) for _ in range(2))
    for j, world in enumerate(chosen):
        rng = addressed(seed, n, *world.stream)
        at = world.quantiles(400)
        for d in range(draws):
            view = predictions(*world.sample(n, rng))
            for i, each in enumerate(maps):
                with collected_warnings(), np.errstate(all="ignore"):
                    fitted = fit_map(each, view).predict
                    diagram[i, j, d] = np.nanmean(np.abs(fitted(at) - world.calibration(at)))
                    estimate[i, j, d] = np.nanmean(np.abs(fitted(view.c) - view.c))
    found = {}
    for i, each in enumerate(maps):
        ranks = [spearman(estimate[i, :, d], truth) for d in range(draws)]
        found[str(each)] = Objectives(
            float(diagram[i].mean()),
            float(np.abs(estimate[i] - truth[:, None]).mean()),
            float(np.mean([r for r in ranks if r is not None])),
        )
    return found
