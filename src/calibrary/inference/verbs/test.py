"""The verb ``test``: are these predictions calibrated, by any metric?"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrary.base.errors import RefusedCallError, RefusedError, suggest, warn
from calibrary.data import Data, is_data
from calibrary.data.columns import takes_table
from calibrary.inference.draw.statistic import as_statistic, read_call
from calibrary.inference.methods.units import unit_test
from calibrary.lookup.by_name import catalogue, of_metric
from calibrary.lookup.study_findings import too_few
from calibrary.metrics.machinery.declare import METHODS, REDRAWING, TESTS, Entry, run_test
from calibrary.metrics.machinery.entry import Test, own_options
from calibrary.metrics.machinery.measure import views_of
from calibrary.question import asked

#: Above this many rows labels are not redrawn for a metric over all pairs.
_FEW_ROWS = 2000


@takes_table
@of_metric
def test(metric: str, /, y_true: Any, y_prob: Any = None, **options: Any) -> Any:
    """Test the hypothesis that the predictions are calibrated, by any metric.

    Outcomes must be independent given the predictions; where they are not, say so with ``units`` or ``blocks``.

    Parameters
    ----------
    metric : str
        A metric's id, or any name of it.
    y_true, y_prob
        As for every metric; or matched detections.
    method : "auto", "asymptotic", "monte-carlo", "consistency", MonteCarlo or Consistency
        "auto" is the metric's own law where it keeps its level: with the equivalent of 50 coin tosses among the rows
        (the sum of 4 c (1 - c); ``pws`` 100, ``skce_ul`` as many pairs that tell something), and for Hosmer-Lemeshow
        with 5 expected in every cell. Otherwise, and for metrics
        without a law of their own, labels are redrawn from the predictions ("monte-carlo"), which works for any metric
        and sample size. ``result.law`` says which. Functions named after a test (``spiegelhalter_z_test``) keep
        their own law unless told otherwise.
    units : array-like of shape (N,), optional
        The patient, prompt or user of each row: the residuals of whole units change sign, instead of labels being
        redrawn one by one.
    blocks : int or True, optional
        Rows are in time order, and runs of this many (True: N^(1/3)) belong together.
    **options
        Of the metric, and ``n_resamples``, ``rng``, ``alternative``, ``calibration_map``, ``workers`` of redrawing.

    Returns
    -------
    TestResult
        With ``statistic``, ``pvalue``, ``law`` and what else the test knows.

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
        own = None  # the name asks for a variant of the metric that its own test does not know
    carried = is_data(y_true) and y_true.in_groups
    if carried or options.get("units") is not None or options.get("blocks") is not None:
        return _of_units(entry, y_true, y_prob, dict(options))
    options = {name: value for name, value in options.items() if name not in ("units", "blocks")}
    if own is None:
        known = {*entry.options, *entry.front.common, *REDRAWING, "weight_type"}
        for name in options:
            if name not in known:
                raise RefusedCallError(f"{entry.id} has no option {name!r}: {suggest(name, known)}")
        given = {name: value for name, value in options.items() if name != "method" or not _is_auto(value)}
        return run_test(entry, y_true, y_prob, {"method": "monte-carlo", **given})
    options = _closed_form(own, options)
    if not _is_auto(options.get("method", "auto")):
        return own.function(y_true, y_prob, **options)
    given = {name: value for name, value in options.items() if name != "method"}
    own_only = {"fitted", *own_options(own.formula)} - ({*entry.options} - {"fitted"}) - {*REDRAWING}
    if "monte-carlo" not in METHODS or not entry.null or own_only & set(given):
        return own.function(y_true, y_prob, **given)  # options of its own law ask for it
    keywords = dict(given)
    data = entry.front.read(y_true, y_prob, keywords)
    if _trusted(entry, data, keywords):
        laws = set(REDRAWING) - set(own_options(own.formula))
        return own.function(data, **{name: value for name, value in keywords.items() if name not in laws})
    return own.function(data, method="monte-carlo", **keywords)


test.__test__ = False  # type: ignore[attr-defined]  # a public function, not a test of pytest's


def _say_too_few(entry: Entry, own: Test | None, y_true: Any, options: Mapping[str, Any]) -> None:
    """Say the number of rows that the review asks for, where there are fewer and it binds."""
    if own is not None and own.closed_form:  # what the review says is of the formula
        asked_for = {name: options.get(name) for name in own.closed_form} == dict(own.closed_form)
        if not asked_for and options.get("method") != "asymptotic":
            return
    n = getattr(y_true, "n", None) if is_data(y_true) else np.shape(y_true)[0] if np.ndim(y_true) else None
    said = "" if n is None else too_few(entry, float(n))
    if said:
        warn(said)


def _closed_form(own: Test, options: dict[str, Any]) -> dict[str, Any]:
    """Of a test that simulates unless told otherwise, ``method="asymptotic"`` asks for its formula."""
    if options.get("method") == "asymptotic" and own.closed_form:
        return {**own.closed_form, **{name: value for name, value in options.items() if name != "method"}}
    return options


def _of_units(entry: Entry, y_true: Any, y_prob: Any, options: dict[str, Any]) -> Any:
    """The test where rows belong together."""
    method = options.pop("method", "auto")
    if method not in ("auto", "flips"):
        raise RefusedError(f"method={method!r} takes rows one by one: with units or blocks leave it out")
    settings = {name: options.pop(name) for name in ("n_resamples", "rng", "alternative") if name in options}
    options.pop("workers", None)
    weight_type = options.pop("weight_type", "frequency")
    sample, question = read_call(entry, y_true, y_prob, options, weight_type=weight_type)
    return unit_test(as_statistic(entry, sample, question, redrawn=True), **settings)


# -- where a law of large samples holds ---------------------------------------------------------------


def _is_auto(method: Any) -> bool:
    return isinstance(method, str) and method == "auto"


def _trusted(entry: Entry, data: Data, keywords: Mapping[str, Any]) -> bool:
    """Does the metric's own law keep its level on such data?"""
    trusted = TESTS[entry.id].trusted
    if isinstance(trusted, bool):
        return trusted
    options = {n: v for n, v in keywords.items() if n in entry.options or n in ("lens", "average", "r")}
    question = asked(options, entry.options)
    views = views_of(entry, data, question).views
    holds = all(trusted(view, question.options) for view in views)
    rows = max(view.n for view in views)
    if not holds and entry.costly and rows > _FEW_ROWS:
        warn(
            f"the law of {entry.id} does not keep its level on predictions that are nearly always sure, and redrawing "
            f"labels for {rows:,} rows is slow: use method='monte-carlo' all the same, or the test 'spiegelhalter'"
        )
        return True
    return holds
