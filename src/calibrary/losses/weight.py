"""The weight of a calibration loss relative to the criterion, chosen by a proper score of held-out predictions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError
from calibrary.base.numbers import number
from calibrary.lookup import catalogue

#: Three weights per decade, and zero.
WEIGHTS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)


@dataclass(frozen=True)
class WeightChoice:
    """The weight to use, and the result for every weight.

    Attributes
    ----------
    weight : the suggestion; 0 if no weight is better by more than its standard error
    score : the metric's short name
    table : one row for each weight: ``weight``, ``score`` (mean over the seeds), ``gain`` over weight 0 (positive is
        better), ``gain_se`` (standard error of that mean, nan for a single seed)
    words : the reason in a sentence
    """

    weight: float
    score: str
    table: list[dict[str, float]]
    words: str


def suggest_weight(
    fit: Callable[[float, int], tuple[Any, Any]],
    weights: Sequence[float] = WEIGHTS,
    *,
    seeds: Sequence[int] = (0, 1, 2),
    score: str = "nll",
    **options: Any,
) -> WeightChoice:
    """Choose the weight of a loss by the held-out score of models that were trained with it.

    Every weight is trained with every seed. The weight with the best mean score is suggested if its mean gain over
    weight 0 is larger than the standard error of that gain; otherwise 0 is suggested, because the loss does not help.

    Choose by a proper score, never by the loss itself or another calibration error: those can be best for predictions
    that are calibrated and useless.

    Parameters
    ----------
    fit : callable
        ``fit(weight, seed)`` trains ``criterion + weight * loss`` and returns labels and probabilities of rows that it
        was not trained on, the same rows for every weight and seed (but not the rows of the final report).
    weights : sequence of float
        The weights to try; 0 is added if it is missing.
    seeds : sequence of int
        The seeds for training with each weight: three show roughly how large the noise is.
    score : str
        Short name of a proper score: "nll", "bs", "rps", "bounded_brier", ...
    **options
        Options of the score.

    Examples
    --------
    >>> from calibrary import losses
    >>> def fit(weight, seed):  # stands for an hour of training
    ...     c = 0.8 if weight < 0.1 else 0.7
    ...     return [1, 1, 0, 1, 1, 0, 1, 0], [c + 0.001 * seed] * 8
    >>> chosen = losses.suggest_weight(fit, [0.0, 0.1])
    >>> chosen.weight, round(chosen.table[1]["gain"], 3)
    (0.1, 0.069)
    """
    entry = catalogue[score]
    if entry.proper not in ("strictly", "proper"):
        raise RefusedError(
            f"score={score!r} is not a proper score, and is best for predictions other than the true probabilities: "
            "use 'nll', 'bs', or 'rps' for ordered classes"
        )
    tried = sorted({0.0, *map(float, weights)})
    if tried[0] < 0.0 or not math.isfinite(tried[-1]):
        raise RefusedError(f"weights={list(weights)!r} must be finite numbers, none of them negative")
    if len(seeds) == 0:
        raise RefusedError("seeds is empty, but every weight is trained with each seed: pass at least one")
    sign = -1.0 if entry.better == "higher" else 1.0
    scores = np.array([[sign * float(entry(*fit(w, s), **options)) for s in seeds] for w in tried])
    gain = scores[0] - scores
    mean = gain.mean(axis=1)
    spread = gain.std(axis=1, ddof=1) / math.sqrt(len(seeds)) if len(seeds) > 1 else np.full(len(tried), math.nan)
    table = [
        {"weight": w, "score": sign * float(v), "gain": float(g), "gain_se": float(e)}
        for w, v, g, e in zip(tried, scores.mean(axis=1), mean, spread, strict=True)
    ]
    return _choice(tried, mean, spread, table, score)


def _choice(tried: list[float], mean: Any, spread: Any, table: list[dict[str, float]], score: str) -> WeightChoice:
    best = int(np.argmax(mean))
    if best == 0:
        return WeightChoice(
            0.0, score, table, f"no weight has a better held-out {score} than training without the loss"
        )
    gained = f"weight {tried[best]:g} improves the held-out {score} by {number(mean[best])}"
    if math.isnan(spread[best]):
        return WeightChoice(tried[best], score, table, f"{gained}; one seed cannot show whether that is chance")
    if mean[best] <= spread[best]:
        return WeightChoice(0.0, score, table, f"{gained}, no more than its standard error {number(spread[best])}")
    return WeightChoice(tried[best], score, table, f"{gained} (standard error {number(spread[best])})")
