"""scikit-learn's ``CalibrationDisplay``, with weights, intervals and the curves of a cross-validation."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from calibrary.base.errors import RefusedError, extra
from calibrary.data.checks import Array, as_array
from calibrary.data.identity import refuse_misaligned
from calibrary.plots.reliability import reliability_data
from calibrary.sklearn.drop_in import bins_of, calibration_curve, positive

with extra("sklearn", "calibrary.sklearn.CalibrationDisplay"):
    from sklearn.calibration import CalibrationDisplay as TheirDisplay
    from sklearn.utils import check_consistent_length
    from sklearn.utils.multiclass import type_of_target


class CalibrationDisplay(TheirDisplay):  # type: ignore[misc]
    """scikit-learn's ``CalibrationDisplay`` with ``sample_weight``, error bars and ``from_cv_results``.

    Every call, attribute and keyword of scikit-learn's class works, and the curve is the same. ``from_estimator`` and
    ``from_predictions`` also take ``n_bins="auto"`` (about ten expected events and ten expected non-events in each bin,
    from 2 to 15), ``sample_weight``, and ``error="wilson"`` (or "clopper-pearson", "se") for an error bar of 95% in
    each bin.

    Attributes
    ----------
    prob_true, prob_pred, y_prob, estimator_name, pos_label, line_, ax_, figure_ : as in scikit-learn
    low, high : ends of the error bars; None without ``error``
    folds : the curves of the folds, for ``from_cv_results``

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.sklearn import CalibrationDisplay
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> display = CalibrationDisplay.from_predictions(y, p, n_bins=4, error="wilson")
    >>> display.prob_true.round(2).tolist(), display.high.round(2).tolist()
    ([0.06, 0.0, 0.5, 0.95], [0.09, 0.78, 0.85, 0.97])
    """

    low: Array | None = None
    high: Array | None = None
    folds: tuple[tuple[Array, Array], ...] = ()

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_prob: Any,
        *,
        n_bins: int | str = 5,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        ref_line: bool = True,
        sample_weight: Any = None,
        error: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of labels and probabilities of the positive class; ``kwargs`` are those of the line."""
        display = cls._of(y_true, y_prob, n_bins, strategy, pos_label, name, sample_weight, error)
        return display.plot(ax=ax, ref_line=ref_line, **kwargs)

    @classmethod
    def from_cv_results(
        cls,
        cv_results: Any,
        X: Any,
        y: Any,
        *,
        n_bins: int | str = 5,
        strategy: str = "uniform",
        pos_label: Any = None,
        name: str | None = None,
        ax: Any = None,
        ref_line: bool = True,
        sample_weight: Any = None,
        error: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve of a cross-validation: each model's probabilities of the rows to which it was not fitted.

        ``cv_results`` is the result of ``cross_validate(..., return_estimator=True, return_indices=True)``. The curve
        is that of the held-out rows of all folds together; the curve of each fold is drawn thinly behind it.
        """
        if not {"estimator", "indices"} <= set(cv_results):
            raise RefusedError(
                "cv_results has no estimators or indices: call cross_validate with return_estimator=True and "
                "return_indices=True"
            )
        refuse_misaligned(X=X, y=y, sample_weight=sample_weight)
        labels, weights = as_array(y, "y"), None if sample_weight is None else as_array(sample_weight, "sample_weight")
        chosen = positive(labels, pos_label)[1] if pos_label is not None or labels.dtype.kind not in "OUS" else None
        rows, p = [], []
        for model, test in zip(cv_results["estimator"], cv_results["indices"]["test"], strict=True):
            chosen = list(model.classes_)[1] if chosen is None else chosen
            if chosen not in model.classes_:
                raise RefusedError(f"pos_label={chosen!r} is not a class of the models: choose from {model.classes_}")
            p.append(model.predict_proba(_taken(X, test))[:, list(model.classes_).index(chosen)])
            rows.append(test)
        every = np.concatenate(rows)
        if every.max() >= len(labels):
            raise RefusedError(
                f"y has {len(labels)} rows and a fold holds row {every.max()}: pass the X and y of the folds"
            )
        weight = None if weights is None else weights[every]
        name = type(cv_results["estimator"][0]).__name__ if name is None else name
        display = cls._of(labels[every], np.concatenate(p), n_bins, strategy, chosen, name, weight, error)
        display.folds = tuple(
            calibration_curve(
                labels[test], q, pos_label=chosen, n_bins=n_bins, strategy=strategy,
                sample_weight=None if weights is None else weights[test],
            )
            for test, q in zip(rows, p, strict=True)
        )  # fmt: skip
        return display.plot(ax=ax, ref_line=ref_line, **kwargs)

    @classmethod
    def _of(
        cls, y_true: Any, y_prob: Any, n_bins: Any, strategy: str, pos_label: Any, name: Any, weight: Any, error: Any
    ) -> Self:
        refuse_misaligned(y_true=y_true, y_prob=y_prob, sample_weight=weight)
        target = type_of_target(y_true)
        if target != "binary":
            raise RefusedError(f"The target y is not binary. Got {target} type of target.")
        check_consistent_length(y_true, y_prob, weight)
        y, label = positive(y_true, pos_label)
        bins = bins_of(n_bins, strategy, y, y_prob, weight)
        data = reliability_data(y, y_prob, sample_weight=weight, error=error, interval=False, **bins)
        name = "Classifier" if name is None else name
        display = cls(data.outcome, data.confidence, y_prob, estimator_name=name, pos_label=label)
        if error is not None:
            display.low, display.high = data.low, data.high
        return display

    def plot(self, *, ax: Any = None, name: str | None = None, ref_line: bool = True, **kwargs: Any) -> Self:
        """Draw the curve on ``ax`` or a new figure, with error bars and the curves of the folds, if there are any."""
        super().plot(ax=ax, name=name, ref_line=ref_line, **kwargs)
        color = self.line_.get_color()
        for observed, predicted in self.folds:
            self.ax_.plot(predicted, observed, color=color, alpha=0.3, linewidth=0.8, zorder=1)
        if self.low is not None:
            self.ax_.vlines(self.prob_pred, self.low, self.high, color=color, alpha=0.6)
        return self


def _taken(X: Any, rows: Any) -> Any:
    if isinstance(X, list | tuple):
        return [X[row] for row in rows]
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]
