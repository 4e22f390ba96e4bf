"""Display classes like scikit-learn's: ``ReliabilityDisplay.from_estimator(model, X, y)``.

Each contains the data of a figure (``data``) and draws it (``plot``). The options of ``from_estimator`` and
``from_predictions`` are those of the figure's function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from calibrary.base.text import for_figure
from calibrary.plots.corp import CorpData, corp_data, plot_corp
from calibrary.plots.cumulative import CumulativeData, cumulative_data, plot_cumulative
from calibrary.plots.reliability import ReliabilityData, plot_reliability, reliability_data
from calibrary.plots.smooth import SmoothData, plot_smooth_reliability, smooth_data


@dataclass
class Display:
    """The base class of displays; each subclass names its data function and its drawing function.

    Attributes
    ----------
    data : the numbers of the figure
    estimator_name : str or None
    ax_, figure_ : set by :meth:`plot`
    """

    data: Any
    estimator_name: str | None = None
    ax_: Any = None
    figure_: Any = None

    _measure: ClassVar[Callable[..., Any]]
    _draw: ClassVar[Callable[..., Any]]
    #: Keywords of the drawing; all others belong to the data.
    _drawing: ClassVar[tuple[str, ...]] = ("caption", "theme")

    def plot(self, *, ax: Any = None, name: str | None = None, **drawing: Any) -> Self:
        """Draw on ``ax`` or a new figure; ``drawing`` as in the figure's function."""
        name = name or self.estimator_name
        self.ax_ = type(self)._draw(self.data, ax=ax, **self._named(name), **drawing)
        self.figure_ = self.ax_.figure
        return self

    def _named(self, name: str | None) -> dict[str, Any]:
        """The options by which the drawing function gets the model's name, if any."""
        return {}

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_prob: Any, *, name: str | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Create a display from labels and probabilities; options are those of the figure's function."""
        drawing = {k: options.pop(k) for k in cls._drawing if k in options}
        return cls(cls._measure(y_true, y_prob, **options), name).plot(ax=ax, **drawing)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any, *, name: str | None = None, ax: Any = None, **options: Any
    ) -> Self:
        """Create a display from a fitted classifier with ``predict_proba``, in its order of classes."""
        if not hasattr(estimator, "predict_proba"):
            raise TypeError(f"{type(estimator).__name__} has no predict_proba: pass probabilities to from_predictions")
        classes = getattr(estimator, "classes_", None)
        options.setdefault("labels", None if classes is None else list(classes))
        name = name or type(estimator).__name__
        return cls.from_predictions(y, estimator.predict_proba(X), name=name, ax=ax, **options)


class ReliabilityDisplay(Display):
    """Reliability diagram of a fitted classifier or of its predictions, as :func:`plot_reliability` draws it.

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
    _measure = staticmethod(reliability_data)
    _draw = staticmethod(plot_reliability)
    _drawing = ("kind", "color", "colour", "labels_shown", "histogram", "true_curve", "caption", "theme")

    def _named(self, name: str | None) -> dict[str, Any]:
        return {"label": None if name is None else for_figure(name)}


class SmoothReliabilityDisplay(Display):
    """Reliability curve without bins, with its band, as :func:`plot_smooth_reliability` draws it.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.plots import SmoothReliabilityDisplay
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> round(SmoothReliabilityDisplay.from_predictions(y, p, n_resamples=20).data.smece, 3)
    0.056
    """

    data: SmoothData
    _measure = staticmethod(smooth_data)
    _draw = staticmethod(plot_smooth_reliability)


class CorpDisplay(Display):
    """Isotonic (CORP) diagram with its band and the decomposed Brier score, as :func:`plot_corp` draws it.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.plots import CorpDisplay
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> CorpDisplay.from_predictions(y, p, n_resamples=20).data.band
    'consistency'
    """

    data: CorpData
    _measure = staticmethod(corp_data)
    _draw = staticmethod(plot_corp)
    _drawing = ("diagram", "caption", "theme")


class CumulativeDisplay(Display):
    """Cumulative differences, which need neither bins nor widths, as :func:`plot_cumulative` draws them.

    Examples
    --------
    >>> import calibrary as cal
    >>> from calibrary.plots import CumulativeDisplay
    >>> y, p, _ = cal.datasets.breast_cancer()
    >>> CumulativeDisplay.from_predictions(y, p).ax_ is not None
    True
    """

    data: CumulativeData
    _measure = staticmethod(cumulative_data)
    _draw = staticmethod(plot_cumulative)
    _drawing = ("band", "caption", "theme")
