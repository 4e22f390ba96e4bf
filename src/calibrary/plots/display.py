"""A display in scikit-learn's manner: ``ReliabilityDisplay.from_estimator(model, X, y)``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from calibrary._text import for_figure
from calibrary.plots.reliability import ReliabilityData, plot_reliability, reliability_data

#: Keywords of the drawing; all others belong to the data.
_DRAWING = ("kind", "colour", "labels_shown", "histogram", "true_curve", "caption", "theme")


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

    def plot(self, *, ax: Any = None, name: str | None = None, **drawing: Any) -> ReliabilityDisplay:
        """Draw on ``ax`` or a new figure; ``drawing`` as in :func:`plot_reliability`."""
        label = name or self.estimator_name
        self.ax_ = plot_reliability(self.data, ax=ax, label=None if label is None else for_figure(label), **drawing)
        self.figure_ = self.ax_.figure
        return self

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any, *, name: str | None = None, ax: Any = None, **options: Any
    ) -> ReliabilityDisplay:
        """From labels and probabilities; options are those of :func:`plot_reliability`."""
        drawing = {k: options.pop(k) for k in _DRAWING if k in options}
        return cls(reliability_data(y_true, y_prob, **options), name).plot(ax=ax, **drawing)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, ax: Any = None, **options: Any
    ) -> ReliabilityDisplay:
        """From a fitted classifier with ``predict_proba``; class order is the estimator's."""
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"{type(estimator).__name__} has no predict_proba: pass probabilities to from_predictions")
        classes = getattr(estimator, "classes_", None)
        options.setdefault("labels", None if classes is None else list(classes))
        name = name or type(estimator).__name__
        return cls.from_predictions(y, estimator.predict_proba(X), name=name, ax=ax, **options)
