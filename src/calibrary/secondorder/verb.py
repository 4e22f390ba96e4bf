"""``ensemble``: does an ensemble, a posterior or a set of members know what it does not know?"""

from __future__ import annotations

from typing import Any

from calibrary.base.errors import one_of
from calibrary.inference.draw.resampling import alpha_of, check_draws, check_level
from calibrary.numerics.draw import seed_of
from calibrary.secondorder.calibration import HowAsked, mean_of, members_of, mixture_of
from calibrary.secondorder.given import given
from calibrary.secondorder.outside import outside_of
from calibrary.secondorder.result import EnsembleResult
from calibrary.secondorder.spread import spread_of
from calibrary.secondorder.uncertainty import decomposition_of

KINDS = ("draws", "mixture")


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
    """Does an ensemble know what it does not know? Its mean, its members, its best mixture, and the spread it claims.

    A second-order prediction says which probabilities are possible. Five questions are answered, each with a number,
    an interval and a test: is the mean calibrated, are the members, is the mixture of them that predicts best, is the
    spread that they claim there, and how much of the uncertainty is disagreement of the members.

    Parameters
    ----------
    y_true : array-like of shape (N,) or (N, R)
        The class of each row, or R labels of each (annotators, repeated measurements; None or NaN where there are
        fewer). A row without any label is outside.
    y_prob : array-like of shape (N, M) or (N, M, K)
        P(class 1) of M members, or probabilities of K classes.
    members : "draws" or "mixture"
        What members are. "draws" (an ensemble, dropout, posterior draws): the truth is one more draw of the same kind.
        "mixture": the truth of a row is one of them, each with the same chance.
    features : array-like of shape (N, d), optional
        Where rows have one label: how much spread is there at least, by trees grown on other folds (needs
        scikit-learn). Rows with several labels tell more, and features are then not used.
    outside : array-like of bool, optional
        Rows that belong to no class; they must have no label. See :func:`calibrary.outside_rows`.
    prevalence_outside : float, optional
        Their share where the model is used.
    sample_weight : array-like of shape (N,), optional
        Whole numbers are copies of rows, others importance weights.
    confidence_level, n_resamples, rng, labels, pos_label
        As everywhere.

    Returns
    -------
    EnsembleResult
        ``mean``, ``members``, ``mixture``, ``spread``, ``decomposition``, ``outside``, ``sentence``, ``plot()``.

    Notes
    -----
    For draws the truth and the members can change places: every member in turn is left out, the others judge the
    labels of the row and labels drawn from the one left out, and random signs give the exact law of the difference, for
    any number of members, rows and events. What can be known depends on the labels: from one label per row and no
    features, nothing of the spread.

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
    level = check_level(confidence_level)
    check_draws(n_resamples, alpha_of(level))
    rows = given(y_true, y_prob, outside, sample_weight, features, labels=labels, pos_label=pos_label)
    asked = HowAsked(members, level, n_resamples, seed_of(rng))
    return EnsembleResult(
        mean=mean_of(rows, asked),
        members=members_of(rows, asked),
        mixture=mixture_of(rows, asked),
        spread=spread_of(rows, members, level, n_resamples, asked.seed),
        decomposition=decomposition_of(rows, asked),
        outside=outside_of(rows, prevalence_outside, level, n_resamples, asked.seed) if len(rows.outside_p) else None,
        kind=members,
        n=rows.n,
        n_members=rows.m,
        n_classes=rows.k,
        n_labels=int(rows.labels.sum()),
        confidence_level=level,
        n_resamples=n_resamples,
    )
