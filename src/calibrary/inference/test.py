"""The verb ``test``: are these predictions calibrated, by any metric?"""

from __future__ import annotations

from typing import Any

from calibrary._errors import suggest
from calibrary.lookup import catalogue
from calibrary.metrics.declare import REDRAWING, TESTS, run_test


def test(id: str, y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Test the hypothesis that the predictions are calibrated, by any metric.

    Metrics with a test of their own use it; ``method="monte-carlo"`` (or an object such as
    ``MonteCarlo(n_resamples=9999)``) redraws labels from the predictions instead, and works for every metric.

    Returns
    -------
    TestResult
        With ``statistic``, ``pvalue`` and what else the test knows.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3]
    >>> round(cal.test("spiegelhalter", y, p).pvalue, 4)
    0.4773
    """
    entry = catalogue[id]
    own = TESTS.get(entry.id)
    if own is not None:
        return own.function(y_true, y_prob, **options)
    known = {*entry.options, *entry.front.common, *REDRAWING, "weight_type"}
    for name in options:
        if name not in known:
            raise TypeError(f"{entry.id} has no option {name!r}: {suggest(name, known)}")
    return run_test(entry, y_true, y_prob, options)


test.__test__ = False  # type: ignore[attr-defined]  # a public function, not a test of pytest's
