"""The skill form of a score: how much of the way from the base rate to certainty the predictions go."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, undefined
from calibrary.data.predictions import Predictions


def skill_of(score: Any, view: Predictions, reduction: str, **options: Any) -> float:
    """(S(base rate) - S) / (S(base rate) - S(certain and right)): 1 is perfect, 0 no better than the base rate.

    For scores whose best value is 0 that is 1 - S/S(base rate): the index of prediction accuracy (Brier), one less the
    normalized entropy (logarithm).
    """
    if reduction != "mean":
        raise RefusedError(f"skill=True compares means, and reduction={reduction!r} gives none: leave one of them out")
    if options.get("soft_target") is not None:
        raise RefusedError(
            "skill=True has a base rate of its own labels: pass the shares as y_true, not as soft_target"
        )
    formula = score.entry.formula
    given, base, best = (float(formula(v, **options)) for v in (view, _at_base_rate(view), _certain(view)))
    if base == best:
        return undefined("the skill is undefined: all labels are the same, so the base rate is perfect already")
    return (base - given) / (base - best)


def _at_base_rate(view: Predictions) -> Predictions:
    """Every case predicted with the frequency of the classes."""
    if view.binary:
        return view.view(view.y, np.full(view.n, min(float(view.mean(view.y)), 1.0)))
    return view.view(view.y, np.tile(view.class_share, (view.n, 1)), classes=view._classes)


def _certain(view: Predictions) -> Predictions:
    """Every case predicted as it turned out."""
    if view.binary:
        return view.view(view.y, view.y.astype(np.float64))
    return view.view(view.y, view.one_hot, classes=view._classes)
