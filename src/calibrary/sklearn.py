"""Conveniences for scikit-learn: every metric as a scorer by its name.

``cross_val_score(model, X, y, scoring=get_scorer("ece"))``. The displays (``from_estimator``, ``from_predictions``)
are in :mod:`calibrary.plots`. Needs scikit-learn (``pip install calibrary[sklearn]``).
"""

from __future__ import annotations

from typing import Any

from calibrary.lookup import catalogue
from calibrary.metrics.declare import Entry

__all__ = ["CalibrationScorer", "get_scorer", "get_scorer_names", "make_scorer", "scorers"]


class CalibrationScorer:
    """A metric that judges a fitted classifier: ``scorer(estimator, X, y, sample_weight=None)``, higher is better.

    Made by :func:`make_scorer`. It can be pickled, so that ``n_jobs`` works.
    """

    def __init__(self, metric: str, **options: Any) -> None:
        self.metric, self.options = metric, options
        self.__name__ = f"{self._entry.id}_scorer"  # what scikit-learn prints

    @property
    def _entry(self) -> Entry:
        return catalogue[self.metric]

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"{type(estimator).__name__} has no predict_proba: {self.metric} needs probabilities")
        p, labels = estimator.predict_proba(X), list(estimator.classes_)
        value = float(self._entry(y, p, labels=labels, sample_weight=sample_weight, **self.options))
        if self._entry.better == "higher":
            return value
        return -abs(value - (self._entry.perfect or 0.0)) if self._entry.better == "perfect" else -value

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"make_scorer({self.metric!r}{options})"


def make_scorer(metric: str, **options: Any) -> CalibrationScorer:
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
    refusal = _refusal(catalogue[metric])
    if refusal:
        raise ValueError(f"{catalogue[metric].id} cannot be a scorer: it involves {refusal}")
    return CalibrationScorer(metric, **options)


def get_scorer(name: str) -> CalibrationScorer:
    """The scorer of a metric by any of its names, as ``sklearn.metrics.get_scorer``.

    A leading ``neg_``, scikit-learn's reminder that losses are negated, may be written or left out.

    Examples
    --------
    >>> from calibrary.sklearn import get_scorer
    >>> get_scorer("neg_ece"), get_scorer("class-wise ECE")
    (make_scorer('ece'), make_scorer('class-wise ECE'))
    """
    return make_scorer(name.removeprefix("neg_"))


def get_scorer_names() -> list[str]:
    """The names of all metrics that can be scorers, as ``sklearn.metrics.get_scorer_names``.

    Examples
    --------
    >>> from calibrary.sklearn import get_scorer_names
    >>> {"ece", "bs", "smece"} <= set(get_scorer_names())
    True
    """
    return sorted(entry.id for entry in catalogue.values() if not _refusal(entry))


def scorers(*names: str) -> dict[str, CalibrationScorer]:
    """Several scorers at once, for ``cross_validate`` and ``GridSearchCV(refit=...)``.

    Examples
    --------
    >>> from calibrary.sklearn import scorers
    >>> list(scorers("bs", "ece"))
    ['bs', 'ece']
    """
    return {name: get_scorer(name) for name in names}


def _refusal(entry: Entry) -> str:
    """What a metric needs that a scorer does not have, or nothing."""
    if entry.family == "detection":
        return "detections"
    return ", ".join(entry.needs) or ("more than one number" if entry.fields else "")


def __dir__() -> list[str]:
    return sorted(__all__)
