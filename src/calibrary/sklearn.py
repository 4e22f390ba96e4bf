"""Conveniences for scikit-learn: any metric of the catalogue as a scorer.

``cross_val_score(model, X, y, scoring=make_scorer("ece"))``. Needs scikit-learn (``pip install calibrary[sklearn]``).
"""

from __future__ import annotations

from typing import Any

from calibrary.lookup import catalogue


def make_scorer(metric: str, **options: Any) -> Any:
    """A scikit-learn scorer from a metric's id or alias: higher is better, as scikit-learn expects.

    Errors and losses are negated; for signed metrics, whose perfect value lies inside their range, the scorer is
    minus the distance from it. ``options`` are the metric's own (``n_bins=``, ``lens=``, ...). Class names are taken
    from the fitted estimator, so string labels work.

    Examples
    --------
    >>> import calibrary as cal
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calibrary.sklearn import make_scorer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> round(make_scorer("ece")(GaussianNB().fit(X, y), X, y), 3)
    -0.056
    """
    entry = catalogue[metric]
    if entry.family == "detection" or entry.needs or entry.fields:
        what = "detections" if entry.family == "detection" else ", ".join(entry.needs) or "more than one number"
        raise ValueError(f"{entry.id} cannot be a scorer: it involves {what}")

    def score(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        p = estimator.predict_proba(X)
        value = float(entry(y, p, labels=list(estimator.classes_), sample_weight=sample_weight, **options))
        if entry.better == "higher":
            return value
        return -abs(value - (entry.perfect or 0.0)) if entry.better == "perfect" else -value

    score.__name__ = f"{entry.id}_scorer"
    return score
