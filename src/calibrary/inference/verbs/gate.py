"""A gate for tests and builds, which fails unless conditions on metrics hold."""

from __future__ import annotations

from typing import Any

from calibrary.base.errors import RefusedError, one_of
from calibrary.data.columns import takes_table
from calibrary.inference.verbs.verdict import Verdict, verdict


@takes_table
def assert_calibrated(
    y_true: Any, y_prob: Any = None, *conditions: str, undecided: str = "pass", **options: Any
) -> tuple[Verdict, ...]:
    """Fail a test unless every condition holds: for pytest, and anything else that catches ``AssertionError``.

    A condition is tested with the metric's interval, because the estimate alone would fail good models on few rows. It
    passes if the whole interval satisfies the bound, fails if no value in the interval does, and is undecided
    otherwise. An undecided condition passes with a warning that states how many rows would be needed.

    Parameters
    ----------
    y_true, y_prob
        As for every metric. For matched detections: ``assert_calibrated(matches, None, "d_ece<0.1")``.
    *conditions : str
        The conditions that must hold: ``"ece<0.05"``, ``"cis.slope>0.8"`` (a part), ``"bs <= 12%"``. A condition on a
        single number is never undecided: ``"ece.value<0.05"`` (the plain estimate), ``"ece.high<0.1"``,
        ``"ece.pvalue>0.01"``.
    undecided : "pass" or "fail"
        The result of an undecided condition.
    **options
        Those of :func:`calibrary.interval`, and of the metrics.

    Returns
    -------
    tuple of Verdict
        One for each condition, each with its sentence.

    Raises
    ------
    AssertionError
        With one line for each condition that does not hold.

    Examples
    --------
    >>> import calibrary as cal
    >>> y, p = [0, 1, 1, 0, 1, 0, 1, 1] * 10, [0.2, 0.7, 0.9, 0.4, 0.6, 0.1, 0.8, 0.3] * 10
    >>> [v.status for v in cal.assert_calibrated(y, p, "ece<0.5", "bs.value<0.2", rng=0)]
    ['pass', 'pass']
    """
    one_of("undecided", undecided, ("pass", "fail"))
    if not conditions or not all(isinstance(text, str) for text in conditions):
        raise RefusedError('assert_calibrated needs at least one condition: assert_calibrated(y, p, "ece<0.05")')
    answers = tuple(verdict(text, y_true, y_prob, undecided=undecided, **options) for text in conditions)
    lines = [answer.sentence for answer in answers if not answer.passed]
    if lines:
        raise AssertionError("\n".join(lines))
    return answers
