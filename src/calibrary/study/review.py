"""The review's own studies: de-calibration by temperature (9.2) and the three objectives (5.10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import collected_warnings, whole
from calibrary.data.predictions import predictions
from calibrary.maps import fit_map
from calibrary.numerics.draw import addressed
from calibrary.study.measures import spearman
from calibrary.study.presets import PRESETS
from calibrary.study.result import StudyResult
from calibrary.study.world import World

#: Fast maps that need only labels and confidences.
MAPS = ("bins", "isotonic", "beta", "platt", "loess", "local-linear", "rcs", "pl")


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
