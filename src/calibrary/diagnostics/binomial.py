"""A separate test at every distinct confidence: does the observed frequency agree with the stated probability?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from calibrary.base.errors import RefusedError
from calibrary.data.checks import Array
from calibrary.data.views import Views
from calibrary.diagnostics.declare import diagnostic, only_view
from calibrary.metrics.bins.t_cal import debiased_plugin_estimator
from calibrary.metrics.machinery.declare import Common, TestResult


@dataclass(frozen=True)
class MultipleBinomialResult(TestResult):
    """One exact binomial test per distinct confidence.

    Attributes
    ----------
    statistic, pvalue : the smallest p-value; the smallest p-value times the number of tests (Bonferroni)
    confidence, n, positives, pvalues : one entry per distinct confidence
    """

    confidence: Array = field(default_factory=lambda: np.empty(0))
    n: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    positives: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    pvalues: Array = field(default_factory=lambda: np.empty(0))


@diagnostic(debiased_plugin_estimator)
def multiple_binomial_test(
    views: Views,
    **common: Unpack[Common],
) -> MultipleBinomialResult:
    """Test calibration of a model with few distinct outputs: an exact binomial test at each, with Bonferroni.

    Parameters
    ----------
    lens : str or Lens
        "binary" for two classes and "top-label" for more, unless given.

    Returns
    -------
    MultipleBinomialResult

    Examples
    --------
    >>> import calibrary as cal
    >>> result = cal.multiple_binomial_test([0, 0, 0, 1, 1, 0, 1, 1], [0.2] * 4 + [0.8] * 4)
    >>> result.pvalue
    1.0
    """
    from calibrary.numerics.laws.binomial import two_sided_pvalue

    view = only_view(views, "this test")
    if not view.binary:
        raise RefusedError("lens='full' has no single probability to test: use 'binary' or 'top-label'")
    view.counts("multiple_binomial_test")
    ties = view.ties
    n, k = ties.w.astype(np.int64), ties.wy.astype(np.int64)
    pvalues = two_sided_pvalue(k, n, ties.c)
    smallest = float(pvalues.min())
    return MultipleBinomialResult(smallest, min(1.0, len(n) * smallest), ties.c, n, k, pvalues)
