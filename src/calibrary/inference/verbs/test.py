"""``test``: the test of calibration by any metric."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedError, refuse_unknown, warn
from calibrary.base.signatures import own_options
from calibrary.data import Data, is_data
from calibrary.data.columns import takes_table
from calibrary.inference.draw.statistic import as_statistic, read_call
from calibrary.inference.methods.triangle import unit_test
from calibrary.lookup.by_name import catalogue, of_metric
from calibrary.lookup.study_findings import too_few
from calibrary.metrics.machinery.declare import METHODS, REDRAWING, TESTS, Entry, run_test
from calibrary.metrics.machinery.entry import Test
from calibrary.metrics.machinery.measure import views_of, with_bins
from calibrary.question import question_of

#: Above this many rows labels are not redrawn for a metric over all pairs.
_FEW_ROWS = 2000


@takes_table
@of_metric
def test(metric: str, /, y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Test the hypothesis that the predictions are calibrated, by any metric.

    Outcomes must be independent given the predictions. For dependent rows pass ``units`` or ``blocks``.

    Parameters
    ----------
    metric : str
        A metric's id, or any name of it.
    y_true, y_prob
        As for every metric; or matched detections.
    method : "auto", "asymptotic", "monte-carlo", "consistency", MonteCarlo or Consistency
        "auto" is the metric's own asymptotic formula if it keeps its level: if the rows equal 50 coin tosses
        (the sum of 4 c (1 - c); 100 for ``pws``, as many informative pairs for ``skce_ul``), and for Hosmer-Lemeshow
        if every cell has 5 expected rows. Otherwise, and for metrics without a formula, labels are redrawn from the
        predictions ("monte-carlo"), which is valid for any metric and sample size; also if ``calibration_map`` or an
        ``alternative`` is given that the formula does not have. ``result.law`` is the choice.
    units : array-like of shape (N,), optional
        The patient, prompt or user of each row. Whole units are drawn (or their residuals change sign), instead of
        redrawing labels one by one.
    blocks : int or True, optional
        Rows are in time order, and are resampled in blocks of this length (True: N^(1/3)).
    **options
        Of the metric, and ``n_resamples``, ``rng``, ``alternative``, ``calibration_map``, ``workers`` of redrawing.

    Returns
    -------
    TestResult
        With ``statistic``, ``pvalue``, ``law`` and further results of the test.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1], [0.2, 0.7, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3]
    >>> round(cal.test("spiegelhalter", y, p, method="asymptotic").pvalue, 4)
    0.4773
    >>> cal.test("spiegelhalter", y, p, rng=0).law
    'monte-carlo'
    """
    entry = catalogue[metric]
    settings = set(entry.settings)
    entry, options = entry.specialized(entry.settled_keywords(options))
    own = TESTS.get(entry.id) if entry.has_test else None
    _say_too_few(entry, own, y_true, options)
    if own is not None and settings & set(entry.options) - set(inspect.signature(own.function).parameters):
        own = None  # the name is that of a variant of the metric for which the test does not apply
    carried = is_data(y_true) and y_true.in_groups
    if carried or options.get("units") is not None or options.get("blocks") is not None:
        return _of_units(entry, y_true, y_prob, dict(options))
    options = {name: value for name, value in options.items() if name not in ("units", "blocks")}
    if own is None:
        refuse_unknown(entry.id, options, {*entry.options, *entry.front.common, *REDRAWING, "weight_type"})
        given = {name: value for name, value in options.items() if name != "method" or not _is_auto(value)}
        return run_test(entry, y_true, y_prob, {"method": "monte-carlo", **given})
    options = _closed_form(own, options)
    if not _is_auto(options.get("method", "auto")):
        return own.function(y_true, y_prob, **options)
    given = {name: value for name, value in options.items() if name != "method"}
    own_only = {"fitted", *own_options(own.formula)} - ({*entry.options} - {"fitted"}) - {*REDRAWING}
    if "monte-carlo" not in METHODS or not entry.null or own_only & set(given):
        return own.function(y_true, y_prob, **given)  # options of the formula select the formula
    keywords = dict(given)
    data = entry.front.read(y_true, y_prob, keywords)
    if not _redrawn(own, keywords) and _trusted(entry, data, keywords):
        laws = set(REDRAWING) - set(own_options(own.formula))
        return own.function(data, **{name: value for name, value in keywords.items() if name not in laws})
    return own.function(data, method="monte-carlo", **keywords)


test.__test__ = False  # type: ignore[attr-defined]  # a public function, not a test of pytest's


def _say_too_few(entry: Entry, own: Test | None, y_true: Any, options: Mapping[str, Any]) -> None:
    """Warn if there are fewer rows than the review recommends, where that recommendation applies."""
    if own is not None and own.closed_form:  # the review's recommendation is for the formula
        asked_for = {name: options.get(name) for name in own.closed_form} == dict(own.closed_form)
        if not asked_for and options.get("method") != "asymptotic":
            return
    n = getattr(y_true, "n", None) if is_data(y_true) else np.shape(y_true)[0] if np.ndim(y_true) else None
    said = "" if n is None else too_few(entry, float(n))
    if said:
        warn(said)


def _closed_form(own: Test, options: dict[str, Any]) -> dict[str, Any]:
    """For a test that simulates by default, ``method="asymptotic"`` selects its formula."""
    if options.get("method") == "asymptotic" and own.closed_form:
        return {**own.closed_form, **{name: value for name, value in options.items() if name != "method"}}
    return options


def _of_units(entry: Entry, y_true: Any, y_prob: Any, options: dict[str, Any]) -> Any:
    """The test with units."""
    method = options.pop("method", "auto")
    if method not in ("auto", "flips"):
        raise RefusedError(f"method={method!r} assumes independent rows: omit method= with units or blocks")
    settings = {name: options.pop(name) for name in ("n_resamples", "rng", "alternative") if name in options}
    options.pop("workers", None)
    weight_type = options.pop("weight_type", "frequency")
    sample, question = read_call(entry, y_true, y_prob, options, weight_type=weight_type)
    return unit_test(as_statistic(entry, sample, question, redrawn=True), **settings)


# -- where asymptotic formulas apply ------------------------------------------------------------------


def _is_auto(method: Any) -> bool:
    return isinstance(method, str) and method == "auto"


def _redrawn(own: Test, keywords: Mapping[str, Any]) -> bool:
    """Whether an option asks for a hypothesis that only redrawn labels can test."""
    taken = own_options(own.formula)
    asked = (name for name in ("calibration_map", "alternative") if name not in taken)
    return any(keywords.get(name) is not None for name in asked)


def _trusted(entry: Entry, data: Data, keywords: Mapping[str, Any]) -> bool:
    """Whether the metric's own formula keeps its level on such data."""
    trusted = TESTS[entry.id].trusted
    if isinstance(trusted, bool):
        return trusted
    options = {n: v for n, v in keywords.items() if n in entry.options or n in ("lens", "average", "r")}
    question = with_bins(entry, data, question_of(options, entry.options))
    views = views_of(entry, data, question).views
    holds = all(trusted(view, question.options) for view in views)
    rows = max(view.n for view in views)
    if not holds and entry.costly and rows > _FEW_ROWS:
        warn(
            f"the formula of {entry.id} does not keep its level on predictions that are nearly all close to 0 or 1, "
            "and "
            f"redrawing labels for {rows:,} rows is slow: use method='monte-carlo' anyway, or the test 'spiegelhalter'"
        )
        return True
    return holds
