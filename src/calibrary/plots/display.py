"""A display in scikit-learn's manner: ``ReliabilityDisplay.from_estimator(model, X, y)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrary.plots.reliability import ReliabilityData, plot_reliability, reliability_data


@dataclass
class ReliabilityDisplay:
    """Reliability diagram of a fitted classifier or of its predictions.

    Attributes
    ----------
    data : ReliabilityData
    estimator_name : str or None
    ax_, figure_ : set by :meth:`plot`

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.plots import ReliabilityDisplay
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> display = ReliabilityDisplay.from_predictions(y, p, name="naive Bayes")
    >>> round(display.data.ece, 3)
    0.058
    """

    data: ReliabilityData
    estimator_name: str | None = None
    ax_: Any = None
    figure_: Any = None

    def plot(self, *, ax: Any = None, kind: str = "line", **style: Any) -> ReliabilityDisplay:
        """Draw on ``ax`` or a new figure."""
        self.ax_ = plot_reliability(self.data, ax=ax, kind=kind, label=self.estimator_name, **style)
        self.figure_ = self.ax_.figure
        return self

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any, *, name: str | None = None, ax: Any = None, kind: str = "line", **options: Any
    ) -> ReliabilityDisplay:
        """From labels and probabilities; ``options`` are those of :func:`reliability_data`."""
        return cls(reliability_data(y_true, y_prob, **options), name).plot(ax=ax, kind=kind)

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        name: str | None = None,
        ax: Any = None,
        kind: str = "line",
        **options: Any,
    ) -> ReliabilityDisplay:
        """From a fitted classifier with ``predict_proba``; class order is the estimator's."""
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"{type(estimator).__name__} has no predict_proba: pass probabilities to from_predictions")
        classes = list(getattr(estimator, "classes_", [])) or None
        p = estimator.predict_proba(X)
        return cls.from_predictions(
            y, p, name=name or type(estimator).__name__, ax=ax, kind=kind, labels=classes, **options
        )
