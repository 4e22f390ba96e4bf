"""``ensemble``: evaluate the calibration and the claimed uncertainty of an ensemble or posterior; its result."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

from calibrary.base.claims import Sentence
from calibrary.base.errors import RefusedError, one_of, warn
from calibrary.base.markup import Told, html_table
from calibrary.base.numbers import ends, number, percent, pvalue_cell
from calibrary.data.asked import checks_options
from calibrary.data.identity import knows_rows
from calibrary.inference.draw.resampling import check_level
from calibrary.metrics.machinery.declare import Result
from calibrary.numerics.draw import seed_of
from calibrary.secondorder import calibration
from calibrary.secondorder.given import given
from calibrary.secondorder.outside import OutsideResult, outside_of
from calibrary.secondorder.spread import EnsembleSpread, spread_of
from calibrary.secondorder.uncertainty import EnsembleDecomposition, decomposition_of


@dataclass(frozen=True)
class EnsembleResult(Told, Result):
    """The result of :func:`calibrary.ensemble`. Print it, or use ``sentence``.

    Attributes
    ----------
    mean, members, mixture, spread, decomposition : the parts, each with ``value``, ``low``, ``high``, ``pvalue``
        and ``sentence``
    outside : the result of :func:`calibrary.outside_rows` for the mean; None without rows that belong to no class
    kind : the interpretation of the members: "draws" or "mixture"
    n, n_members, n_classes, n_labels : numbers of rows, members, classes and labels
    level, n_resamples : the settings
    sentence : the whole result in words
    """

    mean: calibration.EnsembleMean
    members: calibration.EnsembleMembers
    mixture: calibration.EnsembleMixture
    spread: EnsembleSpread
    decomposition: EnsembleDecomposition
    outside: OutsideResult | None
    kind: str
    n: int
    n_members: int
    n_classes: int
    n_labels: int
    level: float
    n_resamples: int

    @property
    def sentence(self) -> Sentence:
        """The whole result in words."""
        said = [part.sentence for part in (self.mean, self.members, self.mixture, self.spread, self.decomposition)]
        if self.outside is not None:
            said.append(self.outside.sentence)
        return Sentence.joined(" ", said)

    def rows(self) -> list[tuple[str, str, str, str]]:
        """The numbers by name, formatted for display: value, interval, p-value."""
        s, d = self.spread, self.decomposition
        answers: list[tuple[str, Any]] = [
            ("calibration error of the mean", self.mean),
            ("mean slope of the members", self.members),
            ("calibration error of the best mixture", self.mixture),
            ("true variance" if s.method != "features" else "smallest true variance", s),
            ("epistemic uncertainty (entropy), p as a detector of errors", d),
        ]
        rows = [
            (name, "no estimate" if isnan(x.value) else number(x.value), ends(x.low, x.high), pvalue_cell(x.pvalue))
            for name, x in answers
        ]
        return [*rows[:3], ("claimed variance", number(s.claimed), "", ""), *rows[3:]]

    def _repr_html_(self) -> str:
        """The numbers as HTML, for notebooks."""
        return html_table(("", "estimate", "interval", "p"), self.rows())

    def plot(self, *, ax: Any = None, caption: bool = True, theme: str = "light") -> Any:
        """Draw the estimated against the claimed spread; returns the matplotlib Axes."""
        from calibrary.plots.results import plot_spread

        return plot_spread(self, ax=ax, caption=caption, theme=theme)


KINDS = ("draws", "mixture")
#: Below this many draws there is a warning: M of them show (M - 1)/M of the variance of the distribution.
FEW_MEMBERS = 5


@knows_rows
@checks_options
def ensemble(
    y_true: Any,
    y_prob: Any,
    *,
    members: str = "draws",
    features: Any = None,
    outside: Any = None,
    prevalence_outside: float | None = None,
    sample_weight: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    rng: Any = None,
    labels: Any = None,
    pos_label: Any = None,
) -> EnsembleResult:
    """Evaluate an ensemble: its mean, its members, its best mixture, and the spread that it claims.

    An ensemble gives a distribution of probabilities for each row. Five questions are answered, each with an estimate,
    an interval and a test: Is the mean calibrated? Are the members calibrated? Is the best mixture of the members
    calibrated? Is the claimed spread the true one? How much of the uncertainty is disagreement of the members?

    Parameters
    ----------
    y_true : array-like of shape (N,) or (N, R)
        The class of each row, or R labels of each row (annotators, repeated measurements; None or NaN if there are
        fewer). A row without any label belongs to no class ("outside").
    y_prob : array-like of shape (N, M) or (N, M, K)
        P(class 1) of M members, or probabilities of K classes.
    members : "draws" or "mixture"
        Interpretation of the members. "draws" (an ensemble, dropout, posterior draws): the truth is one more draw from
        the same distribution. "mixture": the truth of a row is one of the members, each with the same probability.
    features : array-like of shape (N, d), optional
        For rows with one label: gives a lower bound of the true spread, by trees fitted on other folds (needs
        scikit-learn). If rows have several labels, features are not used, because the labels are more informative.
    outside : array-like of bool, optional
        Rows that belong to no class; they must have no label. See :func:`calibrary.outside_rows`.
    prevalence_outside : float, optional
        Share of such rows where the model is used.
    sample_weight : array-like of shape (N,), optional
        Whole numbers count equal rows; other weights are importance weights.
    confidence_level, n_resamples, rng, labels, pos_label
        As in :func:`calibrary.interval` and :func:`calibrary.predictions`.

    Returns
    -------
    EnsembleResult
        ``mean``, ``members``, ``mixture``, ``spread``, ``decomposition``, ``outside``, ``sentence``, ``plot()``.

    Notes
    -----
    For draws, the truth and the members are exchangeable. Every member in turn is left out; the other members give a
    statistic of the row's labels and of labels drawn from the left-out member, and random signs give the exact null
    distribution of the difference, for any number of members, rows and events. With one label per row and no features
    the true spread cannot be estimated.

    References
    ----------
    Mortier et al. (2023), On the calibration of probabilistic classifier sets. Juergens et al. (2025), A
    calibration test for evaluating set-based epistemic uncertainty representations. Ahdritz et al. (2024), Provable
    uncertainty decomposition via higher-order calibration. Perez-Lebel et al. (2023), Beyond calibration: estimating
    the grouping loss of modern neural networks.

    Examples
    --------
    >>> import numpy as np, calibrary as cal
    >>> rng = np.random.default_rng(0)
    >>> a = rng.random(1000)
    >>> truth, p = rng.beta(4 * a, 4 * (1 - a)), rng.beta(40 * a[:, None], 40 * (1 - a[:, None]), (1000, 5))
    >>> y = rng.random((1000, 2)) < truth[:, None]
    >>> found = cal.ensemble(y, p, rng=0, n_resamples=199)
    >>> found.spread.claimed < found.spread.low, found.spread.pvalue <= 0.01
    (True, True)
    """
    one_of("members", members, KINDS)
    level = check_level(confidence_level, n_resamples)
    rows = given(y_true, y_prob, outside, sample_weight, features, labels=labels, pos_label=pos_label)
    if prevalence_outside is not None and not len(rows.outside_p):
        raise RefusedError("prevalence_outside= has no effect without rows outside of the classes: leave it out")
    if members == "draws" and rows.m < FEW_MEMBERS:
        warn(
            f"y_prob has {rows.m} members: draws of {rows.m} show about {percent(1.0 - 1.0 / rows.m)} of the "
            f"disagreement that very many would show, so that the decomposition is too low; pass {FEW_MEMBERS} or more"
        )
    asked = calibration.HowAsked(members, level, n_resamples, seed_of(rng))
    drawn = (level, n_resamples, asked.seed)
    mean, each = calibration.mean_of(rows, asked), calibration.members_of(rows, asked)
    mixture, spread = calibration.mixture_of(rows, asked), spread_of(rows, members, *drawn)
    parts = (mean, each, mixture, spread, decomposition_of(rows, asked))
    there = outside_of(rows, prevalence_outside, *drawn) if len(rows.outside_p) else None
    sizes = (rows.n, rows.m, rows.k, int(rows.labels.sum()))
    return EnsembleResult(*parts, there, members, *sizes, level, n_resamples)
