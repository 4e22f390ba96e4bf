"""The skill of a score: how far the predictions improve from the base rate towards certainty."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, undefined
from calibrary.data.predictions import Predictions


def skill_of(score: Any, view: Predictions, reduction: str, **options: Any) -> float:
    """(S(base rate) - S) / (S(base rate) - S(certain and right)): 1 is perfect, 0 no better than the base rate.

    For scores whose best value is 0 this is 1 - S/S(base rate): the index of prediction accuracy (Brier), or one minus
    the normalized entropy (logarithm).
    """
    if reduction != "mean":
        raise RefusedError(
            f"skill=True compares means, and reduction={reduction!r} does not compute a mean: leave out one of the two"
        )
    if options.get("soft_target") is not None:
        raise RefusedError(
            "skill=True computes the base rate from the labels: pass the shares as y_true, not as soft_target"
        )
    formula = score.entry.formula
    given, base, best = (float(formula(v, **options)) for v in (view, _at_base_rate(view), _certain(view)))
    if base == best:
        return undefined(
            "the skill is undefined because all labels are the same, so the base rate is already a perfect prediction"
        )
    return (base - given) / (base - best)


def _at_base_rate(view: Predictions) -> Predictions:
    """Every row predicted with the class frequencies."""
    if view.binary:
        return view.view(view.y, np.full(view.n, min(float(view.mean(view.y)), 1.0)))
    return view.view(view.y, np.tile(view.class_share, (view.n, 1)), classes=view.class_names)


def _certain(view: Predictions) -> Predictions:
    """The predictions that give every row's true class the probability 1."""
    if view.binary:
        return view.view(view.y, view.y.astype(np.float64))
    return view.view(view.y, view.one_hot, classes=view.class_names)
