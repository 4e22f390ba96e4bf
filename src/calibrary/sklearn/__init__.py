"""Scorers and drop-in functions for scikit-learn.

Use ``cross_val_score(model, X, y, scoring=get_scorer("ece"))``: every metric that needs only labels and probabilities
is a scorer by its name. ``CalibrationDisplay``, ``calibration_curve`` and ``brier_score_loss`` take what scikit-learn's
take, and more; further displays are in :mod:`calibrary.plots`. ``CalibrationDisplay`` needs scikit-learn
(``pip install calibrary[sklearn]``).
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Self

from calibrary.base.errors import installed, room
from calibrary.lookup import catalogue
from calibrary.metrics.machinery.declare import Entry
from calibrary.sklearn.drop_in import brier_score_loss, calibration_curve

if TYPE_CHECKING:
    from calibrary.sklearn.display import CalibrationDisplay as CalibrationDisplay

__all__ = [
    "CalibrationScorer",
    "brier_score_loss",
    "calibration_curve",
    "get_scorer",
    "get_scorer_names",
    "make_scorer",
    "scorers",
]


class CalibrationScorer:
    """A metric as a scorer of fitted classifiers: ``scorer(estimator, X, y, sample_weight=None)``, higher is better.

    :func:`make_scorer` creates it. A scorer can be pickled, so that ``n_jobs`` works.
    """

    _requested: Any = None

    def __init__(self, metric: str, **options: Any) -> None:
        self.metric, self.options = metric, options
        self.__name__ = f"{self._entry.id}_scorer"  # the name that scikit-learn prints

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

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """State that this scorer uses ``sample_weight``, for scikit-learn's metadata routing; the scorer is copied."""
        from sklearn.utils.metadata_routing import MetadataRequest

        if set(requests) != {"sample_weight"}:
            raise TypeError(f"a scorer can only request sample_weight, not {', '.join(sorted(requests)) or 'nothing'}")
        made = copy.copy(self)
        made._requested = MetadataRequest(owner=self.__name__)
        made._requested.score.add_request(param="sample_weight", alias=requests["sample_weight"])
        return made

    def get_metadata_routing(self) -> Any:
        """What this scorer requests; without ``set_score_request``, scikit-learn asks whether to pass weights."""
        if self._requested is None:
            return self.set_score_request(sample_weight=None)._requested
        return self._requested

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"make_scorer({self.metric!r}{options})"


def make_scorer(metric: str, **options: Any) -> CalibrationScorer:
    """Create a scikit-learn scorer from a metric's id or alias; higher is better, as scikit-learn expects.

    Errors and losses are negated. For signed metrics, whose perfect value lies inside their range, and for one value of
    a metric with several ("cis.slope"), the scorer is minus the distance from the perfect value. ``options`` are the
    metric's own (``n_bins=``, ``lens=``, ...). Class names are taken from the fitted estimator, so string labels work.

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
    refusal = _refusal(entry)
    if refusal:
        parts = " or ".join(f"{entry.id}.{name}" for name, ideal in dict(entry.fields).items() if ideal is not None)
        raise ValueError(
            f"{entry.id} cannot be a scorer: it involves {refusal}" + (f"; name one: {parts}" * bool(parts))
        )
    return CalibrationScorer(metric, **options)


def get_scorer(name: str) -> CalibrationScorer:
    """The scorer of a metric by any of its names, as ``sklearn.metrics.get_scorer``.

    A leading ``neg_``, with which scikit-learn marks negated losses, is optional.

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
    """Several scorers at once, for ``cross_validate`` and ``GridSearchCV(refit=...)``; without names, all of them.

    A metric with several values has one scorer for each value, by name: ``scorers("cis.slope", "cis.intercept")``.

    Examples
    --------
    >>> from calibrary.sklearn import scorers
    >>> list(scorers("bs", "ece"))
    ['bs', 'ece']
    """
    return {name: get_scorer(name) for name in names or get_scorer_names()}


def _refusal(entry: Entry) -> str:
    """The property of a metric that a scorer cannot have, such as further inputs; empty if there is none."""
    if entry.family == "detection":
        return "detections"
    return ", ".join(entry.needs) or ("more than one number" if entry.fields else "")


def __getattr__(name: str) -> Any:
    if name == "CalibrationDisplay":  # a subclass of scikit-learn's, which is imported when it is first used
        return room("calibrary.sklearn.display").CalibrationDisplay
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *(["CalibrationDisplay"] if installed("sklearn") else [])])
